//! Line charts as self-contained SVG: linear or logarithmic axes, error bars, a legend beside the picture.
use std::ops::Range;

use plotters::{
    coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
    prelude::{
        ChartBuilder, Circle, DashedLineSeries, IntoDrawingArea, IntoFont, LineSeries, PathElement,
        RGBColor, SVGBackend, ShapeStyle, Text, WHITE,
    },
};

const SIZE: (u32, u32) = (860, 480);
const LEGEND: i32 = 640;

/// Colours that can be told apart, also by most of the colour-blind (after Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
    RGBColor(140, 86, 75),
];

/// A chart to be drawn.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// What an axis shows.
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) log: bool,
    /// Whatever lies above is drawn at this height.
    pub(crate) ceiling: f64,
}

/// One line with its marks.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
    /// Dashed and without marks: something to compare with.
    pub(crate) reference: bool,
}

/// A mark and its error bar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Axis {
    pub(crate) fn log(label: &str) -> Axis {
        Axis { label: label.into(), log: true, ceiling: f64::INFINITY }
    }

    /// Where a value stands on the axis; none if it cannot be shown.
    fn at(&self, value: f64) -> Option<f64> {
        let value = value.min(self.ceiling);
        let place = if self.log { value.log10() } else { value };
        place.is_finite().then_some(place)
    }

    /// The ends of the axis, a little beyond what is shown.
    fn span(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in values.filter_map(|v| self.at(v)) {
            (lo, hi) = (lo.min(place), hi.max(place));
        }
        match hi - lo {
            width if width.is_infinite() || width.is_nan() => (0.0, 1.0),
            // One value, or one that hardly varies.
            width if width < 1e-9 * hi.abs().max(1e-9) => (lo - 0.5, hi + 0.5),
            width => (lo - 0.05 * width, hi + 0.05 * width),
        }
    }

    /// Round values between the ends: decades, or 1-2-5 steps.
    fn ticks(&self, (lo, hi): (f64, f64)) -> Vec<f64> {
        if self.log {
            let decades = (hi - lo).max(1e-9);
            let steps: &[f64] = match decades {
                d if d < 1.6 => &[1.0, 2.0, 5.0],
                d if d < 3.0 => &[1.0, 3.0],
                _ => &[1.0],
            };
            let every = (decades / 9.0).ceil() as i32;
            let powers = (lo.floor() as i32..=hi.ceil() as i32).filter(|p| p % every == 0);
            let all = powers.flat_map(|p| steps.iter().map(move |s| f64::from(p) + s.log10()));
            let ticks: Vec<f64> = all.filter(|t| (lo..=hi).contains(t)).collect();
            if ticks.len() >= 2 {
                return ticks;
            }
            // Less than a decade, perhaps much less: round values of their own.
            let plain = Axis { label: String::new(), log: false, ceiling: f64::INFINITY };
            let ends = (10.0_f64.powf(lo), 10.0_f64.powf(hi));
            return plain.ticks(ends).into_iter().map(f64::log10).collect();
        }
        let rough = (hi - lo) / 6.0;
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough);
        let step = step.unwrap_or(rough);
        let (first, last) = ((lo / step).ceil() as i64, (hi / step).floor() as i64);
        (first..=last).map(|k| k as f64 * step).collect()
    }

    fn tell(&self, place: f64) -> String {
        neat(if self.log { 10.0_f64.powf(place) } else { place })
    }
}

/// An axis as plotters wants it: ends and ticks in places, whose logarithms are taken already.
struct Places {
    ends: (f64, f64),
    ticks: Vec<f64>,
}

impl Ranged for Places {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.ends.0) / (self.ends.1 - self.ends.0);
        from + (f64::from(to - from) * share).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

/// A number at a tick.
fn neat(value: f64) -> String {
    let value = if value.abs() < 1e-12 { 0.0 } else { value };
    if value != 0.0 && !(1e-2..1e4).contains(&value.abs()) {
        let text = format!("{value:.1e}");
        return text.replace(".0e", "e");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

impl Chart {
    /// The picture.
    pub(crate) fn svg(&self) -> String {
        let mut text = String::new();
        self.draw(&mut text).expect("a string takes everything");
        text
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error + '_>> {
        let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (left, right) = root.split_horizontally(LEGEND);
        let points = || self.series.iter().flat_map(|s| &s.points);
        let x = self.x.span(points().map(|p| p.x));
        let y = self.y.span(points().flat_map(|p| [p.y, p.low, p.high]));
        let mut chart = ChartBuilder::on(&left)
            .caption(&self.title, ("sans-serif", 17).into_font())
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(
                Places { ends: x, ticks: self.x.ticks(x) },
                Places { ends: y, ticks: self.y.ticks(y) },
            )?;
        chart
            .configure_mesh()
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .x_label_formatter(&|at| self.x.tell(*at))
            .y_label_formatter(&|at| self.y.tell(*at))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(225, 225, 225))
            .label_style(("sans-serif", 13))
            .draw()?;
        for (i, series) in self.series.iter().enumerate() {
            let style = ShapeStyle::from(&COLOURS[i % COLOURS.len()]).stroke_width(2);
            let at = |x: f64, y: f64| Some((self.x.at(x)?, self.y.at(y)?));
            let line: Vec<(f64, f64)> = series.points.iter().filter_map(|p| at(p.x, p.y)).collect();
            let row = 40 + 22 * i as i32;
            // The second round of colours is told apart by open marks.
            let fill = if i < COLOURS.len() { style.filled() } else { style };
            if series.reference {
                chart.draw_series(DashedLineSeries::new(line, 6, 4, style.stroke_width(1)))?;
                for from in [4, 14] {
                    right.draw(&PathElement::new([(from, row), (from + 6, row)], style))?;
                }
            } else {
                chart.draw_series(LineSeries::new(line.clone(), style))?;
                chart.draw_series(line.iter().map(|place| Circle::new(*place, 4, fill)))?;
                let bars = series.points.iter().filter(|p| p.low < p.high);
                let bars = bars.filter_map(|p| Some([at(p.x, p.low)?, at(p.x, p.high)?]));
                chart.draw_series(bars.map(|b| PathElement::new(b, style.stroke_width(1))))?;
                right.draw(&PathElement::new([(4, row), (24, row)], style))?;
                right.draw(&Circle::new((14, row), 4, fill))?;
            }
            right.draw(&Text::new(
                series.name.clone(),
                (32, row - 7),
                ("sans-serif", 13).into_font(),
            ))?;
        }
        root.present()?;
        drop(chart);
        Ok(())
    }
}

/// Whether every tag of `text` that opens also closes, in order: enough to tell XML from a broken picture.
#[cfg(test)]
pub(crate) fn well_formed(text: &str) -> bool {
    let mut open = vec![];
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        let entities = before.split('&').skip(1).all(|e| e.find(';').is_some_and(|n| n <= 5));
        let Some((tag, next)) = after.split_once('>') else { return false };
        if !entities || before.contains('>') || tag.matches('"').count() % 2 != 0 {
            return false;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or_default());
        }
        rest = next;
    }
    open.is_empty() && rest.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, values: &[(f64, f64)]) -> Series {
        let point = |&(x, y): &(f64, f64)| Point { x, y, low: 0.8 * y, high: 1.3 * y };
        Series { name: name.into(), points: values.iter().map(point).collect(), reference: false }
    }

    #[test]
    fn a_picture_is_xml_and_tells_what_it_shows() {
        let chart = Chart {
            title: "risk & <regret>".into(),
            x: Axis::log("epsilon"),
            y: Axis { ceiling: 10.0, ..Axis::log("excess \"risk\"") },
            series: vec![
                line("a<b", &[(0.1, 1e-3), (1.0, 1e-5)]),
                line("wild", &[(0.1, 1e30), (0.5, f64::NAN), (1.0, 0.0), (2.0, f64::INFINITY)]),
                Series { reference: true, ..line("floor", &[(0.1, 1e-6), (1.0, 1e-6)]) },
            ],
        };
        let text = chart.svg();
        assert!(well_formed(&text), "{text}");
        for part in ["risk &amp; &lt;regret&gt;", "a&lt;b", "epsilon", "wild", "floor"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        // The check itself tells good from bad.
        assert!(!well_formed(&text.replace("</svg>", "")));
        assert!(!well_formed(&text.replace("&amp;", "&")));
    }

    #[test]
    fn an_empty_or_single_chart_is_drawn_all_the_same() {
        for series in [vec![], vec![line("one", &[(1.0, 1.0)])], vec![line("none", &[])]] {
            for log in [true, false] {
                let axis = |label: &str| Axis { log, ..Axis::log(label) };
                let series = series.iter().map(|s| Series {
                    name: s.name.clone(),
                    points: s.points.clone(),
                    reference: false,
                });
                let (x, y) = (axis("x"), axis("y"));
                let chart = Chart { title: "t".into(), x, y, series: series.collect() };
                assert!(well_formed(&chart.svg()));
            }
        }
    }

    #[test]
    fn ticks_are_round() {
        let log = Axis::log("");
        let told = |axis: &Axis, span| {
            axis.ticks(span).into_iter().map(|t| axis.tell(t)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(&log, (-1.05, 0.05)), "0.1 0.2 0.5 1");
        assert_eq!(told(&log, (-6.2, -0.9)), "1e-6 1e-5 1e-4 1e-3 0.01 0.1");
        assert_eq!(told(&log, (0.38, 0.41)), "2.4 2.45 2.5 2.55");
        assert_eq!(told(&Axis { log: false, ..log }, (-0.1, 1.05)), "0 0.2 0.4 0.6 0.8 1");
    }
}

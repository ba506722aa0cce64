//! Line charts: linear or logarithmic axes, error bars, a legend on the right.
use super::{Anchor, Axis, COLOURS, Canvas, Plot};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 480.0;
/// Left, top, right and bottom of the plot.
const FRAME: (f64, f64, f64, f64) = (74.0, 44.0, 626.0, 420.0);
const LEGEND: f64 = 644.0;

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// The axis at the bottom.
    pub x: Axis,
    /// The axis on the left.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
}

/// One line with its marks.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
    /// Dashed and without marks: a line to compare with.
    pub reference: bool,
}

/// A mark and its error bar.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The position on the axis at the bottom.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The lower end of the error bar.
    pub low: f64,
    /// The upper end of the error bar; there is no bar if it equals the lower end.
    pub high: f64,
}

impl Chart {
    /// The chart as a file.
    pub fn svg(&self) -> String {
        let (left, top, right, bottom) = FRAME;
        let mut canvas = Canvas::new(WIDTH, HEIGHT, 13.0, &self.title);
        canvas.heading((left, 28.0), &self.title);
        let points = || self.series.iter().flat_map(|s| &s.points);
        let plot = Plot {
            x: self.x.clone().around(points().map(|p| p.x), (left, right)),
            y: self.y.clone().around(points().flat_map(|p| [p.y, p.low, p.high]), (bottom, top)),
        };
        plot.draw_axes(&mut canvas);
        for (k, series) in self.series.iter().enumerate() {
            series.draw(k, &plot, &mut canvas);
        }
        canvas.finish()
    }
}

impl Series {
    /// The line and its entry in the legend, the `k`-th.
    fn draw(&self, k: usize, plot: &Plot, canvas: &mut Canvas) {
        let colour = COLOURS[k % COLOURS.len()];
        // Open marks distinguish the second round of colours.
        let fill = if k < COLOURS.len() { colour } else { "white" };
        let mark = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"");
        let line: Vec<(f64, f64)> = self.points.iter().filter_map(|p| plot.at(p.x, p.y)).collect();
        let row = FRAME.1 + 10.0 + 22.0 * k as f64;
        let sample = [(LEGEND, row), (LEGEND + 24.0, row)];
        let dashes = if self.reference { " stroke-dasharray=\"6 4\"" } else { "" };
        let stroke = format!("stroke=\"{colour}\" stroke-width=\"2\"{dashes}");
        canvas.polyline(&line, &stroke);
        canvas.polyline(&sample, &stroke);
        if !self.reference {
            let bar = format!("stroke=\"{colour}\"");
            for p in self.points.iter().filter(|p| p.low < p.high) {
                if let (Some(low), Some(high)) = (plot.at(p.x, p.low), plot.at(p.x, p.high)) {
                    canvas.line(low, high, &bar);
                }
            }
            line.iter().for_each(|at| canvas.circle(*at, 4.0, &mark));
            canvas.circle((LEGEND + 12.0, row), 4.0, &mark);
        }
        canvas.text((LEGEND + 32.0, row + 4.5), Anchor::Start, &self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::is_well_formed;

    fn line(name: &str, values: &[(f64, f64)]) -> Series {
        let point = |&(x, y): &(f64, f64)| Point { x, y, low: 0.8 * y, high: 1.3 * y };
        Series { name: name.into(), points: values.iter().map(point).collect(), reference: false }
    }

    #[test]
    fn a_chart_is_xml_and_names_what_it_shows() {
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
        assert!(is_well_formed(&text), "{text}");
        for part in ["risk &amp; &lt;regret&gt;", "a&lt;b", "epsilon", "wild", "floor"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn an_empty_or_single_chart_is_drawn_all_the_same() {
        for series in [vec![], vec![line("one", &[(1.0, 1.0)])], vec![line("none", &[])]] {
            for log in [true, false] {
                let axis = |label: &str| Axis { log, ..Axis::log(label) };
                let (x, y) = (axis("x"), axis("y"));
                let chart = Chart { title: "t".into(), x, y, series: series.clone() };
                let text = chart.svg();
                assert!(is_well_formed(&text) && !text.contains("NaN"), "{text}");
            }
        }
    }
}

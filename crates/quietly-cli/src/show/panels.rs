//! Small plots in rows, on one vertical scale.
use quietly::{
    Places,
    svg::{Anchor, Axis, COLOURS, Canvas, Plot, Scale},
};

use crate::format;

/// A grid of panels.
pub(super) struct Panels {
    pub(super) title: String,
    pub(super) note: String,
    /// Names of the colours, if they have any.
    pub(super) names: Vec<String>,
    pub(super) panels: Vec<Panel>,
    /// Behind them, on one scale of colours.
    pub(super) maps: Vec<Map>,
}

/// What two columns do together, in colours.
pub(super) struct Map {
    pub(super) title: String,
    /// The ranges of the first column, which runs to the right, and of the second, which runs upwards.
    pub(super) ranges: [(f64, f64); 2],
    /// A square of values: for the first place of the first column all places of the second, and so on.
    pub(super) values: Vec<f64>,
}

/// One of them.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) places: Places,
    pub(super) curves: Vec<Curve>,
}

/// One value for every place.
pub(super) struct Curve {
    pub(super) values: Vec<f64>,
    pub(super) colour: usize,
    pub(super) bold: bool,
}

const ACROSS: usize = 4;
const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 180.0;
/// Left, top, right and bottom of the plot in a panel.
const FRAME: (f64, f64, f64, f64) = (46.0, 28.0, 218.0, 150.0);
const TOP: f64 = 76.0;

impl Panels {
    /// The grid as a file.
    pub(super) fn svg(&self) -> String {
        let count = self.panels.len() + self.maps.len();
        let (across, down) = (count.clamp(1, ACROSS), count.div_ceil(ACROSS).max(1));
        let width = (across as f64 * WIDTH).max(3.0 * WIDTH) + 20.0;
        let height = TOP + down as f64 * HEIGHT + 10.0;
        let mut canvas = Canvas::new(width, height, 11.0, &self.title);
        canvas.heading((20.0, 24.0), &self.title);
        // Letters of this size are about six wide. A note without names below it may have two
        // lines.
        for (k, line) in format::wrap(&self.note, "", (width / 6.0) as usize).lines().enumerate() {
            canvas.text((20.0, 42.0 + 14.0 * k as f64), Anchor::Start, line);
        }
        for (k, name) in self.names.iter().take(COLOURS.len()).enumerate() {
            let (x, colour) = (20.0 + 70.0 * k as f64, COLOURS[k]);
            let style = format!("stroke=\"{colour}\" stroke-width=\"3\"");
            canvas.line((x, 58.0), (x + 14.0, 58.0), &style);
            let shown: String = name.chars().take(9).collect();
            canvas.text((x + 18.0, 62.0), Anchor::Start, &shown);
        }
        let values = self.panels.iter().flat_map(|p| &p.curves).flat_map(|c| &c.values);
        let values: Vec<f64> = values.copied().filter(|v| v.is_finite()).collect();
        let corner =
            |k: usize| ((k % ACROSS) as f64 * WIDTH + 10.0, TOP + (k / ACROSS) as f64 * HEIGHT);
        for (k, panel) in self.panels.iter().enumerate() {
            let (x, y) = corner(k);
            let pixels = (y + FRAME.3, y + FRAME.1);
            let scale = Axis::linear("").around(values.iter().copied(), pixels);
            panel.draw((x + FRAME.0, x + FRAME.2), scale, &mut canvas);
        }
        let sizes = self.maps.iter().flat_map(|map| &map.values).map(|v| v.abs());
        let most = sizes.filter(|v| v.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
        for (k, map) in self.maps.iter().enumerate() {
            let (x, y) = corner(self.panels.len() + k);
            map.draw(((x + FRAME.0, x + FRAME.2), (y + FRAME.3, y + FRAME.1)), most, &mut canvas);
        }
        canvas.finish()
    }
}

impl Panel {
    fn draw(&self, (left, right): (f64, f64), y: Scale, canvas: &mut Canvas) {
        let count = self.curves.first().map_or(1, |c| c.values.len());
        // Curves have a value for each of `count` places: the ends of a range, the middle of a
        // name's part.
        let (axis, half) = match self.places {
            Places::Range(ends) => (ends, 0.0),
            Places::Names(_) => ((0.0, count as f64), 0.5),
        };
        let plot = Plot { x: Axis::linear("").between(axis, (left, right)), y };
        let steps = match self.places {
            Places::Range(_) => count.saturating_sub(1).max(1),
            Places::Names(_) => count,
        };
        let x = |place: usize| left + (right - left) * (place as f64 + half) / steps as f64;
        let ticks: Vec<(f64, String)> = match &self.places {
            // A plot of this size has room for half of the usual ticks.
            Places::Range(_) => plot.x.ticks().into_iter().step_by(2).collect(),
            Places::Names(names) => {
                let room = (24 / names.len().max(1)).max(1);
                let short = |name: &String| name.chars().take(room).collect::<String>();
                names.iter().enumerate().map(|(k, name)| (x(k), short(name))).collect()
            }
        };
        let sparse: Vec<_> = plot.y.ticks().into_iter().step_by(2).collect();
        plot.draw_y_ticks(canvas, &sparse);
        plot.draw_x_ticks(canvas, &ticks);
        let title: String = self.title.chars().take(30).collect();
        let middle = (0.5 * (left + right), plot.y.pixels().1 - 8.0);
        canvas.styled_text(middle, Anchor::Middle, "font-size=\"13\"", &title);
        for curve in &self.curves {
            let colour = COLOURS[curve.colour % COLOURS.len()];
            let (width, opacity) = if curve.bold { (2.2, 1.0) } else { (0.8, 0.45) };
            let values = curve.values.iter().enumerate().filter(|(_, v)| v.is_finite());
            let points: Vec<(f64, f64)> =
                values.filter_map(|(k, v)| Some((x(k), plot.y.at(*v)?))).collect();
            canvas.polyline(
                &points,
                &format!(
                    "stroke=\"{colour}\" stroke-width=\"{width}\" stroke-opacity=\"{opacity}\""
                ),
            );
            if curve.bold && matches!(self.places, Places::Names(_)) {
                let style = format!("fill=\"{colour}\"");
                points.iter().for_each(|at| canvas.circle(*at, 3.0, &style));
            }
        }
        plot.draw_frame(canvas);
    }
}

impl Map {
    fn draw(&self, (across, up): ((f64, f64), (f64, f64)), most: f64, canvas: &mut Canvas) {
        let side = self.values.len().isqrt().max(1);
        let plot = Plot {
            x: Axis::linear("").between(self.ranges[0], across),
            y: Axis::linear("").between(self.ranges[1], up),
        };
        let (wide, high) = ((across.1 - across.0) / side as f64, (up.0 - up.1) / side as f64);
        for (k, value) in self.values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            let left = across.0 + (k / side) as f64 * wide;
            let top = up.0 - ((k % side) + 1) as f64 * high;
            let colour = if *value < 0.0 { COLOURS[0] } else { COLOURS[1] };
            let opacity = value.abs() / most;
            // A little larger than its part, so that no white lines remain between neighbours.
            canvas.add(&format!(
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" \
                 fill-opacity=\"{opacity:.2}\"/>",
                wide + 0.1,
                high + 0.1
            ));
        }
        let sparse =
            |ticks: Vec<(f64, String)>| -> Vec<_> { ticks.into_iter().step_by(2).collect() };
        plot.draw_y_ticks(canvas, &sparse(plot.y.ticks()));
        plot.draw_x_ticks(canvas, &sparse(plot.x.ticks()));
        let title: String = self.title.chars().take(34).collect();
        let middle = (0.5 * (across.0 + across.1), up.1 - 8.0);
        canvas.styled_text(middle, Anchor::Middle, "font-size=\"13\"", &title);
        plot.draw_frame(canvas);
    }
}

#[cfg(test)]
mod tests {
    use quietly::svg::is_well_formed;

    use super::*;

    #[test]
    fn panels_are_well_formed_whatever_is_in_them() {
        let curve = |values: &[f64], bold| Curve { values: values.to_vec(), colour: 3, bold };
        let panels = vec![
            Panel {
                title: "a < b".into(),
                places: Places::Range((18.0, 90.0)),
                curves: vec![curve(&[1.0, 2.0, f64::NAN, 0.0], false), curve(&[2.0; 4], true)],
            },
            Panel {
                title: "R&D".into(),
                places: Places::Names(vec!["<x>".into(), "y".into()]),
                curves: vec![curve(&[f64::INFINITY, -1.0], true)],
            },
            Panel { title: String::new(), places: Places::Names(vec![]), curves: vec![] },
        ];
        let map = Map {
            title: "x > y".into(),
            ranges: [(0.0, 1.0), (-5.0, 5.0)],
            values: vec![1.0, -2.0, f64::NAN, 0.0],
        };
        let names = vec!["one & two".into()];
        let text =
            Panels { title: "t".into(), note: "n".into(), names, panels, maps: vec![map] }.svg();
        assert!(is_well_formed(&text), "{text}");
        for part in
            ["a &lt; b", "R&amp;D", "&lt;x&gt;", "one &amp; two", "x &gt; y", ">20<", ">60<"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        let empty = Panels {
            title: "t".into(),
            note: "".into(),
            names: vec![],
            panels: vec![],
            maps: vec![],
        };
        assert!(is_well_formed(&empty.svg()));
    }
}

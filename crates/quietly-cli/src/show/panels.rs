//! Small pictures in rows, on one vertical scale, as SVG: no fonts, scripts or files from elsewhere.
use std::fmt::Write as _;

use quietly::Places;

use crate::{
    svg::{escaped, ticks},
    words,
};

/// A grid of panels.
pub(super) struct Panels {
    pub(super) title: String,
    pub(super) note: String,
    /// Names of the colours, if they have any.
    pub(super) names: Vec<String>,
    pub(super) panels: Vec<Panel>,
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
const COLOURS: [&str; 10] = [
    "#4477aa", "#cc6677", "#117733", "#ddaa33", "#aa4499", "#44aa99", "#882255", "#999933",
    "#332288", "#777777",
];

impl Panels {
    /// The picture as a whole file.
    pub(super) fn svg(&self) -> String {
        let across = self.panels.len().clamp(1, ACROSS);
        let down = self.panels.len().div_ceil(ACROSS).max(1);
        let width = (across as f64 * WIDTH).max(3.0 * WIDTH) + 20.0;
        let height = TOP + down as f64 * HEIGHT + 10.0;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n<title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"20\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{title}</text>\n",
            title = escaped(&self.title)
        );
        // Letters of this size are six wide, more or less; a note without names below it may have two lines.
        for (k, line) in words::wrap(&self.note, "", (width / 6.0) as usize).lines().enumerate() {
            let y = 42 + 14 * k;
            let _ = writeln!(text, "<text x=\"20\" y=\"{y}\">{}</text>", escaped(line));
        }
        for (k, name) in self.names.iter().take(COLOURS.len()).enumerate() {
            let (x, colour) = (20.0 + 70.0 * k as f64, COLOURS[k]);
            let shown: String = name.chars().take(9).collect();
            let _ = writeln!(
                text,
                "<path d=\"M{x} 58 h14\" stroke=\"{colour}\" stroke-width=\"3\"/><text x=\"{}\" y=\"62\">{}</text>",
                x + 18.0,
                escaped(&shown)
            );
        }
        let span = self.span();
        for (k, panel) in self.panels.iter().enumerate() {
            let (x, y) = ((k % ACROSS) as f64 * WIDTH + 10.0, TOP + (k / ACROSS) as f64 * HEIGHT);
            let _ = writeln!(text, "<g transform=\"translate({x} {y})\">");
            panel.draw(span, &mut text);
            text += "</g>\n";
        }
        text + "</svg>\n"
    }

    /// The lowest and the highest value of all panels, with a little room.
    fn span(&self) -> (f64, f64) {
        let all = self.panels.iter().flat_map(|p| &p.curves).flat_map(|c| &c.values);
        let finite = all.copied().filter(|v| v.is_finite());
        let (low, high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        match high - low {
            room if room > 0.0 => (low - 0.05 * room, high + 0.05 * room),
            _ if low.is_finite() => (low - 0.5, low + 0.5),
            _ => (0.0, 1.0),
        }
    }
}

impl Panel {
    fn draw(&self, (low, high): (f64, f64), text: &mut String) {
        let (left, top, right, bottom) = FRAME;
        let mut add = |line: String| writeln!(text, "{line}").expect("a string takes everything");
        let y = |value: f64| bottom - (bottom - top) * (value - low) / (high - low);
        let title: String = self.title.chars().take(30).collect();
        let middle = 0.5 * (left + right);
        add(format!(
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"13\">{}</text>",
            top - 8.0,
            escaped(&title)
        ));
        for tick in ticks(low, high).into_iter().step_by(2) {
            let at = y(tick);
            add(format!("<path d=\"M{left} {at:.1} H{right}\" stroke=\"#e0e0e0\"/>"));
            add(format!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                left - 5.0,
                at + 4.0
            ));
        }
        let below = bottom + 15.0;
        let mut mark = |at: f64, word: &str| {
            add(format!("<path d=\"M{at:.1} {bottom} v4\" stroke=\"black\"/>"));
            let word = escaped(word);
            add(format!("<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{word}</text>"));
        };
        let count = self.curves.first().map_or(1, |c| c.values.len());
        let x = |place: usize| match self.places {
            Places::Range(_) => left + (right - left) * place as f64 / (count - 1).max(1) as f64,
            Places::Names(_) => left + (right - left) * (place as f64 + 0.5) / count as f64,
        };
        match &self.places {
            Places::Range((from, to)) => {
                // A picture of this size has room for half of the usual ticks.
                for tick in ticks(*from, *to).into_iter().step_by(2) {
                    mark(left + (right - left) * (tick - from) / (to - from), &tick.to_string());
                }
            }
            Places::Names(names) => {
                let room = 24 / names.len().max(1);
                for (place, name) in names.iter().enumerate() {
                    mark(x(place), &name.chars().take(room.max(1)).collect::<String>());
                }
            }
        }
        for curve in &self.curves {
            let colour = COLOURS[curve.colour % COLOURS.len()];
            let (width, opacity) = if curve.bold { (2.2, 1.0) } else { (0.8, 0.45) };
            let places = curve.values.iter().enumerate().filter(|(_, v)| v.is_finite());
            let points: Vec<String> =
                places.map(|(k, v)| format!("{:.1},{:.1}", x(k), y(*v))).collect();
            add(format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-opacity=\"{opacity}\"/>",
                points.join(" ")
            ));
            if curve.bold && matches!(self.places, Places::Names(_)) {
                for (cx, cy) in points.iter().filter_map(|p| p.split_once(',')) {
                    add(format!("<circle cx=\"{cx}\" cy=\"{cy}\" r=\"3\" fill=\"{colour}\"/>"));
                }
            }
        }
        add(format!(
            "<path d=\"M{left} {top} V{bottom} H{right}\" fill=\"none\" stroke=\"black\"/>"
        ));
    }
}

#[cfg(test)]
mod tests {
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
        let names = vec!["one & two".into()];
        let text = Panels { title: "t".into(), note: "n".into(), names, panels }.svg();
        assert!(crate::chart::well_formed(&text), "{text}");
        for part in ["a &lt; b", "R&amp;D", "&lt;x&gt;", "one &amp; two", ">20<", ">60<"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        let empty = Panels { title: "t".into(), note: "".into(), names: vec![], panels: vec![] };
        assert!(crate::chart::well_formed(&empty.svg()));
    }
}

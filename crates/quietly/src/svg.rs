//! Charts as SVG text: no external fonts, scripts or files.
//!
//! A [`Canvas`] writes elements. An [`Axis`] becomes a [`Scale`] between two positions of the
//! canvas, and two scales are a [`Plot`]. A [`Chart`] is a complete line chart.
use std::fmt::Write as _;

pub use self::{
    axis::{Axis, Scale, ticks},
    chart::{Chart, Point, Series},
    plot::Plot,
};

mod axis;
mod chart;
mod plot;

/// Colours that most people can tell apart, the colour-blind among them (after Okabe and Ito).
pub const COLOURS: [&str; 10] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5a5a5a", "#8c564b",
    "#332288", "#999933",
];

/// Where a text stands relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It starts there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A drawing under construction. Positions are in pixels, from the top left corner.
///
/// Texts are escaped. Attributes (`style`) are written as they are: they are constants of the
/// callers, such as `fill="none" stroke="black"`.
#[derive(Debug)]
pub struct Canvas {
    text: String,
}

impl Canvas {
    /// A file of its own: white, with a title in its metadata.
    pub fn new(width: f64, height: f64, font_size: f64, title: &str) -> Canvas {
        let name = "xmlns=\"http://www.w3.org/2000/svg\" ";
        let mut canvas = Canvas { text: head(name, width, height, font_size, "") };
        canvas.add(&format!("<title>{}</title>", escaped(title)));
        canvas.add("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>");
        canvas
    }

    /// A part of an HTML page, with a description for screen readers.
    pub fn inline(width: f64, height: f64, font_size: f64, description: &str) -> Canvas {
        let label = format!(" aria-label=\"{}\"", escaped(description));
        Canvas { text: head("", width, height, font_size, &label) }
    }

    /// An element as it is, on a line of its own.
    pub fn add(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }

    /// A text on one line, in the canvas' font size.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        self.styled_text((x, y), anchor, "", text);
    }

    /// A text with attributes of its own, such as `font-weight="bold"`.
    pub fn styled_text(&mut self, (x, y): (f64, f64), anchor: Anchor, style: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let space = if style.is_empty() { "" } else { " " };
        let text = escaped(text);
        self.add(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor}{space}{style}>{text}</text>"));
    }

    /// A heading at the top left.
    pub fn heading(&mut self, (x, y): (f64, f64), text: &str) {
        self.styled_text((x, y), Anchor::Start, "font-size=\"16\" font-weight=\"bold\"", text);
    }

    /// A centred text that reads upwards.
    pub fn upright_text(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        self.add(&format!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\">{text}</text>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &str) {
        self.add(&format!("<path d=\"M{x1:.1} {y1:.1} L{x2:.1} {y2:.1}\" {style}/>"));
    }

    /// A line through several points.
    pub fn polyline(&mut self, points: &[(f64, f64)], style: &str) {
        let points = joined(points);
        self.add(&format!("<polyline points=\"{points}\" fill=\"none\" {style}/>"));
    }

    /// A filled area with these corners.
    pub fn polygon(&mut self, points: &[(f64, f64)], style: &str) {
        let points = joined(points);
        self.add(&format!("<polygon points=\"{points}\" {style}/>"));
    }

    /// A circle.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, style: &str) {
        self.add(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" {style}/>"));
    }

    /// The whole drawing.
    pub fn finish(self) -> String {
        self.text + "</svg>\n"
    }
}

fn head(name: &str, width: f64, height: f64, font_size: f64, more: &str) -> String {
    format!(
        "<svg {name}viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"{font_size}\" role=\"img\"{more}>\n"
    )
}

fn joined(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (k, (x, y)) in points.iter().enumerate() {
        let space = if k == 0 { "" } else { " " };
        write!(text, "{space}{x:.1},{y:.1}").expect("a string takes everything");
    }
    text
}

/// `text` as XML: markup is escaped, and characters that XML cannot hold are left out.
pub fn escaped(text: &str) -> String {
    let allowed = |c: &char| {
        matches!(c, '\t' | '\n' | '\r') || *c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let text: String = text.chars().filter(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Whether every tag of `text` that opens also closes, in order: enough to tell XML from a broken
/// drawing.
#[doc(hidden)]
pub fn is_well_formed(text: &str) -> bool {
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

    #[test]
    fn names_are_escaped_and_what_xml_cannot_hold_is_dropped() {
        assert_eq!(escaped("a<b>&\u{1}\u{fffe}\tc\""), "a&lt;b&gt;&amp;\tc&quot;");
    }

    #[test]
    fn a_canvas_is_well_formed_and_says_so() {
        let mut canvas = Canvas::new(100.0, 50.0, 12.0, "a < b & c");
        canvas.heading((1.0, 2.0), "<heading>");
        canvas.upright_text((1.0, 2.0), "up & \"down\"");
        canvas.polyline(&[(1.0, 2.0), (3.0, 4.0)], "stroke=\"black\"");
        canvas.circle((1.0, 2.0), 3.0, "fill=\"red\"");
        let text = canvas.finish();
        assert!(is_well_formed(&text), "{text}");
        assert!(text.starts_with("<svg ") && text.contains("points=\"1.0,2.0 3.0,4.0\""), "{text}");
        // The check itself tells good from bad.
        assert!(!is_well_formed(&text.replace("</svg>", "")));
        assert!(!is_well_formed(&text.replace("&amp;", "&")));
        let inline = Canvas::inline(100.0, 50.0, 12.0, "a \"b\"").finish();
        assert!(is_well_formed(&inline) && !inline.contains("http"), "{inline}");
    }
}

//! Two histograms in one picture, as SVG: no fonts, scripts or files from elsewhere.
use std::fmt::Write as _;

/// What is drawn.
pub(crate) struct Picture<'a> {
    pub(crate) title: &'a str,
    /// What the scores are.
    pub(crate) axis: &'a str,
    /// A name and its scores, in order, for each of the two.
    pub(crate) series: [(&'a str, &'a [f64]); 2],
    /// Where the test draws its line, if anywhere.
    pub(crate) threshold: Option<f64>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Left, top, right and bottom of the plot.
const FRAME: (f64, f64, f64, f64) = (70.0, 60.0, 740.0, 360.0);
const BINS: usize = 60;
const COLOURS: [&str; 2] = ["#4477aa", "#cc6677"];

/// A histogram: the left end, the width of a bin, and the share of scores in each bin.
pub(crate) struct Histogram {
    pub(crate) from: f64,
    pub(crate) step: f64,
    pub(crate) shares: [Vec<f64>; 2],
}

/// Both series in the same bins. The outermost of a thousand scores at each end are counted in the last bins.
pub(crate) fn histogram(series: [&[f64]; 2]) -> Histogram {
    let at = |scores: &[f64], share: f64| scores[((scores.len() - 1) as f64 * share) as usize];
    let low = at(series[0], 0.001).min(at(series[1], 0.001));
    let high = at(series[0], 0.999).max(at(series[1], 0.999));
    let (from, span) = if high > low { (low, high - low) } else { (low - 0.5, 1.0) };
    let step = span / BINS as f64;
    let shares = series.map(|scores| {
        let mut shares = vec![0.0; BINS];
        for score in scores {
            let bin = ((score - from) / step).floor().clamp(0.0, (BINS - 1) as f64) as usize;
            shares[bin] += 1.0 / scores.len() as f64;
        }
        shares
    });
    Histogram { from, step, shares }
}

/// The picture as a whole file.
pub(crate) fn draw(picture: &Picture<'_>) -> String {
    let found = histogram(picture.series.map(|(_, scores)| scores));
    let (left, top, right, bottom) = FRAME;
    let to = found.from + found.step * BINS as f64;
    let most = found.shares.iter().flatten().fold(1e-9_f64, |m, s| m.max(*s));
    let x = |value: f64| left + (right - left) * (value - found.from) / (to - found.from);
    let y = |share: f64| bottom - (bottom - top) * share / most;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{title}</text>\n",
        title = escaped(picture.title)
    );
    let mut add = |line: String| writeln!(text, "{line}").expect("a string takes everything");
    for (shares, colour) in found.shares.iter().zip(COLOURS) {
        let mut path = format!("M{left:.1} {bottom:.1}");
        for (bin, share) in shares.iter().enumerate() {
            let (a, b) = (bin as f64 * found.step, (bin + 1) as f64 * found.step);
            let height = y(*share);
            write!(path, " L{:.1} {height:.1}", x(found.from + a)).expect("a string");
            write!(path, " L{:.1} {height:.1}", x(found.from + b)).expect("a string");
        }
        add(format!(
            "<path d=\"{path} L{right:.1} {bottom:.1} Z\" fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"/>"
        ));
    }
    add(format!("<path d=\"M{left} {top} V{bottom} H{right}\" fill=\"none\" stroke=\"black\"/>"));
    for tick in ticks(found.from, to) {
        let at = x(tick);
        add(format!("<path d=\"M{at:.1} {bottom} v5\" stroke=\"black\"/>"));
        let below = bottom + 20.0;
        add(format!("<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{tick}</text>"));
    }
    for tick in ticks(0.0, most) {
        let at = y(tick);
        add(format!("<path d=\"M{left} {at:.1} h-5\" stroke=\"black\"/>"));
        let (end, middle) = (left - 9.0, at + 4.5);
        add(format!("<text x=\"{end}\" y=\"{middle:.1}\" text-anchor=\"end\">{tick}</text>"));
    }
    if let Some(threshold) = picture.threshold.filter(|t| (found.from..to).contains(t)) {
        let at = x(threshold);
        add(format!(
            "<path d=\"M{at:.1} {top} V{bottom}\" stroke=\"black\" stroke-dasharray=\"5 4\"/>"
        ));
        let above = top - 4.0;
        add(format!("<text x=\"{at:.1}\" y=\"{above}\" text-anchor=\"middle\">threshold</text>"));
    }
    let (middle, below) = (0.5 * (left + right), bottom + 45.0);
    let axis = escaped(picture.axis);
    add(format!("<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{axis}</text>"));
    let upright = 0.5 * (top + bottom);
    add(format!(
        "<text transform=\"translate(18 {upright}) rotate(-90)\" text-anchor=\"middle\">share of runs</text>"
    ));
    for (k, ((name, _), colour)) in picture.series.iter().zip(COLOURS).enumerate() {
        let at = top + 8.0 + 22.0 * k as f64;
        let (box_, words, line) = (right - 150.0, right - 130.0, at + 11.0);
        add(format!(
            "<rect x=\"{box_}\" y=\"{at}\" width=\"13\" height=\"13\" fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"/>"
        ));
        add(format!("<text x=\"{words}\" y=\"{line}\">{}</text>", escaped(name)));
    }
    text + "</svg>\n"
}

/// About six round numbers from `low` to `high`.
pub(crate) fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|s| *s >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    // Rounded, so that 0.30000000000000004 is written as 0.3; the farther from 0, the more digits tell one from the next.
    let digits =
        (2.0 + (low.abs().max(high.abs()) / step).log10().ceil()).clamp(6.0, 16.0) as usize;
    let neat = |k: i64| format!("{:.digits$e}", k as f64 * step).parse().unwrap_or(0.0);
    let all = (0..12).map(|k| neat(first.saturating_add(k)));
    let mut ticks: Vec<f64> = all.take_while(|t| *t <= high + 1e-9 * step).collect();
    ticks.dedup();
    ticks
}

pub(crate) fn escaped(text: &str) -> String {
    // XML has no way to write the others.
    let allowed = |c: &char| {
        matches!(c, '\t' | '\n' | '\r') || *c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let text: String = text.chars().filter(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_no_score_is_lost() {
        let (a, b) = ([-1e9, 0.0, 0.5, 1.0], [1.0, 2.0, 2.0, 1e12]);
        let found = histogram([&a, &b]);
        for shares in &found.shares {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // All the same is a picture, too.
        let same = histogram([&[3.0; 5], &[3.0; 5]]);
        assert_eq!(same.shares[0].iter().filter(|s| **s > 0.0).count(), 1);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(ticks(-0.31, 0.34), [-0.2, 0.0, 0.2]);
        // Narrow ranges far from 0 end, and have marks that differ.
        assert_eq!(ticks(1e9, 1e9 + 1.0)[1], 1_000_000_000.2);
        for (low, high) in [(1.0, 1.0 + f64::EPSILON), (1e15, 1e15 + 0.5), (1e300, 2e300)] {
            let found = ticks(low, high);
            assert!(found.len() <= 12 && found.windows(2).all(|two| two[0] < two[1]), "{low}");
        }
    }

    #[test]
    fn names_are_escaped_and_what_xml_cannot_hold_is_dropped() {
        assert_eq!(escaped("a<b>&\u{1}\u{fffe}\tc"), "a&lt;b&gt;&amp;\tc");
    }

    #[test]
    fn a_picture_is_well_formed() {
        let scores: Vec<f64> = (0..100).map(f64::from).collect();
        let text = draw(&Picture {
            title: "a < b & c",
            axis: "score",
            series: [("without", &scores), ("with", &scores)],
            threshold: Some(50.0),
        });
        assert!(text.contains("a &lt; b &amp; c") && text.contains("threshold"));
        for tag in ["svg", "text", "title"] {
            let count = |what: &str| text.matches(what).count();
            let open = count(&format!("<{tag} ")) + count(&format!("<{tag}>"));
            assert_eq!(open, count(&format!("</{tag}>")), "{tag}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

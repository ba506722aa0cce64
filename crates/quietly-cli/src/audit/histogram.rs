//! The scores of an attack: two histograms in one chart.
use quietly::svg::{Anchor, Axis, COLOURS, Canvas, Plot};

/// What is drawn.
pub(super) struct Picture<'a> {
    pub(super) title: &'a str,
    /// What the scores are.
    pub(super) axis: &'a str,
    /// A name and its scores, in order, for each of the two.
    pub(super) series: [(&'a str, &'a [f64]); 2],
    /// The threshold of the test, if it has one.
    pub(super) threshold: Option<f64>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Left, top, right and bottom of the plot.
const FRAME: (f64, f64, f64, f64) = (70.0, 60.0, 740.0, 360.0);
const BINS: usize = 60;

/// A histogram: the left end, the width of a bin, and the share of scores in each bin.
pub(super) struct Histogram {
    pub(super) from: f64,
    pub(super) step: f64,
    pub(super) shares: [Vec<f64>; 2],
}

/// Both series in the same bins. The outermost of a thousand scores at each end are counted in the
/// last bins.
pub(super) fn histogram(series: [&[f64]; 2]) -> Histogram {
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

/// The chart as a file.
pub(super) fn draw(picture: &Picture<'_>) -> String {
    let found = histogram(picture.series.map(|(_, scores)| scores));
    let (left, top, right, bottom) = FRAME;
    let to = found.from + found.step * BINS as f64;
    let most = found.shares.iter().flatten().fold(1e-9_f64, |m, s| m.max(*s));
    let plot = Plot {
        x: Axis::linear(picture.axis).between((found.from, to), (left, right)),
        y: Axis::linear("share of runs").between((0.0, most), (bottom, top)),
    };
    let mut canvas = Canvas::new(WIDTH, HEIGHT, 13.0, picture.title);
    canvas.heading((left, 28.0), picture.title);
    plot.draw_axes(&mut canvas);
    let style = |k: usize| {
        let colour = COLOURS[k];
        format!("fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"")
    };
    for (k, shares) in found.shares.iter().enumerate() {
        let mut corners = vec![(left, bottom)];
        for (bin, share) in shares.iter().enumerate() {
            let edge = |bin: usize| found.from + bin as f64 * found.step;
            corners.extend([bin, bin + 1].iter().filter_map(|b| plot.at(edge(*b), *share)));
        }
        corners.push((right, bottom));
        canvas.polygon(&corners, &style(k));
    }
    if let Some(threshold) = picture.threshold.filter(|t| (found.from..to).contains(t)) {
        let x = plot.x.at(threshold).expect("within the bins");
        canvas.line((x, top), (x, bottom), "stroke=\"black\" stroke-dasharray=\"5 4\"");
        canvas.text((x, top - 4.0), Anchor::Middle, "threshold");
    }
    for (k, (name, _)) in picture.series.iter().enumerate() {
        let (x, y) = (right - 150.0, top + 8.0 + 22.0 * k as f64);
        let corners = [(x, y), (x + 13.0, y), (x + 13.0, y + 13.0), (x, y + 13.0)];
        canvas.polygon(&corners, &style(k));
        canvas.text((x + 20.0, y + 11.0), Anchor::Start, name);
    }
    canvas.finish()
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
        // All the same is a histogram, too.
        let same = histogram([&[3.0; 5], &[3.0; 5]]);
        assert_eq!(same.shares[0].iter().filter(|s| **s > 0.0).count(), 1);
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
        assert!(quietly::svg::is_well_formed(&text), "{text}");
        for part in ["a &lt; b &amp; c", "threshold", "score", "share of runs", "without"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

//! The ε-δ curve of a certificate, drawn into the page.
use std::fmt::Write as _;

use crate::certificate::Certificate;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Left, top, right and bottom of the plot.
const FRAME: (f64, f64, f64, f64) = (60.0, 16.0, 620.0, 250.0);

/// The picture and a line below it; a sentence where there is no curve.
pub(super) fn figure(certificate: &Certificate) -> String {
    let asked = certificate.asked;
    if !asked.is_private() {
        return "<p>Infinite, at every delta.</p>".into();
    }
    if asked.is_pure() {
        return format!("<p>Epsilon {} holds with delta 0.</p>", certificate.rounded());
    }
    let points = points(certificate);
    if points.len() < 2 || certificate.epsilon == 0.0 {
        return format!("<p>Epsilon {} at every delta.</p>", certificate.rounded());
    }
    let picture = svg(&points, (asked.delta(), asked.epsilon()), certificate.epsilon);
    format!(
        "{picture}\n<p>One release, many ways to say what it promises: every dot holds, and the line between them is for the eye. \
         The diamond is what was asked, the large dot what was spent; the others are a percent or so above what could be proven.</p>"
    )
}

/// The curve, and the point that the certificate speaks of.
fn points(certificate: &Certificate) -> Vec<(f64, f64)> {
    let own = (certificate.asked.delta(), certificate.epsilon);
    let drawable =
        |(delta, epsilon): &(f64, f64)| *delta > 0.0 && *delta <= 1.0 && epsilon.is_finite();
    let others = certificate.curve.iter().copied().filter(|point| point.0 != own.0);
    let mut points: Vec<(f64, f64)> = others.chain([own]).filter(drawable).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn svg(points: &[(f64, f64)], asked: (f64, f64), spent: f64) -> String {
    let (left, top, right, bottom) = FRAME;
    let (first, last) = (points[0].0.log10().floor(), points[points.len() - 1].0.log10().ceil());
    let most = points.iter().map(|point| point.1).fold(asked.1, f64::max);
    let x = |delta: f64| left + (right - left) * (delta.log10() - first) / (last - first).max(1.0);
    let y = |epsilon: f64| bottom - (bottom - top) * epsilon / most;
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\" role=\"img\" aria-label=\"epsilon against delta\">\n"
    );
    let mut add = |line: String| writeln!(text, "{line}").expect("a string takes everything");
    add(format!("<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#444\"/>"));
    let every = if last - first > 8.0 { 3 } else { 1 };
    for power in (first as i32..=last as i32).filter(|power| power % every == 0) {
        let at = x(10.0_f64.powi(power));
        let label = if power == 0 { "1".into() } else { format!("1e{power}") };
        add(format!("<path d=\"M{at:.1} {bottom}v5\" stroke=\"#444\"/>"));
        add(format!(
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 18.0
        ));
    }
    for tick in ticks(most) {
        let at = y(tick);
        add(format!("<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/>"));
        add(format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            left - 8.0,
            at + 4.0
        ));
    }
    let line: Vec<String> =
        points.iter().map(|(d, e)| format!("{:.1},{:.1}", x(*d), y(*e))).collect();
    add(format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>",
        line.join(" ")
    ));
    for (delta, epsilon) in points {
        let (across, up) = (x(*delta), y(*epsilon));
        add(format!("<circle cx=\"{across:.1}\" cy=\"{up:.1}\" r=\"2.5\" fill=\"#0072b2\"/>"));
    }
    let (across, up) = (x(asked.0), y(asked.1));
    add(format!(
        "<path d=\"M{across:.1} {up:.1}m-7 0l7 -7l7 7l-7 7z\" fill=\"none\" stroke=\"#d55e00\" stroke-width=\"2\"><title>asked</title></path>"
    ));
    add(format!(
        "<circle r=\"5\" cx=\"{across:.1}\" cy=\"{:.1}\" fill=\"#0072b2\"><title>spent</title></circle>",
        y(spent)
    ));
    let middle = 0.5 * (left + right);
    add(format!(
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">delta</text>",
        HEIGHT - 12.0
    ));
    let upright = 0.5 * (top + bottom);
    add(format!(
        "<text transform=\"translate(16 {upright}) rotate(-90)\" text-anchor=\"middle\">epsilon</text>"
    ));
    text + "</svg>"
}

/// About five round numbers from 0 to `most`.
fn ticks(most: f64) -> Vec<f64> {
    let rough = most / 5.0;
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough);
    let step = step.unwrap_or(rough);
    // Rounded, so that 0.30000000000000004 is written as 0.3.
    let neat = |k: i32| format!("{:.6e}", f64::from(k) * step).parse().unwrap_or(0.0);
    (0..=(most / step) as i32).map(neat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(1.0), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(ticks(3.9), [0.0, 1.0, 2.0, 3.0]);
        for most in [1e-4, 7.0, 999.9] {
            let found = ticks(most);
            assert!(
                (3..=7).contains(&found.len()) && found.iter().all(|t| *t <= most),
                "{found:?}"
            );
        }
    }
}

//! The ε-δ curve of a certificate, drawn into the page.
use quietly_core::certificate::Certificate;

use crate::svg::{Axis, COLOURS, Canvas, Plot};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Left, top, right and bottom of the plot.
const FRAME: (f64, f64, f64, f64) = (64.0, 16.0, 620.0, 250.0);

/// The chart and a line below it; a sentence where there is no curve.
pub(super) fn figure(certificate: &Certificate) -> String {
    let asked = certificate.budget;
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
    let chart = svg(&points, (asked.delta(), asked.epsilon()), certificate.epsilon);
    format!(
        "{chart}<p>One release satisfies many pairs of epsilon and delta: every dot is proven, and the line only connects them. \
         The diamond is the budget, the large dot the cost; the other dots are about a percent above the best bound.</p>"
    )
}

/// The curve, and the point that the certificate states.
fn points(certificate: &Certificate) -> Vec<(f64, f64)> {
    let own = (certificate.budget.delta(), certificate.epsilon);
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
    let ends = (10.0_f64.powf(first), 10.0_f64.powf(last.max(first + 1.0)));
    let most = points.iter().map(|point| point.1).fold(asked.1, f64::max);
    let plot = Plot {
        x: Axis::log("delta").between(ends, (left, right)),
        y: Axis::linear("epsilon").between((0.0, most), (bottom, top)),
    };
    let mut canvas = Canvas::inline(WIDTH, HEIGHT, 12.0, "epsilon against delta");
    plot.draw_axes(&mut canvas);
    let at = |(delta, epsilon)| plot.at(delta, epsilon).expect("finite, and delta is positive");
    let line: Vec<(f64, f64)> = points.iter().map(|point| at(*point)).collect();
    let [curve, mark, ..] = COLOURS;
    canvas.polyline(&line, &format!("stroke=\"{curve}\" stroke-width=\"2\""));
    line.iter().for_each(|place| canvas.circle(*place, 2.5, &format!("fill=\"{curve}\"")));
    let (x, y) = at(asked);
    canvas.add(&format!(
        "<path d=\"M{x:.1} {y:.1}m-7 0l7 -7l7 7l-7 7z\" fill=\"none\" stroke=\"{mark}\" stroke-width=\"2\">\
         <title>asked</title></path>"
    ));
    let y = at((asked.0, spent)).1;
    canvas.add(&format!(
        "<circle r=\"5\" cx=\"{x:.1}\" cy=\"{y:.1}\" fill=\"{curve}\"><title>spent</title></circle>"
    ));
    canvas.finish()
}

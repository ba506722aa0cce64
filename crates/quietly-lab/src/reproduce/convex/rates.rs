//! Rates under growth: claims, tables and charts.
use quietly::svg::{Axis, Chart, Point, Series};

use super::{
    growth::{BOUND, MEAN, METHODS, NOTHING, Risks, THETAS},
    instance::power,
    problem::{ITERATED, PHASED, PSA},
};
use crate::reproduce::{
    claim::{Check, Claim},
    report::{Entry, Grid},
};

/// The paper's methods, for slopes.
const SUBJECTS: [&str; 4] = [PHASED, PSA, ITERATED[1], "psa-ii"];

impl Risks<'_> {
    pub(super) fn claims(&self) -> Vec<Claim> {
        let mut claims = vec![];
        for theta in THETAS {
            for (by_size, over) in [(true, "n"), (false, "epsilon")] {
                let theory = self.theory(theta, by_size);
                let check = |method: &&str| {
                    let slope = self.slope(theta, by_size, method);
                    Check::within(format!("{method}:"), slope, theory - 0.4, theory + 0.4)
                };
                claims.push(Claim::new(
                    format!(
                        "growth with theta {theta}: the slope of the risk in {over} is that of (1/sqrt(n) + sqrt(d)/(n eps))^{:.2} here, {theory:.2}, within 0.4",
                        power(theta)
                    ),
                    "SHW, Theorems 11, 12 and 14",
                    SUBJECTS.iter().map(check).collect(),
                ));
            }
            let (rows, epsilon) = self.growing.base;
            let over = |method: &str| {
                let bound = self.growing.lower_bound(theta, rows, epsilon);
                self.risk(theta, rows, epsilon, method).map(|risk| risk / bound)
            };
            let near = [MEAN, PHASED, PSA, ITERATED[1]]
                .map(|method| Check::within(format!("{method}:"), over(method), 1.0, 100.0));
            claims.push(Claim::new(
                format!("theta {theta}: the risk is 1 to 100 times the lower bound, at n = {rows} and epsilon {epsilon}"),
                "SHW, Theorem 19; constants by our analysis",
                near.into(),
            ));
        }
        claims
    }

    pub(super) fn grids(&self) -> Vec<Grid> {
        let mut grids = vec![];
        for theta in THETAS {
            let mut columns = vec!["method".to_string()];
            columns.extend(self.growing.rows.iter().map(|n| format!("n {n}")));
            columns.push("slope in n".into());
            columns.extend(self.growing.epsilons.iter().map(|e| format!("eps {e}")));
            columns.push("slope in eps".into());
            let (base, epsilon) = self.growing.base;
            let mut rows = vec![];
            for method in METHODS.into_iter().chain([BOUND]) {
                let at = |n: usize, e: f64| Entry::of(self.risk(theta, n, e, method));
                let mut row = vec![Entry::Word(method.into())];
                row.extend(self.growing.rows.iter().map(|n| at(*n, epsilon)));
                row.push(Entry::of(self.slope(theta, true, method)));
                row.extend(self.growing.epsilons.iter().map(|e| at(base, *e)));
                row.push(Entry::of(self.slope(theta, false, method)));
                rows.push(row);
            }
            let mut theory = vec![Entry::Nothing; columns.len()];
            theory[0] = Entry::Word("theory's slope".into());
            theory[1 + self.growing.rows.len()] = Entry::Number(self.theory(theta, true));
            *theory.last_mut().expect("a row") = Entry::Number(self.theory(theta, false));
            rows.push(theory);
            grids.push(Grid {
                title: format!("Growth with theta {theta}: excess risk"),
                note: format!(
                    "Sizes at epsilon {epsilon}, budgets at n = {base}. \"Noisy mean\" releases the mean once and solves for w, a simulation: \
                     what the problem allows. \"Nothing learnt\" is w = 0. The lower bound is (1/theta) (d/(n^2 (exp(mu^2) - 1)))^(theta/(2 theta - 2)): \
                     privacy's part alone, for unbiased estimates at theta 2, and Theorem 19's order with the same constant at theta 4. AMP \
                     and Phased-ERM know no power but the square."
                ),
                columns,
                rows,
            });
        }
        grids
    }

    pub(super) fn pictures(&self) -> Vec<(String, String, String)> {
        let mut pictures = vec![];
        for theta in THETAS {
            for (by_size, over) in [(true, "n"), (false, "epsilon")] {
                let line = |method: &'static str| {
                    let points = self.points(by_size, &|n, e| self.risk(theta, n, e, method));
                    let point = |(x, y): (f64, f64)| Point { x, y, low: y, high: y };
                    let points: Vec<Point> = points.into_iter().map(point).collect();
                    let reference = [MEAN, BOUND, NOTHING].contains(&method);
                    Series { name: method.into(), points, reference }
                };
                let all = METHODS.into_iter().chain([BOUND]).map(line);
                let series = all.filter(|s| !s.points.is_empty()).collect();
                let caption = format!("growth with theta {theta}: excess risk over {over}");
                let (x, y) = (Axis::log(over), Axis::log("excess risk"));
                let chart = Chart { title: caption.clone(), x, y, series };
                pictures.push((format!("growth-{theta}-{over}.svg"), caption, chart.svg()));
            }
        }
        pictures
    }
}

//! The algorithms of the papers: prices, bits, and the rates that theory gives them.

use quietly::{
    Budget, FitInput, Link, Mechanism, Method, Neighbours, Plan, PlanRecord, Private, Regression,
    Sampler, Table,
};
use quietly_accounting::gaussian_mu;

use crate::{
    common::{LINKS, Plain, RELATIONS, Random, alike, bits, dot, json, options},
    plans::price,
};

/// The descents of the papers; one row a step is slow, and has tests of its own.
const FAST: [Method; 9] = [
    Method::AdaptiveGd,
    Method::DpAmbssgd,
    Method::DpAmbssgdPublished,
    Method::DpMbglmtron,
    Method::DpMbglmtronPublished,
    Method::DpTaglmtron,
    Method::DpPgd,
    Method::DpSgd,
    Method::DpSgdOnePass,
];

fn plan(link: Link, method: Method, rows: u64, width: usize, budget: Budget) -> Plan {
    let mut regression = Regression::new(link).method(method);
    if method == Method::DpPgd {
        regression = regression.radius(5.0);
    }
    regression.plan(rows, width, budget).unwrap()
}

fn on_each_link(method: Method) -> impl Iterator<Item = Link> {
    LINKS.into_iter().filter(move |link| method.about().links.contains(link))
}

#[test]
fn recipes_stay_within_their_budget_and_certificates_agree() {
    for method in FAST {
        for link in on_each_link(method) {
            for neighbours in RELATIONS {
                for (asked, rows, width) in [(0.1, 20_000, 10), (3.0, 1000, 3)] {
                    let budget = Budget::new(asked, 1e-6).unwrap().under(neighbours);
                    let plan = plan(link, method, rows, width, budget);
                    let what = format!("{} {} {neighbours:?} {asked}", method.name(), link.name());
                    assert!(
                        plan.epsilon() <= asked && plan.epsilon() > 0.97 * asked,
                        "{what}: {}",
                        plan.epsilon()
                    );
                    let back =
                        serde_json::from_str::<PlanRecord>(&serde_json::to_string(&plan).unwrap())
                            .unwrap();
                    assert!(alike(&json(&back), &json(&plan)), "{what}");
                    let certificate = plan.certificate("row", None).unwrap();
                    let again = price(certificate.sampler, &certificate.stages, budget);
                    assert!((again / certificate.epsilon - 1.0).abs() < 1e-6, "{what}: {again}");
                }
            }
        }
    }
}

/// docs/spec/regression.md#14, test 4: parts are never priced as an allocation, and a tree's rows pay for
/// every node they are in.
#[test]
fn parts_get_no_amplification() {
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let noise = |plan: &Plan| {
        let stage = plan.stages().iter().find(|s| s.name == "steps").unwrap();
        let Mechanism::Gaussian { noise } = stage.releases[0].mechanism else { panic!("a sum") };
        (noise, stage.releases[0].times)
    };
    // 1/μ for (1, 1e-6): 4.224 (docs/spec/regression.md#0.5, for one sum of sensitivity one).
    let (published, _) = noise(&plan(Link::Linear, Method::DpAmbssgdPublished, 10_000, 5, budget));
    assert!((4.22..4.6).contains(&published), "{published}");
    let (tree, times) = noise(&plan(Link::Relu, Method::DpTaglmtron, 10_000, 5, budget));
    assert_eq!(times, 4);
    assert!((2.0 * 4.22..2.0 * 5.3).contains(&tree), "{tree}");
    let (allocated, _) = noise(&plan(Link::Linear, Method::DpAmbssgd, 10_000, 5, budget));
    assert!(allocated < 0.5 * published, "{allocated}");
}

#[test]
fn a_method_for_another_model_is_refused() {
    let budget = Budget::new(1.0, 1e-6).unwrap();
    for (link, method) in [(Link::Linear, Method::DpGlmtron), (Link::Relu, Method::DpSsgd)] {
        let refused = Regression::new(link).method(method).plan(1000, 3, budget);
        assert!(matches!(refused, Err(quietly::Error::Parameter { name: "method", .. })));
    }
    let pgd = |r: Regression| r.method(Method::DpPgd).plan(1000, 3, budget);
    for radius in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
        assert!(pgd(Regression::new(Link::Linear).radius(radius)).is_err());
    }
    assert!(pgd(Regression::new(Link::Linear)).is_err());
    let public = Regression::new(Link::Relu).method(Method::DpGlmtron);
    assert!(public.plan(1000, 3, budget).is_err());
    let plan = public.with_public_rows().steps(50).plan(1000, 3, budget).unwrap();
    let rows = Private::new(Table::new(3, vec![0.0; 30], vec![0.0; 10]));
    let empty = Table::empty(3);
    for public in [None, Some(&empty)] {
        let options = options(1, 1).public(public);
        assert!(plan.fit(FitInput::table(&rows, (-1.0, 1.0)), options).is_err());
    }
}

/// x ~ N(0, I), read as within [-6, 6]; y = f(⟨x, w⟩) + σ·z.
struct Setting {
    link: Link,
    rows: usize,
    width: usize,
    sigma: f64,
    size: f64,
}

impl Setting {
    fn draw(&self, seed: u64) -> (Plain, Vec<f64>) {
        let mut random = Random(seed);
        let w: Vec<f64> = (0..self.width).map(|_| random.normal()).collect();
        let norm = dot(&w, &w).sqrt() / self.size;
        let w: Vec<f64> = w.iter().map(|w| w / norm).collect();
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for _ in 0..self.rows {
            let x: Vec<f64> = (0..self.width).map(|_| random.normal()).collect();
            ys.push(self.link.apply(dot(&x, &w)) + self.sigma * random.normal());
            xs.extend(x.iter().map(|x| x / 6.0));
        }
        (Plain { width: self.width, x: xs, y: ys }, w)
    }

    /// The median excess risk: ‖w - w*‖²/2 for linear models, a mean over fresh rows for ReLU ones.
    fn risk(&self, method: Method, epsilon: f64, seeds: u64) -> f64 {
        let budget = Budget::new(epsilon, 1e-6).unwrap().under(Neighbours::ReplaceOne);
        let plan = plan(self.link, method, self.rows as u64, self.width, budget);
        let range = 4.0 * (self.size + self.sigma);
        let mut risks: Vec<f64> = (0..seeds)
            .map(|seed| {
                let (table, w) = self.draw(100 + seed);
                let (intercept, found) =
                    crate::common::run(&plan, &table, (-range, range), seed, 2);
                let mut random = Random(seed);
                let fresh = 2000;
                let error = |_| {
                    let x: Vec<f64> = (0..self.width).map(|_| random.normal()).collect();
                    let u = dot(&x, &found) / 6.0 + intercept;
                    0.5 * (self.link.apply(u) - self.link.apply(dot(&x, &w))).powi(2)
                };
                (0..fresh).map(error).sum::<f64>() / f64::from(fresh)
            })
            .collect();
        risks.sort_by(f64::total_cmp);
        risks[risks.len() / 2]
    }
}

/// docs/spec/regression.md#14, test 9: the risk of (*) is 1.195·σ²d/2N + 4·1.82·σ²d²/(μN)², that of (**)
/// twice as much, with d counting the constant
/// and μ what gradients get. None where noise drowns a step, A > 1/40.
fn predicted(s: &Setting, epsilon: f64) -> Option<f64> {
    // Gradients get about three quarters of μ².
    let mu = 0.75_f64.sqrt() * gaussian_mu(epsilon, 1e-6).unwrap();
    let (d, n) = ((s.width + 1) as f64, s.rows as f64);
    let noise = 4.0 * 1.82 * (d / (mu * n)).powi(2);
    let (twice, curved) = if s.link == Link::Relu { (2.0, 4.0) } else { (1.0, 1.0) };
    let risk = twice * s.sigma * s.sigma * (1.195 * d / (2.0 * n) + noise);
    (curved * noise <= 1.0 / 40.0).then_some(risk)
}

/// (*) and (**) of docs/spec/regression.md#3 and #5, test 9 of #14, with ‖w*‖ = 1: measured over predicted
/// lies within a factor of two.
/// On the whole grid, which has up to 160 000 rows for both widths, it was 0.55 to 1.21 for linear models; these are its
/// corners that take seconds. For ReLU ‖w*‖/σ must not be much larger: at 30, twenty steps of GLMtron do not arrive. A risk is about a χ² of d + 1 degrees, so that the median of 7 (d = 10) or of 3 (d = 50)
/// has a relative standard deviation of 0.2 at most. The published sampler, which learns nothing here, is the control.
#[test]
fn risk_is_what_theory_predicts() {
    let (mut held, mut excluded) = (0, 0);
    for link in LINKS {
        for (rows, width, seeds) in
            [(20_000, 10, 7), (80_000, 10, 7), (20_000, 50, 3), (40_000, 50, 3)]
        {
            for (sigma, epsilon) in [(0.1, 0.1), (0.1, 1.0), (1.0, 0.1), (1.0, 1.0)] {
                let setting = Setting { link, rows, width, sigma, size: 1.0 };
                let Some(predicted) = predicted(&setting, epsilon) else {
                    excluded += 1;
                    continue;
                };
                let ratio = setting.risk(Method::AdaptiveGd, epsilon, seeds) / predicted;
                let what = format!("{} {rows} {width} {sigma} {epsilon}", link.name());
                println!("{what}: {ratio:.2}");
                assert!((0.5..2.0).contains(&ratio), "{what}: {ratio}");
                held += 1;
            }
        }
    }
    // A formula that excludes everything would hold everywhere.
    assert!(held >= 20 && excluded >= 2, "{held} {excluded}");
    for (rows, epsilon) in [(40_000, 0.1), (20_000, 1.0)] {
        let setting = Setting { link: Link::Linear, rows, width: 10, sigma: 1.0, size: 1.0 };
        let published = setting.risk(Method::DpAmbssgdPublished, epsilon, 3);
        assert!(published > 4.0 * predicted(&setting, epsilon).unwrap(), "{published}");
    }
}

/// docs/spec/regression.md#2 and #3: adaptive clipping follows the residuals, so that risk falls with σ²
/// (100 times between 1 and 0.1, checked
/// within 40 and 250); one clip for the whole run does not.
#[test]
fn adaptive_clips_follow_the_residuals() {
    let at = |sigma| Setting { link: Link::Linear, rows: 40_000, width: 10, sigma, size: 1.0 };
    let ratio = |method| at(1.0).risk(method, 0.1, 5) / at(0.1).risk(method, 0.1, 5);
    let adaptive = ratio(Method::DpAmbssgd);
    assert!((40.0..250.0).contains(&adaptive), "{adaptive}");
    let fixed = ratio(Method::DpSgd);
    assert!(fixed < 12.0, "{fixed}");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let setting = Setting { link: Link::Relu, rows: 3000, width: 5, sigma: 1.0, size: 2.0 };
    let (table, _) = setting.draw(1);
    for method in FAST {
        for link in on_each_link(method) {
            let budget = Budget::new(1.0, 1e-5).unwrap();
            let plan = plan(link, method, 3000, 5, budget);
            let run = |threads| bits(&crate::common::run(&plan, &table, (-10.0, 10.0), 7, threads));
            let one = run(1);
            assert!(one == run(2) && one == run(13), "{}", method.name());
        }
    }
}

/// One row a step: as many steps as rows, thresholds from public rows.
#[test]
fn one_row_a_step_learns_something() {
    let budget = Budget::new(2.0, 1e-5).unwrap();
    for (link, method) in [
        (Link::Linear, Method::DpSsgd),
        (Link::Relu, Method::DpGlmtron),
        (Link::Relu, Method::DpSgdOneRow),
    ] {
        let setting = Setting { link, rows: 4000, width: 4, sigma: 0.5, size: 2.0 };
        let (table, _) = setting.draw(3);
        let (public, _) = setting.draw(3);
        let public = Table::new(4, public.x[..800].to_vec(), public.y[..200].to_vec());
        let mut regression = Regression::new(link).method(method);
        if method.wants_public_rows() {
            regression = regression.with_public_rows();
        }
        let plan = regression.plan(4000, 4, budget).unwrap();
        assert_eq!(plan.sampler(), Sampler::RandomAllocation { steps: 4000 });
        let rows = table.private();
        let options = options(5, 2).public(&public);
        let fit = plan.fit(FitInput::table(&rows, (-10.0, 10.0)), options).unwrap();
        let found = fit.coefficients().unwrap();
        let left = table.squared_error(link, &found) / table.variance();
        assert!(left < 0.5, "{}: {left}", method.name());
    }
}

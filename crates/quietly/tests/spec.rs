//! Model specs become plans, or refusals.
use quietly::{Budget, Encoding, Error, Family, ModelSpec, Plan, Schema};

fn encoding(target: &str) -> Encoding {
    let text = format!(
        "rows = 9000\n[columns]\nage = {{ range = [0, 9] }}\nsex = {{ values = [1, 2] }}\ny = {target}"
    );
    let columns = ["age", "sex", "y"].map(String::from);
    Encoding::new(&Schema::parse(&text).unwrap(), &columns, None, Some("y")).unwrap()
}

fn plan(spec: &ModelSpec, target: &str) -> Result<Plan, Error> {
    spec.plan(&encoding(target), 9000, Budget::usual(1.0, None, 9000).unwrap())
}

const NUMBER: &str = "{ range = [0, 9] }";
const CLASSES: &str = "{ values = [0, 1] }";

#[test]
fn every_family_has_a_plan() {
    use Family::{Kan, Linear, Logistic, Quantile, Relu, Robust, Svm};
    for (family, target) in [
        (Linear, NUMBER),
        (Relu, NUMBER),
        (Robust, NUMBER),
        (Quantile, NUMBER),
        (Kan, NUMBER),
        (Kan, CLASSES),
        (Logistic, CLASSES),
        (Logistic, "{ values = [0, 1, 2] }"),
        (Svm, CLASSES),
    ] {
        let plan = plan(&ModelSpec::new(family), target).unwrap();
        assert!(plan.epsilon() <= 1.0, "{family:?}");
    }
}

#[test]
fn delta_stays_below_a_tenth_of_a_row() {
    for rows in [1, 10, 9_999, 10_000, 10_001, 1_000_000, u64::MAX] {
        let delta = Budget::usual(1.0, None, rows).unwrap().delta();
        assert!((1e-12..=1e-5).contains(&delta), "{rows}");
        assert!(delta <= 0.1 / rows as f64 * (1.0 + 1e-9) || delta == 1e-12, "{rows} {delta}");
    }
    assert!(Budget::usual(1.0, Some(0.0), 5).unwrap().is_pure());
    assert!(Budget::usual(1.0, Some(1.0), 5).is_err());
}

#[test]
fn unknown_keywords_are_refused() {
    let refused = |family: Family, target: &str, word: &str, change: fn(&mut ModelSpec)| {
        let mut spec = ModelSpec::new(family);
        change(&mut spec);
        let error = plan(&spec, target).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(Family::Linear, NUMBER, "method", |a| a.method = Some("magic".into()));
    refused(Family::Linear, NUMBER, "constraint", |a| a.constraint = Some("l7".into()));
    refused(Family::Logistic, CLASSES, "expand", |a| a.expand = Some("spline".into()));
    refused(Family::Logistic, CLASSES, "expand", |a| a.expand = Some("fourier=x".into()));
    refused(Family::Logistic, CLASSES, "only networks", |a| a.spline_basis = Some(5));
    refused(Family::Logistic, NUMBER, "classifier", |_| ());
    refused(Family::Svm, "{ values = [0, 1, 2] }", "two", |_| ());
    refused(Family::Linear, CLASSES, "range", |_| ());
    refused(Family::Kan, CLASSES, "expand", |a| a.expand = Some("fourier".into()));
    refused(Family::Kan, CLASSES, "ridge", |a| a.ridge = Some(1.0));
    refused(Family::Kan, CLASSES, "sampler", |a| a.sampler = Some("all".into()));
    refused(Family::Kan, CLASSES, "noise_correlation", |a| {
        a.noise_correlation = Some("banded=x".into());
    });
    refused(Family::Kan, CLASSES, "clipping_norm", |a| a.clipping_norm = Some("often".into()));
    refused(Family::Kan, CLASSES, "average", |a| a.average = Some("best".into()));
    refused(Family::Kan, CLASSES, "last_layer", |a| a.last_layer = Some("no".into()));
}

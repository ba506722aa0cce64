//! Every algorithm gives the bits that it gave before: the net under a change of structure.
//!
//! Each line of `golden/bits.txt` is one plan and its fit with a fixed seed: what was asked for, ε, how often releases are made, a
//! digest of all numbers of the plan's stages, and a digest of predictions for fixed rows. Names are left out, so that they may
//! change. Fits with 1 and 3 threads must agree. What the planner refuses has no line.
//!
//! A change that is meant to change bits records them anew, and says so in its commit:
//! `QUIETLY_GOLDEN=record cargo test -p quietly --test golden_bits`. Recorded on x86-64 Linux.
use std::{fmt::Write as _, fs, path::Path};

use quietly::{
    Budget, Charge, Encoding, Family, FitInput, FitOptions, Key, Method, Model, ModelSpec,
    Neighbours, Plan, ReadOptions, Schema, Source,
};
use serde_json::Value;

const ROWS: u64 = 600;

/// What is asked for beside family and method.
type Change = fn(&mut ModelSpec);

const OPTIONS: [(&str, Change); 5] = [
    ("plain", |_| {}),
    ("in a ball", |spec| (spec.constraint, spec.radius) = (Some("l2".into()), Some(2.0))),
    ("ridge in a ball", |spec| {
        (spec.constraint, spec.radius, spec.ridge) = (Some("l2".into()), Some(2.0), Some(0.1));
    }),
    ("radius", |spec| spec.radius = Some(2.0)),
    ("growth in a ball", |spec| {
        (spec.constraint, spec.radius) = (Some("l2".into()), Some(2.0));
        (spec.growth_exponent, spec.growth_constant) = (Some(2.0), Some(0.5));
    }),
];

/// Networks have one method and other options.
const NETWORKS: [(&str, Change); 5] = [
    ("plain", |_| {}),
    ("full, independent", |spec| network(spec, "full-batch", "independent")),
    ("poisson, independent", |spec| network(spec, "poisson", "independent")),
    ("bins, correlated", |spec| network(spec, "balls-and-bins", "lambda=0.5")),
    ("fixed-size, independent", |spec| network(spec, "fixed-size", "independent")),
];

fn network(spec: &mut ModelSpec, sampler: &str, noise: &str) {
    (spec.hidden_layer_sizes, spec.spline_basis) = (Some(vec![3]), Some(5));
    (spec.sampler, spec.noise_correlation) = (Some(sampler.into()), Some(noise.into()));
    (spec.epochs, spec.batches_per_epoch) = (Some(3), Some(4));
}

/// FNV-1a, 64 bits.
fn digest(words: impl IntoIterator<Item = u64>) -> u64 {
    let bytes = words.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// All numbers in a value, whatever their names.
fn numbers(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::Number(number) => found.push(number.as_f64().unwrap_or(f64::NAN).to_bits()),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| numbers(item, found)),
        _ => {}
    }
}

/// Three features, a number and a class to predict: no randomness but that of a simple generator.
fn table() -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut text = String::from("a,b,c,y,k\n");
    for _ in 0..ROWS {
        let [a, b, c] = [10.0 * uniform(), 2.0 * uniform() - 1.0, uniform()];
        let noise = uniform() + uniform() - 1.0;
        let y = (3.0 + 0.4 * a + 2.0 * b - c + noise).clamp(0.0, 10.0);
        let kind = if a / 10.0 + b + 0.3 * noise > 0.5 { "yes" } else { "no" };
        writeln!(text, "{a:.4},{b:.4},{c:.4},{y:.4},{kind}").unwrap();
    }
    text
}

/// What a model says of fixed rows.
fn predictions(model: &Model) -> u64 {
    let row = |i: u32| [37, 53, 29].map(|step| f64::from(i * step % 101) / 50.0 - 1.0);
    digest((0..40).map(|i| match model.link.is_classifier() {
        true => model.classify(&row(i)).score.to_bits(),
        false => model.predict(&row(i)).to_bits(),
    }))
}

struct Bench<'a> {
    source: &'a Source,
    schema: &'a Schema,
}

impl Bench<'_> {
    fn fit(&self, plan: &Plan, encoding: &Encoding, threads: usize) -> Result<Model, String> {
        let public = self.source.read_public(encoding, 1).unwrap();
        let charge = Charge::without_ledger(Key::from_seed(7));
        let options = FitOptions::new(charge).threads(threads).public(&public);
        let fit = plan.fit(FitInput::source(self.source, encoding), options);
        fit.and_then(|fit| fit.model("row")).map_err(|error| error.code().to_string())
    }

    /// One line: what came of a request.
    fn line(&self, spec: &ModelSpec, epsilon: f64, neighbours: Neighbours) -> String {
        let class = matches!(spec.family, Family::Logistic | Family::Svm);
        let target = if class { "k" } else { "y" };
        let features = ["a", "b", "c"].map(String::from);
        let encoding =
            Encoding::new(self.schema, self.source.columns(), Some(&features), Some(target))
                .unwrap();
        let budget = Budget::new(epsilon, 1e-5).unwrap().under(neighbours);
        let plan = match spec.plan(&encoding, ROWS, budget) {
            Ok(plan) => plan,
            Err(error) => return format!("refused {}", error.code()),
        };
        let steps: u64 = plan
            .stages()
            .iter()
            .map(|stage| stage.steps * stage.releases.iter().map(|c| c.times).sum::<u64>())
            .sum();
        let mut planned = Vec::new();
        numbers(&serde_json::to_value(plan.stages()).unwrap(), &mut planned);
        let fits = [1, 3].map(|threads| match self.fit(&plan, &encoding, threads) {
            Ok(model) => format!("{:016x}", predictions(&model)),
            Err(code) => format!("failed {code}"),
        });
        assert_eq!(fits[0], fits[1], "{spec:?} {neighbours:?}: threads change the bits");
        format!("{} x{steps} {:016x} {}", plan.epsilon(), digest(planned), fits[0])
    }
}

fn lines() -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, table()).unwrap();
    let schema = Schema::parse(&format!(
        "rows = {ROWS}\n[columns]\na = {{ range = [0, 10] }}\nb = {{ range = [-1, 1] }}\n\
         c = {{ range = [0, 1] }}\ny = {{ range = [0, 10] }}\nk = {{ values = [\"no\", \"yes\"] }}"
    ))
    .unwrap();
    let source = Source::open([&path], &ReadOptions::of_schema(&schema)).unwrap();
    let bench = Bench { source: &source, schema: &schema };
    use Family::{Kan, Linear, Logistic, Quantile, Relu, Robust, Svm};
    let mut text = String::new();
    let mut add = |family: Family, method: Method, (name, change): (&str, Change)| {
        let mut spec = ModelSpec { method: Some(method.name().into()), ..ModelSpec::new(family) };
        spec.public_rows = matches!(method, Method::DpGlmtron | Method::DpSgdOneRow);
        change(&mut spec);
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let found = bench.line(&spec, 2.0, neighbours);
            if !found.starts_with("refused") {
                let relation = neighbours.name();
                writeln!(text, "{family:?}, {}, {name}, {relation}: {found}", method.name())
                    .unwrap();
            }
        }
    };
    for family in [Linear, Relu, Logistic, Svm, Robust, Quantile] {
        for method in Method::ALL {
            OPTIONS.iter().for_each(|option| add(family, method, *option));
        }
    }
    NETWORKS.iter().for_each(|option| add(Kan, Method::Auto, *option));
    // Linear, bends of columns, bends of pairs as well.
    for epsilon in [0.5, 2.0, 40.0] {
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let found = bench.line(&ModelSpec::new(Family::Auto), epsilon, neighbours);
            let relation = neighbours.name();
            writeln!(text, "Auto, auto, epsilon {epsilon}, {relation}: {found}").unwrap();
        }
    }
    text
}

#[test]
fn every_algorithm_keeps_its_bits() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/bits.txt");
    let found = lines();
    if std::env::var_os("QUIETLY_GOLDEN").is_some_and(|word| word == "record") {
        fs::write(&path, &found).unwrap();
        return;
    }
    let wanted = fs::read_to_string(&path).unwrap();
    let other = wanted.lines().zip(found.lines()).find(|(wanted, found)| wanted != found);
    assert_eq!(other, None, "the first line that differs: wanted, found");
    assert_eq!(wanted.lines().count(), found.lines().count());
    for method in Method::ALL {
        let named = format!(", {}, ", method.name());
        let exact = method == Method::Exact;
        assert!(exact || found.contains(&named), "{} is not covered", method.name());
    }
    // The control: 32 methods under two relations are many lines, and no two fits are alike by chance.
    let mut digests: Vec<&str> = found.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    assert!(digests.len() > 60, "{}", digests.len());
    digests.sort_unstable();
    digests.dedup();
    assert!(digests.len() > 40, "{}", digests.len());
}

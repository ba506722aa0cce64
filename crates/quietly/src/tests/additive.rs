//! Additive regressions: what they learn, what their files say, and what is left where nothing bends.
use std::fmt::Write as _;

use quietly_core::{budget::Budget, charge::Charge, random::Random};
use quietly_data::{Encoding, Options, Schema, Source};
use quietly_noise::Key;

use crate::{
    Family, FitInput, FitOptions, Model, ModelSpec, any_algorithm::AnyAlgorithm, plan::Plan,
};

const ROWS: usize = 20_000;
/// The variance of targets that are a weighted sum.
const VARIANCE: f64 = (1.0 + 0.25 + 0.09 + 0.32) / 3.0 + 0.0625;

/// A row of features within [-1, 1] and a category, and a target within [-4, 4].
type Row = ([f64; 3], bool, f64);

/// A sum of functions of columns, and a product, if it `bends`; otherwise a weighted sum.
fn truth(x: &[f64; 3], group: bool, bends: bool) -> f64 {
    let group = if group { 0.5 } else { 0.0 };
    match bends {
        true => (3.0 * x[0]).sin() + x[1] * x[1] + 0.4 * x[1] * x[2] + group,
        false => x[0] + 0.5 * x[1] - 0.3 * x[2] + group,
    }
}

fn rows(seed: u64, count: usize, bends: bool) -> Vec<Row> {
    let mut random = Random(seed);
    let mut row = || {
        let x = [random.number(), random.number(), random.number()];
        let group = random.number() > 0.0;
        let noise = 0.4 * (random.number() + random.number());
        (x, group, truth(&x, group, bends) + noise)
    };
    (0..count).map(|_| row()).collect()
}

/// A table in a file, its encoding, and the plan for it under a family.
struct Bench {
    source: Source,
    encoding: Encoding,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(rows: &[Row]) -> Self {
        let mut text = String::from("a,b,c,g,y\n");
        for ([a, b, c], group, y) in rows {
            writeln!(text, "{a},{b},{c},{},{y}", if *group { "yes" } else { "no" }).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let columns = ["a", "b", "c"].map(|name| format!("{name} = {{ range = [-1, 1] }}\n"));
        let schema = Schema::parse(&format!(
            "rows = {ROWS}\n[columns]\n{}g = {{ values = [\"no\", \"yes\"] }}\ny = {{ range = [-4, 4] }}",
            columns.concat()
        ))
        .unwrap();
        let source = Source::open([&path], &Options::of_schema(&schema)).unwrap();
        let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).unwrap();
        Bench { source, encoding, _folder: folder }
    }

    fn plan(&self, family: Family, epsilon: f64) -> Plan {
        let budget = Budget::new(epsilon, 1e-6).unwrap();
        ModelSpec::new(family).plan(&self.encoding, ROWS as u64, budget).unwrap()
    }

    fn fit(&self, family: Family, epsilon: f64, seed: u64) -> Model {
        let plan = self.plan(family, epsilon);
        let options = FitOptions::new(Charge::without_ledger(Key::from_seed(seed))).threads(2);
        let input = FitInput::source(&self.source, &self.encoding);
        let fit = plan.fit(input, options).unwrap();
        fit.model("row").unwrap()
    }
}

/// The mean squared distance from the truth.
fn excess(model: &Model, bends: bool) -> f64 {
    let squares = rows(99, 4000, bends).into_iter().map(|(x, group, _)| {
        let said = model.predict(&[x[0], x[1], x[2], f64::from(u8::from(group))]);
        (said - truth(&x, group, bends)).powi(2)
    });
    squares.sum::<f64>() / 4000.0
}

/// Least squares leaves about 0.27 over of this truth, and an additive model with pairs can have all of it. Of twenty seeds, all were
/// between 0.0018 and 0.0027.
#[test]
fn functions_of_columns_are_learnt() {
    let bench = Bench::new(&rows(1, ROWS, true));
    let plan = bench.plan(Family::Auto, 3.0);
    assert!(matches!(plan.algorithm(), AnyAlgorithm::Additive(_)), "{:?}", plan.why);
    assert!(plan.epsilon() <= 3.0 && plan.why.as_deref().unwrap().contains("rung 6 of 6"));
    let plain = excess(&bench.fit(Family::Linear, f64::INFINITY, 0), true);
    let bent = excess(&bench.fit(Family::Auto, 3.0, 5), true);
    assert!(bent < 0.004 && plain > 0.2, "{bent} {plain}");
}

/// P4 of docs/spec/default.md#1: where nothing bends, the linear model is not made worse by more than .005 of the variance of the
/// target; and the gate leaves the bends out in most runs: in nineteen of twenty with other seeds, so that fewer than three of five
/// happens once in a thousand.
#[test]
fn where_nothing_bends_the_linear_model_stands() {
    let bench = Bench::new(&rows(2, ROWS, false));
    let mut without = 0;
    for seed in 0..5 {
        let model = bench.fit(Family::Auto, 1.0, seed);
        without += u32::from(model.bends.is_none());
        let linear = excess(&bench.fit(Family::Linear, 1.0, seed), false);
        let more = excess(&model, false) - linear;
        assert!(more < 0.005 * VARIANCE, "{more}");
    }
    assert!(without >= 3, "{without}");
}

/// Before it is held, a prediction is a constant, a function of every column and of every pair, and a weight for the category: at all
/// places of a grid.
#[test]
fn curves_and_maps_add_up_to_predictions() {
    let model = bench_of_bends();
    let model = model.unclamped();
    assert_eq!(model.bent_features(), [0, 1, 2]);
    let pairs = model.bent_pairs();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
    let curves: Vec<_> = (0..3).map(|j| model.curve(j, 9).unwrap()).collect();
    let maps: Vec<_> = pairs.iter().map(|pair| model.pair_map(*pair, 9).unwrap()).collect();
    assert_eq!((curves[0].at.len(), curves[0].at[2]), (9, -0.5));
    let mut constants = Vec::new();
    for places in [[0, 3, 5], [4, 4, 4], [8, 2, 1], [1, 7, 6]] {
        let row = places.map(|place| 0.25 * f64::from(place) - 1.0);
        let place = |j: usize| places[j] as usize;
        let mut sum: f64 = (0..3).map(|j| curves[j].adds[place(j)]).sum();
        for (&(i, j), map) in pairs.iter().zip(&maps) {
            sum += map.adds[9 * place(i) + place(j)];
            let turned = model.pair_map((j, i), 9).unwrap();
            assert!(
                (turned.adds[9 * place(j) + place(i)] - map.adds[9 * place(i) + place(j)]).abs()
                    < 1e-12
            );
        }
        constants.push(model.predict(&[row[0], row[1], row[2], 0.0]) - sum);
    }
    assert!(constants.iter().all(|c| (c - constants[0]).abs() < 1e-9), "{constants:?}");
    let crate::VarianceShares { columns, pairs, .. } = model.shares_of_variance();
    let all = columns.iter().map(|part| part.1).chain(pairs.iter().map(|part| part.1));
    assert!((all.sum::<f64>() - 1.0).abs() < 1e-9);
    // sin(3x) has most of the variance, c only that of a product.
    assert!(columns[0].1 > 0.5 && columns[2].1 < 0.1, "{columns:?}");
    assert!(model.curve(3, 9).is_none() && model.pair_map((0, 3), 9).is_none());
}

fn bench_of_bends() -> Model {
    Bench::new(&rows(1, ROWS, true)).fit(Family::Auto, 3.0, 5)
}

#[test]
fn files_keep_the_model_and_broken_ones_are_refused() {
    let model = bench_of_bends();
    let text = model.to_json();
    let read = Model::from_json(text.as_bytes(), "it").unwrap();
    assert_eq!(read, model);
    let row = [0.3, -0.7, 0.1, 1.0];
    assert_eq!(read.predict(&row).to_bits(), model.predict(&row).to_bits());
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value.as_object_mut().unwrap().shift_remove("digest");
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut broken = value.clone();
        change(&mut broken);
        Model::from_json(broken.to_string().as_bytes(), "it").is_err()
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|file| file["bends"]["kept"] = 1.5.into()));
    assert!(refused(&|file| file["bends"]["functions"] = 1_000_000.into()));
    assert!(refused(&|file| file["bends"]["functions"] = 7.into()));
    assert!(refused(&|file| file["bends"]["pairs"][0][0] = 9.into()));
    assert!(refused(&|file| file["bends"]["products"][0][0] = 9.into()));
    assert!(refused(&|file| _ = file["bends"]["weights"].as_array_mut().unwrap().pop()));
    assert!(refused(&|file| file["columns"] = serde_json::Value::Null));
    assert!(refused(&|file| file["clamped"] = false.into()));
    assert!(refused(&|file| file["plan"]["algorithm"]["rung"] = 7.into()));
    assert!(refused(&|file| file["plan"]["algorithm"]["shares"]["gate"] = 1.9.into()));
}

/// Five thousand columns are planned at once, and the plan says why they do not bend.
#[test]
fn wide_tables_are_planned_in_bounded_time() {
    let budget = Budget::new(8.0, 1e-9).unwrap();
    let numbers: Vec<usize> = (0..5000).collect();
    let plan = crate::plan::plan_auto_number(numbers, 50_000_000, 5000, budget).unwrap();
    assert!(!matches!(plan.algorithm(), AnyAlgorithm::Additive(_)));
    assert!(plan.why.unwrap().contains("features, more than 1000"));
}

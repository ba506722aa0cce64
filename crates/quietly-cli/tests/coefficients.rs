//! Coefficients are what they are said to be: of features within [-1, 1], and of columns in their own units.
use quietly::{Affine, Link, Model};

mod run;
use run::Folder;

const ROWS: usize = 20_000;
const SCHEMA: &str = "\
rows = 20000
[columns]
a = { range = [0, 10] }
b = { range = [-1, 1] }
c = { range = [100, 300] }
y = { range = [-8, 8] }
two = { values = [\"no\", \"yes\"] }
three = { values = [\"p\", \"q\", \"r\"] }
";

/// Numbers from 0 to 1, by SplitMix64.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Rows of features within [-1, 1], spread evenly and not around the middle.
fn rows(count: usize) -> Vec<[f64; 3]> {
    let mut state = 5;
    (0..count).map(|_| [0.0; 3].map(|_| (2.2 * uniform(&mut state) - 1.2).max(-1.0))).collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    let mut state = 6;
    let mut text = String::from("a,b,c,y,two,three\n");
    for [a, b, c] in rows(ROWS) {
        let u = 3.0 * a - 2.0 * b + c + 0.5;
        let noise: f64 = (0..3).map(|_| uniform(&mut state) - 0.5).sum();
        let two = if uniform(&mut state) < 1.0 / (1.0 + (-u).exp()) { "yes" } else { "no" };
        let scores = [u, 0.5 - a, b].map(|s| s - (1.0 / uniform(&mut state).max(1e-9)).ln().ln());
        let three =
            ["p", "q", "r"][(0..3).max_by(|i, j| scores[*i].total_cmp(&scores[*j])).unwrap()];
        text +=
            &format!("{},{b},{},{},{two},{three}\n", 5.0 + 5.0 * a, 200.0 + 100.0 * c, u + noise);
    }
    folder.write("t.csv", text);
    folder.write("s.toml", SCHEMA);
    folder
}

const KINDS: [(&str, &str); 7] = [
    ("linear", "y --features a,b,c"),
    ("relu", "y --features a,b,c"),
    ("robust", "y --features a,b,c"),
    ("quantile", "y --features a,b,c"),
    ("svm", "two --features a,b,c"),
    ("logistic", "two --features a,b,c"),
    ("logistic", "three --features a,b,c"),
];

fn fit(folder: &Folder, (kind, target): (&str, &str), epsilon: &str) -> Model {
    let path = folder.path("m.quietly");
    let _ = std::fs::remove_file(&path);
    folder.good(&format!(
        "fit {kind} t.csv --schema s.toml --target {target} --epsilon {epsilon} --delta 1e-6 --seed 1 --output m.quietly"
    ));
    Model::read(&path).unwrap()
}

fn sum(part: &Affine, row: &[f64]) -> f64 {
    part.intercept + part.weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>()
}

/// What a model says of a row: the score, the prediction, or of three classes the logarithms of their odds against the first.
fn said(model: &Model, row: &[f64]) -> Vec<f64> {
    match model.link {
        Link::Softmax => {
            // Probabilities are mixed with equal ones, so that none is below the least.
            let mixed = model.classify(row).probabilities;
            let least = model.least_probability.unwrap_or(0.0);
            let p: Vec<f64> =
                mixed.iter().map(|p| (p - least) / (1.0 - mixed.len() as f64 * least)).collect();
            p.iter().map(|x| (x / p[0]).ln()).collect()
        }
        Link::Logistic | Link::Svm => vec![model.classify(row).score],
        _ => vec![model.predict(row)],
    }
}

#[test]
fn a_score_is_the_sum_of_the_coefficients_where_nothing_is_cut() {
    let folder = folder();
    for kind in KINDS {
        let model = fit(&folder, kind, "1");
        let (affine, natural) = (model.affine(), model.natural().unwrap());
        let (mut within, mut beyond) = (0, 0.0_f64);
        for row in rows(500) {
            let units = [5.0 + 5.0 * row[0], row[1], 200.0 + 100.0 * row[2]];
            let by = |parts: &[Affine], row: &[f64]| -> Vec<f64> {
                let sums: Vec<f64> = parts.iter().map(|part| sum(part, row)).collect();
                match model.link {
                    Link::Softmax => sums.iter().map(|s| s - sums[0]).collect(),
                    Link::Relu => vec![sums[0].max(0.0)],
                    _ => sums,
                }
            };
            let right = said(&model, &row);
            let off = |sums: Vec<f64>| {
                right.iter().zip(sums).map(|(f, s)| (f - s).abs()).fold(0.0, f64::max)
            };
            if model.is_affine_at(&row) {
                within += 1;
                // Probabilities of three classes lose digits.
                let near = if model.link == Link::Softmax { 1e-7 } else { 1e-9 };
                assert!(off(by(&affine, &row)) < near, "{kind:?} {}", off(by(&affine, &row)));
                assert!(off(by(&natural, &units)) < near, "{kind:?}");
            } else {
                beyond = beyond.max(off(by(&affine, &row)));
            }
        }
        assert!(within > 50, "{kind:?}: {within}");
        // The control: where rows are clipped, the sum is something else, and so are the weights behind the map.
        let mapped = model.rows.is_some();
        assert_eq!(model.scaled() != affine, mapped, "{kind:?}");
        assert!(if mapped { beyond > 1e-3 } else { model.clamped || beyond == 0.0 }, "{kind:?}");
    }
}

/// Within 5 %. The seed is fixed. ReLU regression is left out: half of these targets are below 0, which no ReLU model fits.
#[test]
fn without_noise_to_speak_of_coefficients_are_the_plain_ones() {
    let folder = folder();
    for kind in KINDS.into_iter().filter(|(name, _)| *name != "relu") {
        let flat = |model: &Model| -> Vec<f64> {
            let parts = model.affine();
            // Of three classes only differences count.
            let base = if parts.len() > 1 { parts[0].weights.clone() } else { vec![0.0; 3] };
            parts
                .iter()
                .flat_map(|p| p.weights.iter().zip(&base).map(|(w, b)| w - b).collect::<Vec<_>>())
                .collect()
        };
        let (nearly, plain) = (flat(&fit(&folder, kind, "1000")), flat(&fit(&folder, kind, "inf")));
        let norm = |w: &[f64]| w.iter().map(|w| w * w).sum::<f64>().sqrt();
        let apart: Vec<f64> = nearly.iter().zip(&plain).map(|(a, b)| a - b).collect();
        let off = norm(&apart) / norm(&plain);
        assert!(off < 0.05, "{kind:?}: off by {off:.4}\n{nearly:?}\n{plain:?}");
    }
}

#[test]
fn show_writes_one_equation_in_units_of_the_columns() {
    let folder = folder();
    let model = fit(&folder, KINDS[5], "1");
    let text = folder.good("show m.quietly").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in units of the columns: u = ") && text.contains("[a]"), "{text}");
    assert!(text.contains("Rows farther from the centre than the radius"), "{text}");
    let json = folder.json("show m.quietly");
    let natural = &model.natural().unwrap()[0];
    assert_eq!(json["outputs"][0]["intercept_in_units"], natural.intercept);
    assert_eq!(json["outputs"][0]["weights"][2]["per_unit"], natural.weights[2]);
    assert_eq!(json["clips_rows"], true);
}

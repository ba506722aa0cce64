use quietly_core::{budget::Budget, random::Random};
use quietly_data::{Encoding, Private, Schema, Table};
use quietly_engine::{
    expansion::{Expander, Expansion},
    link::Link,
};
use quietly_glm::Loss;
use quietly_kan::Input;

use crate::plan::{FitInput, test_support::options};
use crate::{
    methods::Method,
    plan::{Convex, Regression},
};

fn encoding() -> Encoding {
    let schema = "rows = 100\n[columns]\na = { range = [0, 1] }\nc = { values = ['u', 'v', 'w'] }\n\
                  b = { range = [-1, 1] }\ny = { range = [0, 1] }";
    let columns = ["a", "c", "b", "y"].map(String::from);
    Encoding::new(&Schema::parse(schema).unwrap(), &columns, None, Some("y")).unwrap()
}

fn norm(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn splines_are_those_of_every_number_in_its_place() {
    let splines = Expansion::splines(&encoding(), 5);
    assert_eq!((splines.inputs(), splines.width()), (4, 12));
    let names = splines.names(&["a", "c=v", "c=w", "b"].map(String::from));
    assert_eq!((&*names[4], &*names[5], &*names[6], &*names[7]), ("a #5", "c=v", "c=w", "b #1"));
    let expander = Expander::new(&splines).unwrap();
    // At the left end, cubics are 1/6, 4/6, 1/6, 0; at the right end the other way around.
    let row = expander.apply(&[-1.0, 0.0, 1.0, 7.0]);
    let sixths = [1.0, 4.0, 1.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 1.0, 4.0, 1.0];
    assert!(row.iter().zip(sixths).all(|(x, n)| (x - n / 6.0).abs() < 1e-15), "{row:?}");
    // What is missing has no splines.
    let row = expander.apply(&[f64::NAN, f64::NAN, 1.0, f64::NEG_INFINITY]);
    assert_eq!(row[..7], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert!((row[7] - 1.0 / 6.0).abs() < 1e-15);
}

/// cos a cos b has the mean ½ cos(a - b) over a random phase, and cos ⟨w, z⟩ the mean exp(-‖z‖²/2·width²) over normal w. The
/// mean of 20 000 products errs by less than 0.04 but for one in a million.
#[test]
fn waves_make_the_kernel() {
    let waves = Expansion::RandomFourier { inputs: 3, count: 20_000, width: 0.7, seed: 5 };
    let expander = Expander::new(&waves).unwrap();
    let dot = |x: &[f64], y: &[f64]| {
        let (x, y) = (expander.apply(x), expander.apply(y));
        x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>()
    };
    let mut random = Random(3);
    for _ in 0..10 {
        let [x, y]: [[f64; 3]; 2] =
            std::array::from_fn(|_| std::array::from_fn(|_| random.number()));
        let square: f64 = x.iter().zip(&y).map(|(x, y)| (x - y) * (x - y)).sum();
        let kernel = |width: f64| (-0.5 * square / (width * width)).exp();
        assert!((dot(&x, &y) - kernel(0.7)).abs() < 0.04);
    }
    // Another width would be seen.
    let far = dot(&[0.5, 0.0, 0.0], &[-0.5, 0.0, 0.0]);
    assert!((far - (-0.5_f64).exp()).abs() > 0.1 && (far - (-0.5_f64 / 0.49).exp()).abs() < 0.04);
    // The same seed gives the same waves, another one others.
    assert_eq!(Expander::new(&waves).unwrap(), expander);
    let other = Expansion::RandomFourier { inputs: 3, count: 20_000, width: 0.7, seed: 6 };
    assert_ne!(Expander::new(&other).unwrap(), expander);
}

/// Whatever a row holds, it is no longer than the schema says, and some rows are nearly as long.
#[test]
fn no_expanded_row_is_longer_than_it_may_be() {
    let (encoding, mut random) = (encoding(), Random(1));
    for (expansion, near) in
        [(Expansion::splines(&encoding, 6), 0.99), (Expansion::waves(&encoding, 40), 0.6)]
    {
        let (expander, longest) =
            (Expander::new(&expansion).unwrap(), expansion.longest(&encoding));
        let mut most = 0_f64;
        for i in 0..3000 {
            let hot = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]][i % 3];
            let number = |x: f64| if i % 7 == 0 { x.signum() } else { 3.0 * x };
            let row = [number(random.number()), hot[0], hot[1], number(random.number())];
            let expanded = expander.apply(&row);
            assert!(expanded.iter().all(|x| x.abs() <= 1.0));
            most = most.max(norm(&expanded));
        }
        assert!(most <= longest * (1.0 + 1e-12), "{most} of {longest}");
        assert!(most > near * longest, "{most} of {longest}");
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let refused = |expansion: &Expansion, word: &str| {
        let error = expansion.check().expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    let splines =
        |functions, degree| Expansion::Splines { inputs: vec![Input::Spline], functions, degree };
    assert!(splines(4, 3).check().is_ok());
    refused(&splines(3, 3), "splines");
    refused(&splines(257, 3), "splines");
    refused(&splines(8, 0), "degree");
    refused(&splines(8, 6), "degree");
    refused(&Expansion::Splines { inputs: vec![], functions: 8, degree: 3 }, "at least 1");
    let waves = |inputs, count, width| Expansion::RandomFourier { inputs, count, width, seed: 0 };
    assert!(waves(3, 2, 1.0).check().is_ok());
    refused(&waves(0, 2, 1.0), "at least 1");
    refused(&waves(3, 1, 1.0), "fourier");
    refused(&waves(1 << 20, 1 << 10, 1.0), "fourier");
    refused(&waves(3, 9, 0.0), "width");
    refused(&waves(3, 9, f64::NAN), "width");
}

/// An expansion that does not fit is refused when it is put in, and when a plan was changed.
#[test]
fn a_plan_and_its_expansion_go_together() {
    let (budget, splines) = (Budget::new(1.0, 1e-5).unwrap(), Expansion::splines(&encoding(), 5));
    let convex = Convex::new(Loss::Logistic);
    let plan = convex.plan(5000, 12, budget).unwrap().expanding(splines.clone()).unwrap();
    assert_eq!((plan.width(), plan.inputs()), (12, 4));
    assert!(plan.record().check().is_ok());
    let text = serde_json::to_string(&plan).unwrap();
    let read: crate::plan::PlanRecord = serde_json::from_str(&text).unwrap();
    assert!(read == plan.record() && read.check().is_ok());
    let changed = |expansion: Expansion| {
        let mut changed = plan.record();
        changed.set_expansion(expansion);
        changed.check()
    };
    let error = changed(Expansion::splines(&encoding(), 6));
    assert!(error.unwrap_err().to_string().contains("expanded features"));
    let inputs = vec![Input::Spline; 4];
    assert!(changed(Expansion::Splines { inputs, functions: 3, degree: 3 }).is_err());
    // Another one that fits is as private: nothing that is charged hangs on it.
    let waves = Expansion::RandomFourier { inputs: 4, count: 12, width: 1.0, seed: 9 };
    assert!(changed(waves).is_ok());
    let narrow = convex.plan(5000, 11, budget).unwrap();
    assert!(narrow.expanding(splines.clone()).is_err());
    let streamed = Regression::new(Link::Linear).method(Method::OnePass);
    let streamed = streamed.plan(1_000_000, 12, budget).unwrap();
    let error = streamed.expanding(splines).unwrap_err().to_string();
    assert!(error.contains("one-pass"), "{error}");
}

/// A circle in a square: no weighted sum of x and y tells inside from outside, and sums of splines do.
fn circle(rows: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random(seed);
    let features: Vec<f64> = (0..2 * rows).map(|_| random.number()).collect();
    let inside = |x: &[f64]| x[0] * x[0] + x[1] * x[1] < 0.6;
    let target = features.chunks_exact(2).map(|x| f64::from(u8::from(inside(x)))).collect();
    (features, target)
}

#[test]
fn logistic_regression_bends_on_splines_and_waves() {
    let (rows, budget) = (4000, Budget::new(1.0, 1e-5).unwrap());
    let (features, target) = circle(rows, 1);
    let table = Private::new(Table::new(2, features, target));
    let (features, target) = circle(2000, 2);
    let right = |expansion: Option<Expansion>| {
        let width = expansion.as_ref().map_or(2, Expansion::width);
        let mut plan = Convex::new(Loss::Logistic).plan(rows as u64, width, budget).unwrap();
        if let Some(expansion) = expansion {
            plan = plan.expanding(expansion).unwrap();
        }
        let fit = plan.fit(FitInput::table(&table, (0.0, 1.0)), options(4, 2)).unwrap();
        let learnt = fit.weights().unwrap();
        let fits = |(x, y): (&[f64], &f64)| (learnt.scores(x)[0] > 0.0) == (*y > 0.5);
        features.chunks_exact(2).zip(&target).filter(|pair| fits(*pair)).count()
    };
    let (inputs, functions, degree) = (vec![Input::Spline; 2], 6, 3);
    let plain = right(None);
    let splines = right(Some(Expansion::Splines { inputs, functions, degree }));
    let waves = right(Some(Expansion::RandomFourier { inputs: 2, count: 64, width: 0.7, seed: 1 }));
    assert!(plain < 1300, "{plain}");
    assert!(splines > 1800 && waves > 1800, "{splines}, {waves}");
}

/// A curve that no line follows, by full batch and exactly: the residuals of a line are those of x² on [-1, 1], 4/45.
#[test]
fn least_squares_bend_on_splines() {
    let x: Vec<f64> = (0..5000).map(|i| f64::from(i * 7 % 5000) / 2500.0 - 1.0).collect();
    let y: Vec<f64> = x.iter().map(|x| x * x).collect();
    let splines = Expansion::Splines { inputs: vec![Input::Spline], functions: 6, degree: 3 };
    let expander = Expander::new(&splines).unwrap();
    let table = Private::new(Table::new(1, x.clone(), y.clone()));
    for (epsilon, most) in [(2.0, 0.01), (f64::INFINITY, 1e-9)] {
        let budget = Budget::new(epsilon, 1e-5).unwrap();
        let plan = Regression::new(Link::Linear).plan(5000, splines.width(), budget).unwrap();
        let plan = plan.expanding(splines.clone()).unwrap();
        let fit = plan.fit(FitInput::table(&table, (0.0, 1.0)), options(2, 2)).unwrap();
        let (intercept, w) = fit.coefficients().unwrap();
        let error = |(x, y): (&f64, &f64)| {
            let row = expander.apply(&[*x]);
            (row.iter().zip(&w).map(|(b, w)| b * w).sum::<f64>() + intercept - y).powi(2)
        };
        let mean = x.iter().zip(&y).map(error).sum::<f64>() / 5000.0;
        assert!(mean < most, "epsilon {epsilon}: {mean}");
    }
}

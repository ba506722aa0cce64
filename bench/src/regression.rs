//! Fits, beside reading the same numbers and beside the libraries people use without privacy.
use std::{hint::black_box, ops::ControlFlow, time::Instant};

use quietly::{
    Budget, Charge, Encoding, FitInput, FitOptions, Key, Link, Method, Plan, Private, ReadOptions,
    Regression, Schema, Source, Table,
};

use crate::{
    Line, best, recipe,
    rival::{Rival, find},
    seconds,
};

pub(crate) const THREADS: usize = 2;
pub(crate) const SHAPES: [(usize, usize); 2] = [(1_000_000, 20), (200_000, 200)];
/// Runs of which the fastest counts; other work on the machine comes and goes.
pub(crate) const RUNS: usize = 9;

/// A fit whose noise is the same in every run.
pub(crate) fn options<'a>(threads: usize) -> FitOptions<'a> {
    FitOptions::new(Charge::without_ledger(Key::from_seed(1))).threads(threads)
}

pub(crate) fn lines(rivals: &[Rival]) -> Vec<Line> {
    let mut lines = vec![];
    for shape in SHAPES {
        lines.extend(compare(shape, rivals));
    }
    lines.extend(recipe::lines());
    lines.extend(growth());
    lines.extend(from_csv(rivals));
    lines
}

/// Numbers of a table, kept to make copies of it.
pub(crate) struct Numbers {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) features: Vec<f64>,
    pub(crate) target: Vec<f64>,
}

impl Numbers {
    /// Features uniform within [-1, 1], and a target that depends on all of them.
    pub(crate) fn new(rows: usize, width: usize) -> Self {
        // Marsaglia's xorshift: any numbers will do.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut number = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let features: Vec<f64> = (0..rows * width).map(|_| number()).collect();
        let weights: Vec<f64> = (0..width).map(|_| number()).collect();
        let score = |x: &[f64]| x.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>();
        let target = features.chunks_exact(width).map(score).collect::<Vec<_>>();
        let target = target.into_iter().map(|u| u + number()).collect();
        Numbers { rows, width, features, target }
    }

    fn table(&self) -> Private<Table> {
        Private::new(Table::new(self.width, self.features.clone(), self.target.clone()))
    }

    fn plan(&self, method: Method) -> Plan {
        self.plan_of(Regression::new(Link::Linear).method(method))
    }

    pub(crate) fn plan_of(&self, regression: Regression) -> Plan {
        let budget = Budget::new(1.0, 1e-6).expect("a valid budget");
        regression.plan(self.rows as u64, self.width, budget).expect("a budget that can be met")
    }

    /// Seconds of one fit, and of each part of it: what comes before the first step, the steps, and what comes after.
    pub(crate) fn fit(&self, plan: &Plan, threads: usize) -> (f64, Vec<f64>) {
        let table = self.table();
        let mut at = vec![Instant::now()];
        let watch = &mut |_| {
            at.push(Instant::now());
            ControlFlow::Continue(())
        };
        let range = (-self.target_range(), self.target_range());
        let options = options(threads).watch(watch);
        let model = plan.fit(FitInput::table(&table, range), options).expect("a model");
        at.push(Instant::now());
        black_box(model);
        let parts = at.windows(2).map(|w| (w[1] - w[0]).as_secs_f64()).collect();
        ((at[at.len() - 1] - at[0]).as_secs_f64(), parts)
    }

    fn target_range(&self) -> f64 {
        self.width as f64
    }

    /// Adds up all features, and does nothing else.
    fn read(&self, threads: usize) {
        let share = self.features.len().div_ceil(threads);
        std::thread::scope(|scope| {
            for part in self.features.chunks(share) {
                scope.spawn(|| black_box(pulp::Arch::new().dispatch(Sum(part))));
            }
        });
    }
}

/// A sum in as many lanes as keep memory busy.
struct Sum<'a>(&'a [f64]);

impl pulp::NullaryFnOnce for Sum<'_> {
    type Output = f64;

    #[inline(always)]
    fn call(self) -> f64 {
        let (chunks, rest) = self.0.as_chunks::<32>();
        let mut sums = [0.0; 32];
        for chunk in chunks {
            for (sum, x) in sums.iter_mut().zip(chunk) {
                *sum += x;
            }
        }
        sums.iter().chain(rest).sum()
    }
}

/// The fastest of several runs of each, taken in turns, so that all have the same chances of a quiet machine.
struct Times {
    read: f64,
    one_pass: f64,
    one_pass_alone: f64,
    full_batch: f64,
    full_batch_alone: f64,
}

impl Times {
    fn new(numbers: &Numbers) -> Self {
        let [one_pass, full_batch] = [Method::OnePass, Method::FullBatch].map(|m| numbers.plan(m));
        let mut least = [f64::INFINITY; 5];
        for _ in 0..RUNS {
            let two = |plan: &Plan| numbers.fit(plan, THREADS).0;
            let alone = |plan: &Plan| numbers.fit(plan, 1).0;
            let now = [
                best(3, || numbers.read(THREADS)),
                two(&one_pass),
                alone(&one_pass),
                two(&full_batch),
                alone(&full_batch),
            ];
            least.iter_mut().zip(now).for_each(|(least, now)| *least = least.min(now));
        }
        let [read, one_pass, one_pass_alone, full_batch, full_batch_alone] = least;
        Times { read, one_pass, one_pass_alone, full_batch, full_batch_alone }
    }
}

fn compare(shape: (usize, usize), rivals: &[Rival]) -> Vec<Line> {
    let name = |what: &str| format!("{} x {}: {what}", shape.0, shape.1);
    let numbers = Numbers::new(shape.0, shape.1);
    let times = Times::new(&numbers);
    println!(
        "{}",
        name(&format!(
            "reading {:.2} ms, one pass {:.2} ms, full batch {:.1} ms",
            1e3 * times.read,
            1e3 * times.one_pass,
            1e3 * times.full_batch
        ))
    );
    let mut lines =
        vec![Line::at_most(name("one pass / reading"), times.one_pass / times.read, 1.5, "x")];
    match (find(rivals, "numpy gradient", shape), find(rivals, "scikit-learn", shape)) {
        (Some(numpy), Some(theirs)) => lines.extend([
            Line::at_most(
                name("one pass / numpy gradient"),
                times.one_pass / numpy.seconds,
                1.5,
                "x",
            ),
            Line::at_least(
                name("scikit-learn / one pass"),
                theirs.seconds / times.one_pass,
                10.0,
                "x",
            ),
            Line::at_most(
                name("full batch / scikit-learn"),
                times.full_batch / theirs.seconds,
                2.0,
                "x",
            ),
        ]),
        _ => println!("left out: fits beside numpy and scikit-learn (run `make bench`)"),
    }
    lines.extend([
        Line::at_least(
            name("one pass, two threads"),
            times.one_pass_alone / times.one_pass,
            1.7,
            "x",
        ),
        Line::at_least(
            name("full batch, two threads"),
            times.full_batch_alone / times.full_batch,
            1.7,
            "x",
        ),
    ]);
    lines
}

/// The exponent of the number of rows in the time of a fit, by least squares on logarithms.
fn growth() -> Vec<Line> {
    let sizes = [100_000, 200_000, 400_000, 800_000, 1_600_000];
    let exponent = |method: Method| {
        let points = sizes.map(|rows| {
            let numbers = Numbers::new(rows, 20);
            let plan = numbers.plan(method);
            let time =
                (0..RUNS).map(|_| numbers.fit(&plan, THREADS).0).fold(f64::INFINITY, f64::min);
            ((rows as f64).ln(), time.ln())
        });
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / 5.0;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let slope: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
        slope / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
    };
    [("one pass", Method::OnePass), ("full batch", Method::FullBatch)]
        .map(|(name, method)| {
            let name = format!("100000..1600000 x 20: {name}, exponent of rows");
            Line::at_most(name, exponent(method), 1.05, "")
        })
        .into()
}

/// From a CSV file to a model, beside reading that file with polars.
fn from_csv(rivals: &[Rival]) -> Vec<Line> {
    let Some(theirs) = rivals.iter().find(|r| r.scheme == "polars") else {
        println!("left out: CSV to model beside polars (run `make bench`)");
        return vec![];
    };
    let path = theirs.path.as_deref().expect("the file that polars read");
    let (rows, width) = (theirs.parameters[0] as u64, theirs.parameters[1] as usize);
    let text = format!(
        "rows = {rows}\n[columns]\n\"*\" = {{ range = [-1, 1] }}\ny = {{ range = [-20, 20] }}\n"
    );
    let schema = Schema::parse(&text).expect("a valid schema");
    let budget = Budget::new(1.0, 1e-6).expect("a valid budget");
    let plan = Regression::new(Link::Linear).plan(rows, width, budget).expect("a plan");
    let fit = || {
        let source = Source::open([path], &ReadOptions::default()).expect("a CSV file");
        let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).expect("columns");
        let table = source.read(&encoding, THREADS).expect("a table");
        let model = plan.fit(FitInput::table(&table, (-20.0, 20.0)), options(THREADS));
        black_box(model.expect("a model"));
    };
    let name = format!("{rows} x {width}: CSV to model / polars read_csv");
    vec![Line::at_most(name, best(5, fit) / theirs.seconds, 1.5, "x")]
}

/// Where the time of a fit goes, in milliseconds; no targets.
pub(crate) fn breakdown() -> Vec<Line> {
    for (rows, width) in SHAPES {
        let numbers = Numbers::new(rows, width);
        let read = best(15, || numbers.read(THREADS));
        println!("{rows} x {width}: reading {:.2}", 1e3 * read);
        for method in [Method::OnePass, Method::FullBatch] {
            let mut plan = None;
            let planning = seconds(|| plan = Some(numbers.plan(method)));
            let plan = plan.expect("made just now");
            let runs: Vec<_> = (0..RUNS).map(|_| numbers.fit(&plan, THREADS)).collect();
            let total = runs.iter().map(|r| r.0).fold(f64::INFINITY, f64::min);
            let part = |k: usize| runs.iter().map(|r| r.1[k]).fold(f64::INFINITY, f64::min);
            let parts: Vec<String> =
                (0..runs[0].1.len()).map(|k| format!("{:.2}", 1e3 * part(k))).collect();
            println!(
                "  {method:?}: {:.2} in all, {:.1} to plan\n    {}",
                1e3 * total,
                1e3 * planning,
                parts.join(" ")
            );
        }
    }
    vec![]
}

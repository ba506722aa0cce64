//! `quietly compare`: methods side by side on one table, and what looking at that costs.
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Args;
use quietly::{
    Budget, Charge, Encoding, Error, FitInput, FitOptions, Key, LinearFit, Link, Plan, Private,
    ReadOptions, Source, Table,
};
use quietly_noise::Bits;

use crate::{
    args::Relation,
    compare::summary::Summary,
    error::Failure,
    fit::{self, Kind},
    ledger::expect_public,
    output,
    parse::{Count, Number, Numbers},
    tables::{Columns, Files, SchemaFile, beside, key, usual_delta},
    terminal::{Progress, Screen},
    trial::{self, Entrant},
};

mod summary;

/// Fewer cannot be split and told apart.
const FEWEST: usize = 10;

#[derive(Args, Debug)]
pub(crate) struct SideBySide {
    #[command(flatten)]
    table: Files,
    #[command(flatten)]
    schema: SchemaFile,
    #[command(flatten)]
    columns: Columns,
    /// linear or relu
    #[arg(
        long,
        value_name = "MODEL",
        hide_possible_values = true,
        value_enum,
        default_value = "linear"
    )]
    model: Kind,
    /// Methods by name, with commas
    #[arg(long, value_name = "A,B", value_delimiter = ',', required = true)]
    methods: Vec<String>,
    /// Privacy budgets ε, with commas; every fit spends its own
    #[arg(long, value_name = "E,F")]
    epsilons: Numbers,
    /// Number of random splits, each with independent noise
    #[arg(long, value_name = "K", default_value = "5")]
    seeds: Count,
    /// Privacy budget δ of every fit; below 1 / (10 rows) by default
    #[arg(long, value_name = "D")]
    delta: Option<Number>,
    /// Neighbouring relation: add-remove or replace-one
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_enum, default_value_t = Relation::AddRemove)]
    neighbours: Relation,
    /// Test on this table, instead of on a random fifth of the rows
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// The rows are public, even if their schema names a ledger
    #[arg(long, hide_short_help = true)]
    no_ledger: bool,
    /// Public rows of the same columns, for dp-glmtron and dp-sgd-one-row
    #[arg(long, value_name = "FILE")]
    public: Option<PathBuf>,
    /// The largest norm of the weights, for dp-pgd
    #[arg(long, value_name = "W")]
    radius: Option<Number>,
    /// Plot error against epsilon to this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Fixed splits and noise, for tests
    #[arg(long, value_name = "N")]
    seed: Option<Count>,
}

/// What one method came to at one ε: R² and RMSE beside those without noise, for each split.
struct Cell {
    entrant: Entrant,
    epsilon: f64,
    plan: Plan,
    r2: Vec<f64>,
    rmse: Vec<f64>,
    loss: Vec<f64>,
    excess: Vec<f64>,
}

/// Rows as they are: this verb looks at them, and says so.
struct Rows {
    width: usize,
    features: Vec<f64>,
    target: Vec<f64>,
}

impl Rows {
    fn read(source: &Source, encoding: &Encoding, threads: usize) -> Result<Rows, Failure> {
        let mut rows = Rows { width: encoding.width(), features: vec![], target: vec![] };
        let read = source.blocks(encoding, threads, &mut |block| {
            rows.features.extend_from_slice(&block.features);
            rows.target.extend_from_slice(&block.target);
            ControlFlow::Continue(())
        });
        read.map_err(Error::from)?;
        Ok(rows)
    }

    fn pick(&self, which: &[usize]) -> Table {
        let mut features = Vec::with_capacity(which.len() * self.width);
        for &i in which {
            features.extend_from_slice(&self.features[i * self.width..(i + 1) * self.width]);
        }
        Table::new(self.width, features, which.iter().map(|&i| self.target[i]).collect())
    }

    fn all(&self) -> Table {
        Table::new(self.width, self.features.clone(), self.target.clone())
    }
}

/// R² and the root mean squared error.
fn scores(table: &Table, fit: &LinearFit) -> (f64, f64) {
    let rows = table.features().chunks_exact(table.width().max(1)).zip(table.target());
    let n = table.rows().max(1) as f64;
    let mut errors = 0.0;
    for (row, y) in rows {
        errors += (fit.predict(row) - y).powi(2);
    }
    let mean = table.target().iter().sum::<f64>() / n;
    let spread: f64 = table.target().iter().map(|y| (y - mean).powi(2)).sum();
    (1.0 - errors / spread, (errors / n).sqrt())
}

impl SideBySide {
    /// The methods that were named, if all of them can fit the model.
    fn entrants(&self, link: Link) -> Result<Vec<Entrant>, Failure> {
        let mut entrants: Vec<Entrant> = vec![];
        for name in self.methods.iter().map(|name| name.trim()) {
            let method = fit::method(name)?;
            if !method.about().links.contains(&link) {
                let want = match link {
                    Link::Relu => "one for ReLU models",
                    _ => "one for linear models",
                };
                let links: Vec<&str> =
                    method.about().links.iter().map(|link| link.name()).collect();
                let got = format!("{name}, which fits {}", links.join(", "));
                return Err(Error::Parameter { name: "method", want, got }.into());
            }
            if entrants.iter().any(|e| e.method == method) {
                continue;
            }
            let mut entrant = Entrant::new(method);
            if entrant.needs_radius() {
                entrant.radius = self.radius.map(|r| r.0);
            }
            let missing = |name, want| Error::Parameter { name, want, got: "not".into() };
            if entrant.needs_public_rows() && self.public.is_none() {
                return Err(missing("--public", "given for dp-glmtron and dp-sgd-one-row").into());
            }
            if entrant.needs_radius() && self.radius.is_none() {
                return Err(missing("--radius", "given for dp-pgd").into());
            }
            entrants.push(entrant);
        }
        Ok(entrants)
    }

    fn budget(&self, epsilon: f64, rows: u64) -> Result<Budget, Failure> {
        let delta = self.delta.map_or_else(|| usual_delta(rows), |d| d.0);
        let refuse = |want, got| {
            Failure::from(quietly_accounting::Error::Parameter { name: "epsilons", want, got })
        };
        if epsilon == f64::INFINITY {
            return Err(refuse("finite, as the fit without noise is always included", epsilon));
        }
        let budget = Budget::new(epsilon, delta).map_err(|error| match error.into() {
            Error::Accounting(quietly_accounting::Error::Parameter {
                name: "epsilon",
                want,
                got,
            }) => refuse(want, got),
            other => other.into(),
        })?;
        Ok(budget.under(self.neighbours.into()))
    }

    fn open(
        &self,
        path: &Path,
        encoding: &Encoding,
        options: ReadOptions,
    ) -> Result<Rows, Failure> {
        let reading = &self.table.reading;
        let source = reading.open(&[path.into()], options)?;
        Rows::read(&source, encoding, reading.threads()?)
    }
}

/// Fits everything on every split and prints what came of it.
pub(crate) fn run(asked: &SideBySide, screen: &mut Screen) -> Result<(), Failure> {
    let started = Instant::now();
    let reading = &asked.table.reading;
    let link = asked.model.link();
    let entrants = asked.entrants(link)?;
    let seeds = asked.seeds.at_least_one("seeds")?;
    let schema = asked.schema.read(&asked.table.files[0])?;
    let first = &asked.table.files[0];
    expect_public(&asked.schema.path(first), &asked.table.files, asked.no_ledger)?;
    for file in asked.test.iter().chain(&asked.public) {
        expect_public(&beside(file), std::slice::from_ref(file), asked.no_ledger)?;
    }
    let source = reading.open(&asked.table.files, ReadOptions::of_schema(&schema))?;
    let encoding = asked.columns.encoding(&schema, source.columns())?;
    encoding.expect_range().map_err(quietly::Error::from)?;
    let threads = reading.threads()?;
    if let Some(svg) = &asked.svg {
        let mut inputs = asked.table.files.clone();
        inputs.push(asked.schema.path(first));
        inputs.extend(asked.test.iter().chain(&asked.public).cloned());
        output::probe_own(svg, &inputs, false, output::is_svg)?;
    }
    // A random fifth is for testing, unless another table is.
    let part = if asked.test.is_some() { schema.rows } else { (schema.rows * 4 / 5).max(1) };
    let mut cells = vec![];
    let progress = Progress::new("planning");
    for &epsilon in &asked.epsilons.0 {
        let budget = asked.budget(epsilon, schema.rows)?.for_units_of(schema.rows_per_unit)?;
        for entrant in &entrants {
            let plan = entrant.plan(link, part, encoding.width(), budget)?;
            let [r2, rmse, loss, excess] = [const { vec![] }; 4];
            cells.push(Cell { entrant: entrant.clone(), epsilon, plan, r2, rmse, loss, excess });
        }
    }
    let delta = asked.budget(asked.epsilons.0[0], schema.rows)?.delta();
    let plain = Budget::new(f64::INFINITY, delta)?;
    let plain = Entrant::plain().plan(link, part, encoding.width(), plain)?;

    let rows = Rows::read(&source, &encoding, threads)?;
    let enough = |name, rows: &Rows| {
        let want = "at least 10, to learn from some and test on others";
        let got = rows.target.len();
        if got >= FEWEST {
            Ok(())
        } else {
            Err(Error::Parameter { name, want, got: got.to_string() })
        }
    };
    enough("rows of the table", &rows)?;
    let open = |path: &PathBuf| asked.open(path, &encoding, ReadOptions::of_schema(&schema));
    let test = asked.test.as_ref().map(open).transpose()?;
    let public = asked.public.as_ref().map(open).transpose()?;
    test.iter().try_for_each(|rows| enough("rows of --test", rows))?;
    public.iter().try_for_each(|rows| enough("rows of --public", rows))?;
    let (test, public) = (test.map(|t| t.all()), public.map(|p| p.all()));

    let target = encoding.target().expect("a regression has a target");
    let range = (target.lo, target.hi);
    let turns: Vec<u64> = (0..seeds).collect();
    let told = |done| progress.say(&format!("fitting: {done} of {seeds} splits"));
    let found = trial::all(&turns, threads, &told, |turn| {
        let split = match asked.seed {
            Some(seed) => Key::from_seed(seed.get("seed")?.wrapping_add(*turn)),
            None => key(None)?,
        };
        let mut order: Vec<usize> = (0..rows.target.len()).collect();
        shuffle(&mut order, &mut split.stream("split").bits(0)?)?;
        let cut = if test.is_some() { order.len() } else { order.len() * 4 / 5 };
        let own = rows.pick(&order[cut..]);
        let test = test.as_ref().unwrap_or(&own);
        let train = Private::new(rows.pick(&order[..cut]));
        let fit = |plan: &Plan, key: Key| {
            let options =
                FitOptions::new(Charge::without_ledger(key)).threads(1).public(public.as_ref());
            plan.fit(FitInput::table(&train, range), options)?.linear()
        };
        let best = scores(test, &fit(&plain, Key::from_seed(0))?);
        let mut results = vec![];
        for (i, cell) in cells.iter().enumerate() {
            // Noise of its own for every fit.
            let noise = match asked.seed {
                Some(seed) => Key::from_seed(
                    seed.get("seed")?.wrapping_add((turn + 1) << 20 | (i as u64 + 1) << 40),
                ),
                None => key(None)?,
            };
            results.push(scores(test, &fit(&cell.plan, noise)?));
        }
        Ok::<_, Failure>((best, results))
    });
    let mut without = (vec![], vec![]);
    for split in found {
        let (best, results) = split?;
        without.0.push(best.0);
        without.1.push(best.1);
        for (cell, (r2, rmse)) in cells.iter_mut().zip(results) {
            cell.r2.push(r2);
            cell.rmse.push(rmse);
            cell.loss.push(best.0 - r2);
            cell.excess.push(rmse / best.1 - 1.0);
        }
    }
    drop(progress);
    let spent: f64 = cells.iter().map(|c| c.plan.epsilon() * seeds as f64).sum();
    let seconds = started.elapsed().as_secs_f64();
    let summary = Summary { asked, link, delta, seeds, spent, cells, without, seconds };
    if let Some(path) = &asked.svg {
        output::write(path, summary.picture().svg().as_bytes())?;
    }
    if reading.json { Ok(screen.say_json(&summary.json())?) } else { summary.print(screen) }
}

fn shuffle(order: &mut [usize], bits: &mut Bits) -> Result<(), Failure> {
    for i in (1..order.len()).rev() {
        order.swap(i, bits.below(i as u64 + 1)? as usize);
    }
    Ok(())
}

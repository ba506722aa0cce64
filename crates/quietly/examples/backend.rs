// A backend of one's own: a table that lies in several parts gives the bits of the whole.
//
//     cargo run -p quietly --example backend
use std::{error::Error, fmt::Write as _, fs};

use quietly::{
    BatchDraw, Budget, Charge, Encoding, FitInput, FitOptions, Key, Link, Private, ReadOptions,
    Regression, Sampler, Schema, Source, Table,
    backend::{Backend, Batch, InMemory},
    query::{Query, QuerySum},
};

const SCHEMA: &str = "rows = 3000\n[columns]\nx = { range = [-1, 1] }\ny = { range = [-2, 2] }";

/// Rows in parts, such as one for each department. Sums are integers, so that they add up to the
/// same bits in any order.
struct Parts<'a>(Vec<InMemory<'a>>);

impl Backend for Parts<'_> {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), quietly::Error> {
        // A sampler decides by the place of a row in the whole table, which a part does not know.
        let full = matches!(draw.sampler(), Sampler::FullBatch);
        quietly::Error::ensure(full, "method", "one where every step sees all rows", "another")?;
        self.0.iter_mut().try_for_each(|part| part.begin(draw))
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, quietly::Error> {
        let zero = QuerySum::zero(query);
        self.0.iter_mut().try_fold(zero, |sum, part| Ok(sum.plus(part.sum(batch, query)?)))
    }

    fn count(&mut self) -> Result<Private<u64>, quietly::Error> {
        self.0.iter_mut().try_fold(Private::new(0), |sum, part| {
            Ok(sum.zip(part.count()?).map(|(sum, more)| sum + more))
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let files = ["north.csv", "south.csv"].map(|name| folder.path().join(name));
    for (file, rows) in files.iter().zip([0..1800, 1800..3000]) {
        let mut csv = String::from("x,y\n");
        for i in rows {
            let x = f64::from(i * 37 % 200) / 100.0 - 1.0;
            writeln!(csv, "{x},{}", 1.5 * x - 0.2)?;
        }
        fs::write(file, csv)?;
    }
    let whole = Source::open(&files, &ReadOptions::default())?;
    let schema = Schema::parse(SCHEMA)?;
    let encoding = Encoding::new(&schema, whole.columns(), None, Some("y"))?;
    let plan = Regression::new(Link::Linear).plan(3000, 1, Budget::new(1.0, 1e-6)?)?;

    // A fixed seed compares bits. It is for tests alone: anyone who knows it can remove the noise.
    let options = || FitOptions::new(Charge::without_ledger(Key::from_seed(1)));
    let in_memory = plan.fit(FitInput::source(&whole, &encoding), options())?;
    let in_memory = in_memory.model(&schema.unit)?;

    let part = |file| Source::open([file], &ReadOptions::default())?.read(&encoding, 2);
    let tables: Vec<Private<Table>> = files.iter().map(part).collect::<Result<_, _>>()?;
    let mut parts = Parts(tables.iter().map(|table| InMemory::new(table, 2)).collect());
    let in_parts = plan.fit(FitInput::backend(&mut parts, &encoding), options())?;
    let in_parts = in_parts.model(&schema.unit)?;

    println!("in memory: {:?}", (in_memory.intercept, &in_memory.weights));
    println!("in parts:  {:?}", (in_parts.intercept, &in_parts.weights));
    assert_eq!(in_memory.to_json(), in_parts.to_json());
    Ok(())
}

// A ledger for one table: it allows ε = 1 in all, so that the third fit at ε = 0.4 is refused.
//
//     cargo run -p quietly --example ledger
use std::{error::Error, fmt::Write as _, fs};

use quietly::{
    Budget, Encoding, FitInput, FitOptions, Key, Ledger, Link, ReadOptions, Regression, Run,
    Schema, Source,
};

const SCHEMA: &str = "rows = 3000\n[columns]\nx = { range = [-1, 1] }\ny = { range = [-2, 2] }";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut csv = String::from("x,y\n");
    for i in 0..3000 {
        let x = f64::from(i % 200) / 100.0 - 1.0;
        writeln!(csv, "{x},{}", 1.5 * x - 0.2)?;
    }
    let table = folder.path().join("table.csv");
    fs::write(&table, csv)?;
    let schema = Schema::parse(SCHEMA)?;
    let source = Source::open([&table], &ReadOptions::default())?;
    let encoding = Encoding::new(&schema, source.columns(), None, Some("y"))?;

    // The owner of the table decides once how much may be spent on it.
    let limit = Budget::new(1.0, 1e-5)?;
    let path = folder.path().join("table.ledger");
    let mut ledger = Ledger::open(&path, Some(limit))?;

    let plan = Regression::new(Link::Linear).plan(3000, 1, Budget::new(0.4, 1e-6)?)?;
    let mut refused = None;
    for fit in 1..=3 {
        // The charge is on the disk before the first row is read, and stays if the fit fails.
        let run = Run::new(&format!("fit {fit} of y"))?;
        let charge = match ledger.pay(&run, plan.unit_budget(), Key::from_os()?) {
            Ok(charge) => charge,
            Err(error) => {
                println!("fit {fit}: {error}");
                refused = Some(fit);
                continue;
            }
        };
        let input = FitInput::source(&source, &encoding);
        let model = plan.fit(input, FitOptions::new(charge))?.model(&schema.unit)?;
        // The result is safe: this run never resumes.
        ledger.finish(&run.name)?;
        println!("fit {fit}: weight {:.2}, ε left {:.2}", model.weights[0], ledger.left().0);
    }
    assert_eq!(refused, Some(3));

    // Any process that opens the file sees the same.
    let again = Ledger::open(&path, None)?;
    println!("\n{again}");
    assert_eq!(again.entries().iter().filter(|entry| entry.finished).count(), 2);
    Ok(())
}

// From a CSV file to predictions: schema, source, encoding, plan, fit, save, load, predict.
//
//     cargo run -p quietly --example from_files
use std::{error::Error, fmt::Write as _, fs, ops::ControlFlow};

use quietly::{
    Budget, Charge, Encoding, Family, FitInput, FitOptions, Key, Model, ModelSpec, ReadOptions,
    Schema, Source, predict,
};

/// What is public about the table. Ranges and values are known beforehand, never found in the rows.
const SCHEMA: &str = r#"
rows = 4000
unit = "customer"
[columns]
age = { range = [18, 98] }
smoker = { values = ["no", "yes"] }
premium = { range = [0, 1000] }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut csv = String::from("age,smoker,premium\n");
    for i in 0..4000 {
        let (age, smoker) = (18 + i * 37 % 80, i % 3 == 0);
        let premium = 100 + 5 * age + if smoker { 300 } else { 0 };
        writeln!(csv, "{age},{},{premium}", if smoker { "yes" } else { "no" })?;
    }
    let table = folder.path().join("customers.csv");
    fs::write(&table, csv)?;

    let schema = Schema::parse(SCHEMA)?;
    let source = Source::open([&table], &ReadOptions::default())?;
    // All columns but the target are features.
    let encoding = Encoding::new(&schema, source.columns(), None, Some("premium"))?;

    // Without a δ it is the usual one for so many rows.
    let budget = Budget::usual(1.0, None, schema.rows)?;
    let plan = ModelSpec::new(Family::Linear).plan(&encoding, schema.rows, budget)?;

    // Reads the file and adds noise. A `Ledger` in place of `without_ledger` adds up what is spent.
    let options = FitOptions::new(Charge::without_ledger(Key::from_os()?));
    let fit = plan.fit(FitInput::source(&source, &encoding), options)?;
    let model = fit.model(&schema.unit)?;
    println!("{}\n", model.certificate);

    // The file holds the certificate beside the weights. Reading it checks both.
    let path = folder.path().join("premium.quietly");
    fs::write(&path, model.to_json())?;
    let model = Model::read(&path)?;

    let new = folder.path().join("new.csv");
    fs::write(&new, "age,smoker\n30,no\n30,yes\n60,no\n")?;
    let mut premiums = Vec::new();
    predict(&model, &Source::open([&new], &ReadOptions::default())?, 1, &mut |block| {
        premiums.extend_from_slice(block);
        ControlFlow::Continue(())
    })?;
    println!(
        "30, no smoker {:.0}; 30, smoker {:.0}; 60, no smoker {:.0}",
        premiums[0], premiums[1], premiums[2]
    );
    assert!(premiums[1] - premiums[0] > 200.0 && premiums[2] > premiums[0]);
    Ok(())
}

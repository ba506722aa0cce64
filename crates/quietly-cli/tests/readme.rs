//! The Rust in the README, run. The page must hold these lines as they stand here.
mod run;

fn fitting() -> Result<(), quietly::Error> {
    // README
    use quietly::{Budget, Charge, Encoding, FitInput, FitOptions, Key, Link, ReadOptions};
    use quietly::{Regression, Schema, Source};

    let schema = Schema::read("clinic.schema.toml")?;
    let source = Source::open(["clinic.csv"], &ReadOptions::default())?;
    let encoding = Encoding::new(&schema, source.columns(), None, Some("days"))?;

    let budget = Budget::new(1.0, 1e-5)?;
    let plan = Regression::new(Link::Linear).plan(schema.rows, encoding.width(), budget)?;
    println!("{plan}"); // nothing has been read yet

    let charge = Charge::without_ledger(Key::from_os()?); // or Ledger::pay, which adds up
    let fit = plan.fit(FitInput::source(&source, &encoding), FitOptions::new(charge))?;
    let model = fit.model(&schema.unit)?;
    println!("{}", model.certificate);
    // README
    Ok(())
}

fn accounting() -> Result<(), quietly_accounting::Error> {
    // README
    use quietly_accounting::{Event, Neighbours, calibrate, epsilon};

    let run = |noise| Event::poisson(0.01, noise)?.repeat(1000);
    let cost = epsilon(&run(1.0)?, Neighbours::AddRemove, 1e-5)?;
    assert!(cost.lower > 1.82 && cost.upper < 1.84);

    let found = calibrate(run, Neighbours::AddRemove, 1.0, 1e-5)?;
    assert!(found.epsilon.upper <= 1.0);
    // README
    Ok(())
}

fn noise() -> Result<(), quietly_noise::Error> {
    // README
    use quietly_noise::{Key, RoundedGaussian};

    let key = Key::from_os()?;
    let mut sums = vec![1_000, -250, 0]; // an exact integer sum, in lattice units
    RoundedGaussian::new(400.5)?.add(&key.stream("gradient"), 0, &mut sums)?;
    // README
    Ok(())
}

#[test]
fn the_readme_s_rust_runs() {
    let folder = run::Folder::new();
    assert_eq!(folder.quietly("example").code, 0);
    std::env::set_current_dir(folder.path(".")).expect("a folder");
    fitting().expect("as in the README");
    accounting().expect("as in the README");
    noise().expect("as in the README");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(root).expect("README.md");
    let mut blocks = 0;
    for block in include_str!("readme.rs").split("    // README\n").skip(1).step_by(2).take(3) {
        let code: Vec<&str> = block.lines().map(|l| l.strip_prefix("    ").unwrap_or(l)).collect();
        assert!(readme.contains(&code.join("\n")), "{block}");
        blocks += 1;
    }
    assert_eq!(blocks, 3);
}

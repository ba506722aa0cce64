// Fits a table in memory at ε = 1, beside plain least squares.
//
//     cargo run -p quietly --example fit
use std::error::Error;

use quietly::{Budget, Charge, FitInput, FitOptions, Key, Link, Private, Regression, Table};

const ROWS: u64 = 5000;

fn main() -> Result<(), Box<dyn Error>> {
    // y = 3 a - 2 b + 1, nearly. Features lie within [-1, 1], targets within [-10, 10]: both are
    // public, and decided without a look at the rows.
    let a = |i: u64| (i * 37 % 200) as f64 / 100.0 - 1.0;
    let b = |i: u64| (i * 61 % 160) as f64 / 80.0 - 1.0;
    let y = |i: u64| 3.0 * a(i) - 2.0 * b(i) + 1.0 + 0.2 * (i as f64).sin();
    let features = (0..ROWS).flat_map(|i| [a(i), b(i)]).collect();
    let targets = (0..ROWS).map(y).collect();
    // From here on the rows cannot be printed, compared or cloned.
    let table = Private::new(Table::new(2, features, targets));
    let range = (-10.0, 10.0);

    // The plan lists every noisy release and its price. It sees no row.
    let plan = Regression::new(Link::Linear).plan(ROWS, 2, Budget::new(1.0, 1e-6)?)?;
    println!("{plan}\n");

    // The noise comes from the operating system. `Key::from_seed` is for tests alone.
    // A `Ledger` in place of `without_ledger` adds up what is spent.
    let charge = || Ok::<_, quietly::Error>(Charge::without_ledger(Key::from_os()?));
    let fit = plan.fit(FitInput::table(&table, range), FitOptions::new(charge()?))?;
    println!("{}\n", fit.certificate("row")?);
    let (intercept, weights) = fit.coefficients()?;

    // ε = ∞ is ordinary least squares. It has no privacy: here it shows what the noise costs.
    let plain = Regression::new(Link::Linear).plan(ROWS, 2, Budget::new(f64::INFINITY, 1e-6)?)?;
    let fit = plain.fit(FitInput::table(&table, range), FitOptions::new(charge()?))?;
    let (exact, exact_weights) = fit.coefficients()?;

    println!("              a       b  intercept");
    println!("truth     3.000  -2.000      1.000");
    println!("exact   {:7.3} {:7.3}    {exact:7.3}", exact_weights[0], exact_weights[1]);
    println!("private {:7.3} {:7.3}    {intercept:7.3}", weights[0], weights[1]);
    // Far beyond the noise, so that this holds for any key.
    assert!((weights[0] - 3.0).abs() < 0.5 && (weights[1] + 2.0).abs() < 0.5);
    Ok(())
}

//! `quietly account compare`: four ways to draw batches, at equal noise.
use quietly_accounting::{Error, Event, PrivacyBound};
use serde_json::json;

use crate::{
    account::{Asked, relation_flag},
    args::{Compare, Setting},
    error::Failure,
    format,
    terminal::{Progress, Screen, WIDTH},
};

/// A scheme's name, what it does to a record, and the event.
type Row = (&'static str, &'static str, Event);

const BAR: f64 = 16.0;

/// Asks the same question of each scheme and prints one table, cheapest first.
pub(crate) fn run(asked_for: &Compare, screen: &mut Screen) -> Result<(), Failure> {
    let asked = Asked::new(&asked_for.question)?;
    let common = &asked_for.question.common;
    let neighbours = common.neighbours();
    let (noise, rate) = (asked_for.noise.setting(), asked_for.sampling_rate.0);
    let steps = asked_for.steps.get("steps")?;
    let (pass, epochs) = passes(rate, steps)?;
    let mut rows: Vec<(Row, PrivacyBound)> = vec![];
    for row in schemes(noise, pass, epochs, steps)? {
        let _progress = Progress::new(row.0);
        let answer = asked.answer(&row.2, neighbours)?;
        rows.push((row, answer));
    }
    rows.sort_by(|a, b| a.1.upper.total_cmp(&b.1.upper));
    let (name, at) = asked.names();
    if common.json {
        let row = |((scheme, ..), answer): &(Row, PrivacyBound)| json!({ "scheme": scheme, name: format::interval_json(answer), "method": answer.method });
        let schemes: Vec<_> = rows.iter().map(row).collect();
        let mut object = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "scheme": "compare",
            "parameters": { "noise_multiplier": noise, "sampling_rate": rate, "steps": steps, "steps_per_pass": pass, "epochs": epochs },
            "neighbours": neighbours.name(),
        });
        let fields = object.as_object_mut().expect("made as an object");
        let [given, _] = asked.fields(serde_json::Value::Null);
        fields.extend([given, ("schemes".into(), schemes.into())]);
        return Ok(screen.say_json(&object)?);
    }
    let passes = if epochs == 1 { "one epoch".into() } else { format!("{epochs} epochs") };
    screen.say(&format!(
        "noise multiplier {noise}, {steps} steps ({passes} of {pass}), {} {at}\n",
        neighbours.name()
    ))?;
    screen.say(&format!("  {:<18} {name}", "scheme"))?;
    let most = rows.iter().map(|r| r.1.upper).filter(|x| x.is_finite()).fold(0.0, f64::max);
    for ((scheme, does, _), answer) in &rows {
        let range = format!("{} to {}", format::low(answer.lower), format::high(answer.upper));
        let full = (BAR * answer.upper / most).clamp(1.0, BAR);
        let bar = screen.tint(&format!("{:<16}", "█".repeat(full.round() as usize)));
        screen.say(&format!("  {scheme:<18} {range:<18} {bar} {does}"))?;
    }
    let text = "Each scheme has the cost of its own theorem. Use that of the scheme that draws your batches.";
    screen.say(&format!("\n{}", format::wrap(text, "  ", WIDTH)))?;
    let flags = format!(
        "--sampling-rate {rate} --steps {steps} --epsilon 1 --delta 1e-5{}",
        relation_flag(neighbours)
    );
    Ok(screen.say(&format!("\nnext: quietly calibrate poisson {flags}"))?)
}

/// Steps in a pass, and passes. All four schemes must be able to run as described, so both are whole.
fn passes(rate: f64, steps: u64) -> Result<(u64, u64), Error> {
    // The library says first whether these are a rate and a count at all.
    Event::poisson(rate, 1.0)?.repeat(steps)?;
    let pass = (1.0 / rate).round();
    if (pass * rate - 1.0).abs() > 1e-9 {
        let want = "one over a whole number of steps (0.01, 0.02, 0.05, ...), so that an epoch is a whole number of steps";
        return Err(Error::Parameter { name: "sampling_rate", want, got: rate });
    }
    if !steps.is_multiple_of(pass as u64) {
        let want = "a whole number of epochs of 1/rate steps, so that all schemes use each row equally often";
        return Err(Error::Parameter { name: "steps", want, got: steps as f64 });
    }
    Ok((pass as u64, steps / pass as u64))
}

fn schemes(noise: f64, pass: u64, epochs: u64, steps: u64) -> Result<Vec<Row>, Error> {
    let rate = 1.0 / pass as f64;
    Ok(vec![
        (
            "poisson",
            "each row in each step, independently",
            Event::poisson(rate, noise)?.repeat(steps)?,
        ),
        (
            "random-allocation",
            "own random step per epoch",
            Event::random_allocation(pass, 1, noise)?.repeat(epochs)?,
        ),
        ("fixed-size", "batches of one size", Event::fixed_size(pass, 1, noise)?.repeat(steps)?),
        ("shuffle", "shuffled, split into blocks", Event::shuffled(pass, noise)?.repeat(epochs)?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_passes_are_compared() {
        assert_eq!(passes(0.01, 1000), Ok((100, 10)));
        assert_eq!(passes(1.0, 7), Ok((1, 7)));
        assert!(matches!(passes(0.3, 1000), Err(Error::Parameter { name: "sampling_rate", .. })));
        assert!(matches!(passes(0.01, 150), Err(Error::Parameter { name: "steps", .. })));
        assert!(matches!(passes(2.0, 150), Err(Error::Parameter { name: "sampling_rate", .. })));
        assert!(matches!(passes(0.01, 0), Err(Error::Parameter { name: "steps", .. })));
    }
}

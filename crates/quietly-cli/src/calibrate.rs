//! `quietly calibrate`: the least noise for a budget.
use quietly_accounting::{Error, PrivacyBound, calibrate, epsilon};
use serde_json::json;

use crate::{
    account::relation_flag,
    args::Budget,
    error::Failure,
    format,
    scheme::{NoiseParameter, Plan},
    terminal::{Progress, Screen, WIDTH},
};

/// Finds the noise and says what it costs.
pub(crate) fn run(plan: &Plan, budget: &Budget, screen: &mut Screen) -> Result<(), Failure> {
    let neighbours = budget.common.neighbours();
    let (target, delta) = (budget.epsilon.0, budget.delta.0);
    let (setting, answer) = {
        let _progress = Progress::new("searching for the least noise");
        let found = calibrate(
            |noise| plan.event(noise_parameter(plan.noise_parameter, noise)),
            neighbours,
            target,
            delta,
        )?;
        let cost = |setting| -> Result<PrivacyBound, Error> {
            epsilon(&plan.event(setting)?, neighbours, delta)
        };
        // A number of five digits can be typed again. It is kept only if it, too, was seen to meet the target.
        let exact = noise_parameter(plan.noise_parameter, found.noise_multiplier);
        let neat = match plan.noise_parameter {
            NoiseParameter::Noise | NoiseParameter::Scale => format::neat_above(exact),
            NoiseParameter::EpsilonEach => format::neat_below(exact),
        };
        match cost(neat) {
            Ok(answer) if answer.upper <= target => (neat, answer),
            _ => (exact, found.epsilon),
        }
    };
    if budget.common.json {
        let mut object = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "scheme": plan.name,
            "parameters": plan.parameters(None),
            "neighbours": neighbours.name(),
            "target_epsilon": format::json(target),
            "delta": format::json(delta),
            "epsilon": format::interval_json(&answer),
            "method": answer.method,
            "failure": format::json(answer.failure),
        });
        let fields = object.as_object_mut().expect("made as an object");
        let key = if plan.noise_parameter == NoiseParameter::EpsilonEach {
            "epsilon_each"
        } else {
            "noise_multiplier"
        };
        fields.insert(key.into(), format::json(setting));
        if let Some(note) = plan.note {
            fields.insert("note".into(), note.into());
        }
        return Ok(screen.say_json(&object)?);
    }
    let what = plan.noise_parameter.flag().replace('-', " ");
    screen.say(&format!(
        "{} keeps epsilon at or below {target} at delta {delta:?}",
        screen.bold(&format!("{what} {setting}"))
    ))?;
    let spent = format!("epsilon is {} ({})", format::between(&answer), neighbours.name());
    for text in [spent, format::theorem(&answer)] {
        screen.say(&format::wrap(&text, "  ", WIDTH))?;
    }
    if answer.failure > 0.0 {
        let why = "the search used deterministic bounds only, so less noise may be enough: try it with `account`.";
        screen.say(&format::wrap(why, "  ", WIDTH))?;
    }
    if let Some(note) = plan.note {
        screen.say(&format::wrap(note, "  ", WIDTH))?;
    }
    screen.say(&format!("\n{}", format::wrap(&format::odds(answer.upper, delta), "  ", WIDTH)))?;
    let typed = plan.typed(Some(setting));
    Ok(screen.say(&format!(
        "\nnext: quietly account {typed} --delta {delta:?}{}",
        relation_flag(neighbours)
    ))?)
}

/// The noise_parameter's setting for an amount of noise: a choice has the less of it, the more each choice may cost.
fn noise_parameter(noise_parameter: NoiseParameter, noise: f64) -> f64 {
    match noise_parameter {
        NoiseParameter::Noise | NoiseParameter::Scale => noise,
        NoiseParameter::EpsilonEach => 1.0 / noise,
    }
}

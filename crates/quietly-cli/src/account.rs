//! `quietly account`: what a run costs.
use quietly_accounting::{Error, Event, Neighbours, PrivacyBound, curve, delta, epsilon};
use serde_json::{Value, json};

use crate::{
    args::Question,
    error::Failure,
    format, plot,
    scheme::Plan,
    terminal::{Progress, Screen, WIDTH},
};

/// What was asked: ε at a δ, or δ at an ε.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    EpsilonAt(f64),
    DeltaAt(f64),
}

impl Asked {
    pub(crate) fn new(question: &Question) -> Result<Asked, Failure> {
        match (question.delta, question.epsilon) {
            (Some(delta), None) => Ok(Asked::EpsilonAt(delta.0)),
            (None, Some(epsilon)) => Ok(Asked::DeltaAt(epsilon.0)),
            (None, None) => Err(Failure::Question("neither was given")),
            (Some(_), Some(_)) => Err(Failure::Question("both were given")),
        }
    }

    pub(crate) fn answer(
        self,
        event: &Event,
        neighbours: Neighbours,
    ) -> Result<PrivacyBound, Error> {
        match self {
            Asked::EpsilonAt(d) => epsilon(event, neighbours, d),
            Asked::DeltaAt(e) => delta(event, neighbours, e),
        }
    }

    /// What was asked for, and the rest of the sentence.
    pub(crate) fn names(self) -> (&'static str, String) {
        match self {
            Asked::EpsilonAt(d) => ("epsilon", format!("at delta {d:?}")),
            Asked::DeltaAt(e) => ("delta", format!("at epsilon {e}")),
        }
    }

    /// (ε, δ) that may be promised.
    fn promise(self, answer: &PrivacyBound) -> (f64, f64) {
        match self {
            Asked::EpsilonAt(d) => (answer.upper, d),
            Asked::DeltaAt(e) => (e, answer.upper),
        }
    }

    /// What was given and what was found, as JSON fields.
    pub(crate) fn fields(self, found: Value) -> [(String, Value); 2] {
        match self {
            Asked::EpsilonAt(d) => [("delta".into(), format::json(d)), ("epsilon".into(), found)],
            Asked::DeltaAt(e) => [("epsilon".into(), format::json(e)), ("delta".into(), found)],
        }
    }
}

/// Answers, in words or as JSON.
pub(crate) fn run(
    plan: &Plan,
    setting: f64,
    question: &Question,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let asked = Asked::new(question)?;
    let neighbours = question.common.neighbours();
    let event = plan.event(setting)?;
    let answer = {
        let _progress = Progress::new("adding up the privacy loss");
        asked.answer(&event, neighbours)?
    };
    if question.common.json {
        return Ok(screen.say_json(&document(plan, setting, asked, &answer))?);
    }
    tell(plan, asked, &answer, screen)?;
    let curve = {
        let _progress = Progress::new("drawing the curve");
        curve(&event, neighbours)?
    };
    let (epsilon, delta) = asked.promise(&answer);
    screen.say(&format!("\n{}\n", screen.tint(&plot::draw(&curve, (delta, epsilon)))))?;
    Ok(screen.say(&next(plan, (epsilon, delta), neighbours))?)
}

fn document(plan: &Plan, setting: f64, asked: Asked, answer: &PrivacyBound) -> Value {
    let mut object = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "scheme": plan.name,
        "parameters": plan.parameters(Some(setting)),
        "neighbours": answer.neighbours.name(),
    });
    let fields = object.as_object_mut().expect("made as an object");
    fields.extend(asked.fields(format::interval_json(answer)));
    fields.insert("method".into(), answer.method.into());
    fields.insert("failure".into(), format::json(answer.failure));
    if let Some(note) = plan.note {
        fields.insert("note".into(), note.into());
    }
    object
}

/// The interval, what it means, the theorem and the odds.
fn tell(
    plan: &Plan,
    asked: Asked,
    answer: &PrivacyBound,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (name, at) = asked.names();
    let found = screen.bold(&format!("{name} {}", format::between(answer)));
    screen.say(&format!("{found} {at} ({})", answer.neighbours.name()))?;
    let promise = match (answer.upper.is_finite(), answer.failure > 0.0) {
        (false, _) => "no finite bound is known for this run.",
        (true, false) => {
            "the upper end is a proven bound; the lower end is what some tables really leak."
        }
        (true, true) => {
            "the upper end is a bound with the stated confidence; the lower end is what some tables \
             really leak."
        }
    };
    let (epsilon, delta) = asked.promise(answer);
    let theorem = format::theorem(answer);
    for text in [promise, &theorem].into_iter().chain(plan.note) {
        screen.say(&format::wrap(text, "  ", WIDTH))?;
    }
    Ok(screen.say(&format!("\n{}", format::wrap(&format::odds(epsilon, delta), "  ", WIDTH)))?)
}

/// The line that leads on: how much noise a rounder promise would need.
fn next(plan: &Plan, promised: (f64, f64), neighbours: Neighbours) -> String {
    let epsilon = format::suggestion(promised.0);
    let delta = if (1e-12..=0.1).contains(&promised.1) { promised.1 } else { 1e-5 };
    // A δ that was found has many digits; its power of ten will do for a suggestion.
    let delta = 10.0_f64.powi(delta.log10().round() as i32).max(1e-12);
    let relation = relation_flag(neighbours);
    format!(
        "next: quietly calibrate {} --epsilon {epsilon} --delta {delta:?}{relation}",
        plan.typed(None)
    )
}

/// The flag for a relation other than the default.
pub(crate) fn relation_flag(neighbours: Neighbours) -> String {
    match neighbours {
        Neighbours::AddRemove => String::new(),
        other => format!(" --neighbours {}", other.name()),
    }
}

//! Reads plans of model files of versions 1 to 3, and plan files of their time: maps their fields to those of today.
//!
//! Nothing is trusted here: what comes out is checked and priced as any other file.
use quietly_core::rows_used::ROWS_USED;
use serde_json::{Map, Value, json};

/// Names of fields, then and now.
const FIELDS: [(&str, &str); 8] = [
    ("charges", "releases"),
    ("purpose", "id"),
    ("mixing", "correlation"),
    ("bend", "smoothness"),
    ("asked", "budget"),
    ("accountant", "theorem"),
    ("tuning", "selection"),
    ("passes", "epochs"),
];

/// Words that fields hold, then and now.
const WORDS: [(&str, &str, &str); 11] = [
    ("by", "waves", "fourier"),
    ("mechanism", "selection", "exponential"),
    ("mechanism", "mixed", "correlated-gaussian"),
    ("mechanism", "promise", "approximate-dp"),
    ("mechanism", "objective", "objective-perturbation"),
    ("sampler", "full", "full-batch"),
    ("sampler", "allocation", "random-allocation"),
    ("sampler", "parts", "partition"),
    ("sampler", "places", "ordered-partition"),
    ("sampler", "bins", "balls-and-bins"),
    ("correlation", "bands", "banded"),
];

/// Names of releases, then and now.
const RELEASES: [(&str, &str); 13] = [
    ("scale of the target", "target scale"),
    ("centre of the target", "target median"),
    ("norm of the rows", "row norm (median)"),
    ("gradient, clipped at the median", "gradient (robust steps)"),
    ("gradient, first steps", "gradient (warm-up steps)"),
    ("gradient, last steps", "gradient (final steps)"),
    ("tail of the residuals", "residual tail quantile"),
    ("first threshold", "first clipping threshold"),
    ("a point deep among the models", "point of high Tukey depth among the models"),
    ("last point of a descent", "last iterate"),
    ("point of a phase", "iterate of a phase"),
    ("norm that most rows do not exceed", "row norm quantile"),
    ("residual that the level of rows does not exceed", "residual quantile"),
];

/// Rewrites a certificate as those versions wrote it. One of today is left as it is.
pub(crate) fn rewrite_certificate(certificate: &mut Value) {
    if certificate.get("asked").is_some() && certificate.get("budget").is_none() {
        rename(certificate);
    }
}

/// Puts today's names in place of those of the time, in all objects within.
pub(crate) fn rename(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(fields) => {
            let noise = fields.contains_key("mechanism");
            let renamed = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                let now =
                    |(then, now): &(&'static str, &'static str)| (*then == key).then_some(*now);
                let key = match FIELDS.iter().find_map(now) {
                    Some(now) => now.to_string(),
                    None if noise && key == "noise" => "noise_multiplier".into(),
                    None => key,
                };
                let word = value.as_str().and_then(|word| match key.as_str() {
                    "id" => RELEASES.iter().find(|(then, _)| *then == word).map(|(_, now)| *now),
                    key => WORDS
                        .iter()
                        .find(|(k, t, _)| (*k, *t) == (key, word))
                        .map(|(_, _, now)| *now),
                });
                match word {
                    Some(word) => value = word.into(),
                    None => rename(&mut value),
                }
                (key, value)
            });
            // Of two fields that come to have one name, neither is taken: the file is then incomplete.
            let mut now = Map::new();
            let mut twice = false;
            renamed.for_each(|(key, value)| twice |= now.insert(key, value).is_some());
            *fields = if twice { Map::new() } else { now };
        }
        _ => {}
    }
}

/// Rewrites a plan as those versions wrote it. A plan of today is left as it is.
pub(crate) fn rewrite_plan(plan: &mut Value) {
    let Some(fields) = plan.as_object_mut() else { return };
    if fields.contains_key("algorithm") {
        return;
    }
    let old: Map<String, Value> = ["design", "recipe", "convex", "network"]
        .into_iter()
        .filter_map(|key| Some((key.to_string(), fields.shift_remove(key)?)))
        .collect();
    let algorithm = algorithm(fields, &old);
    fields.insert("algorithm".into(), algorithm);
    rename(plan);
}

/// The algorithm of a plan whose parameters stood in one of four fields.
fn algorithm(plan: &Map<String, Value>, old: &Map<String, Value>) -> Value {
    let text = |key: &str| plan.get(key).and_then(Value::as_str).unwrap_or_default();
    let (method, link) = (text("method"), text("link"));
    if let Some(network) = old.get("network") {
        return with(json!({ "name": "kan", "sampler": sampler(plan) }), network);
    }
    if let Some(problem) = old.get("convex") {
        return match method {
            "exact" => json!({ "name": "minimiser", "problem": problem }),
            "amp" | "scaled-amp" => json!({ "name": "objective-perturbation", "problem": problem }),
            "dp-sgd" => {
                json!({ "name": "noisy-gradients", "method": method, "rate": plan.get("rate"), "problem": problem })
            }
            "dp-gd" | "frank-wolfe" => {
                json!({ "name": "noisy-gradients", "method": method, "problem": problem })
            }
            "sc-psgd" | "gd-op" => {
                json!({ "name": "output-perturbation", "method": method, "problem": problem })
            }
            _ => json!({ "name": "localisation", "method": method, "problem": problem }),
        };
    }
    if let Some(recipe) = old.get("recipe") {
        let sampling = match text("sampler") {
            "full" => "full-batch",
            "allocation" => "random-allocation",
            "parts" => "partition",
            other => other,
        };
        let mut head = json!({ "name": "recipe", "method": method, "sampling": sampling });
        if let Some(rate) = plan.get("rate") {
            head["rate"] = rate.clone();
        }
        return with(head, recipe);
    }
    match method {
        "full-batch" => {
            let design = old.get("design").unwrap_or(&Value::Null);
            with(json!({ "name": "full-batch", "link": link }), design)
        }
        "one-pass" => {
            // The first versions did not count the rows of the first step.
            let first = &plan.get("stages").unwrap_or(&Value::Null)[0]["charges"];
            let counts = |charge: &Value| charge["purpose"] == ROWS_USED;
            let counts_rows = first.as_array().is_some_and(|all| all.iter().any(counts));
            json!({ "name": "one-pass", "link": link, "steps": plan.get("steps"), "counts_rows": counts_rows })
        }
        "exact" => json!({ "name": "least-squares", "link": link }),
        other => json!({ "name": other }),
    }
}

/// The sampler of a plan, whose fields stand among the others.
fn sampler(plan: &Map<String, Value>) -> Value {
    let fields = ["sampler", "steps", "rate", "bins", "passes", "period", "batch", "of_rows"];
    let found = |key: &str| Some((key.to_string(), plan.get(key)?.clone()));
    Value::Object(fields.into_iter().filter_map(found).collect())
}

/// An object with the fields of another after its own.
fn with(mut head: Value, more: &Value) -> Value {
    if let (Some(head), Some(more)) = (head.as_object_mut(), more.as_object()) {
        head.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    head
}

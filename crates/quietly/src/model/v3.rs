//! FitInput plans of model files of versions 1 to 3, and plan files of their time: maps their fields to those of today.
//!
//! Nothing is trusted here: what comes out is checked and priced as any other file.
use quietly_core::rows_used::ROWS_USED;
use serde_json::{Map, Value, json};

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

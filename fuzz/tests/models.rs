//! Model files: what is read agrees with itself, predicts finite numbers, and is written as it was read.
use std::{fs, path::Path};

use quietly::{Label, Model, is_hidden};
use quietly_fuzz::{
    arbitrary::{Result as Drawn, Unstructured},
    check,
};
use serde_json::{Value, json};

#[test]
fn models() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/models");
    let read = |entry: fs::DirEntry| serde_json::from_slice(&fs::read(entry.path()).ok()?).ok();
    let mut good: Vec<Value> = fs::read_dir(&folder).unwrap().flatten().filter_map(read).collect();
    good.sort_by_key(Value::to_string);
    assert!(good.len() >= 8, "a model of each kind");
    check("models", 6_000, |bytes| {
        holds(bytes)?;
        // The same bytes as changes of a good file that know what JSON is.
        let mut changes = Unstructured::new(bytes);
        let mut value = good[changes.choose_index(good.len()).unwrap_or(0)].clone();
        for _ in 0..=changes.int_in_range(0..=3).unwrap_or(0) {
            let _ = change(&mut value, &good, &mut changes);
        }
        holds(value.to_string().as_bytes())
    });
}

/// What must hold of every file that is read.
fn holds(bytes: &[u8]) -> Result<(), String> {
    let Ok(model) = Model::from_json(bytes, "a file") else { return Ok(()) };
    let (plan, certificate) = (&model.plan, &model.certificate);
    let agree = match certificate.selection {
        None => certificate.budget == plan.unit_budget(),
        Some(_) => plan.unit_budget() == plan.budget(),
    };
    let private = certificate.randomness.ends_with("key from the operating system");
    if !agree || certificate.stages != plan.stages() || certificate.sampler != plan.sampler() {
        return Err("certificate and plan differ".into());
    }
    if !private && !certificate.test_only {
        return Err("a seed that is not marked".into());
    }
    let texts =
        [certificate.to_string(), certificate.label(), model.label(), certificate.fragment()];
    if texts.iter().any(|text| text.chars().any(|c| c != '\n' && is_hidden(c))) {
        return Err("a hidden character is written".into());
    }
    for k in 0..100_u32 {
        let value = |j: usize| f64::from((k * 37 + j as u32 * 101) % 201) / 100.0 - 1.0;
        let row: Vec<f64> = (0..model.encoding.width()).map(value).collect();
        let said = match model.link.is_classifier() {
            true => model.classify(&row).score,
            false => model.predict(&row),
        };
        if !said.is_finite() {
            return Err(format!("a prediction is {said}"));
        }
    }
    let text = model.to_json();
    let again = Model::from_json(text.as_bytes(), "written").map_err(|e| e.to_string())?;
    if again.to_json() != text {
        return Err("written and read, it is another file".into());
    }
    Ok(())
}

/// Deletes, doubles, swaps, scales or replaces something, somewhere.
fn change(value: &mut Value, good: &[Value], draw: &mut Unstructured<'_>) -> Drawn<()> {
    let inside = match value {
        Value::Object(fields) if !fields.is_empty() => {
            let key = draw.choose_index(fields.len())?;
            if draw.ratio(1, 12)? {
                let key = fields.keys().nth(key).cloned().unwrap_or_default();
                let taken = fields.shift_remove(&key);
                if draw.ratio(1, 2)? {
                    fields.insert(format!("{key}x"), taken.unwrap_or_default());
                }
                return Ok(());
            }
            fields.values_mut().nth(key)
        }
        Value::Array(items) if !items.is_empty() => {
            let (k, other) = (draw.choose_index(items.len())?, draw.choose_index(items.len())?);
            match draw.int_in_range(0..=15)? {
                0 => drop(items.remove(k)),
                1 => items.push(items[k].clone()),
                2 => items.swap(k, other),
                _ => return change(&mut items[k], good, draw),
            }
            return Ok(());
        }
        _ => None,
    };
    match inside {
        Some(inside) if draw.ratio(15, 16)? => return change(inside, good, draw),
        _ => {}
    }
    let number = value.as_f64();
    *value = match (draw.int_in_range(0..=11)?, number) {
        (0, _) => Value::Null,
        (1, _) => json!(1e308),
        (2, _) => json!(-1e-308),
        (3, _) => json!(0),
        (4, _) => json!(u64::MAX),
        (5, _) => json!("\u{202e}\u{1b}[2J<script>"),
        (6, _) => json!("infinity"),
        (7, _) => (0..100).fold(json!(1), |inner, _| json!([inner])),
        (8, _) => good[draw.choose_index(good.len())?]["certificate"].clone(),
        (_, Some(x)) => json!(x * if draw.arbitrary()? { 2.0 } else { -0.5 }),
        (_, None) => json!(draw.arbitrary::<bool>()?),
    };
    Ok(())
}

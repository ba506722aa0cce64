//! The scores of a classifier, for people and for programs.
use quietly::{ClassScores, Link, Model};
use serde_json::json;

use super::Said;

pub(super) fn said(model: &Model, scores: &ClassScores) -> Said {
    let names = model.encoding.target().map(|t| t.class_names()).unwrap_or_default();
    Said { text: text(model, scores, &names), json: as_json(scores, &names) }
}

fn as_json(scores: &ClassScores, names: &[String]) -> serde_json::Value {
    let mut object = json!({
        "classes": names, "rows": scores.rows, "accuracy": scores.accuracy, "log_loss": scores.log_loss,
        "auc": scores.auc, "calibration": scores.calibration, "calibration_error": scores.calibration_error,
    });
    let fields = object.as_object_mut().expect("made as an object");
    fields.extend(scores.left_out.map(|n| ("left_out".into(), json!(n))));
    fields.extend(scores.noise.map(|noise| ("noise".into(), json!(noise))));
    object
}

fn text(model: &Model, scores: &ClassScores, names: &[String]) -> String {
    let number = |x: Option<f64>| x.map_or("undefined".into(), |x| format!("{x:.4}"));
    let mut lines = vec![format!(
        "accuracy           {}{}",
        number(scores.accuracy),
        if scores.accuracy.is_none() { ", as there are no rows" } else { "" }
    )];
    if model.link != Link::Svm {
        lines.push(format!("log loss           {}", number(scores.log_loss)));
    }
    if names.len() == 2 {
        let why = match (scores.auc, scores.noise) {
            (Some(_), None) => "",
            (Some(_), Some(_)) => "   (from a histogram: approximate)",
            (None, None) => ", as not both classes have rows",
            (None, Some(_)) => ", as a class is too small for the noise",
        };
        lines.push(format!("AUC                {}{why}", number(scores.auc)));
    }
    if names.len() == 2 && model.link != Link::Svm {
        let error = number(scores.calibration_error);
        lines.push(format!("calibration error  {error}"));
    }
    let noise =
        scores.noise.map(|n| format!("   (noise in every count: {n:.1})")).unwrap_or_default();
    lines.push(format!("rows               {:.0}{noise}", scores.rows));
    if let Some(left_out) = scores.left_out.filter(|n| *n > 0) {
        lines.push(format!(
            "left out           {left_out}   (their label is not declared, or the schema drops them)"
        ));
    }
    if let (Some(last), false) = (names.last(), scores.calibration.is_empty()) {
        let title = format!("probability of {last}");
        lines.push(format!("\n{title:<20}{:>11}   mean given   share found", "rows"));
        for bin in &scores.calibration {
            lines.push(format!(
                "  {:.1} to {:.1}{:>19.0}   {:>10.4}   {:>11.4}",
                bin.from, bin.to, bin.rows, bin.probability, bin.fraction
            ));
        }
    }
    lines.join("\n")
}

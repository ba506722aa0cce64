//! Model files: parses and checks them, and writes them with a digest.
//!
//! A file can be edited. What is read must at least agree with itself: the certificate says what the plan beside it says, and the digest is
//! that of the rest. This is consistency, not a signature: a consistent edit of all of it, the digest included, is not detected.
use std::path::Path;

use quietly_core::certificate::Certificate;
use quietly_data::{is_hidden, name_problem};
use quietly_engine::error::Error;
use quietly_linear::budget_split::Learnable;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{FORMAT, Model, VERSION, unique::Unique, v3};

/// The field of the digest.
const DIGEST: &str = "digest";

/// Where a model comes from. Models are compared without it.
#[derive(Clone, Debug, Default)]
pub(super) enum Origin {
    /// It was made by this program.
    #[default]
    Made,
    /// It was read, from a file that has this digest or none.
    Read(Option<String>),
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Model {
    /// The file's text. A model that was read from a file without a digest is written without one: that file may have been changed.
    pub fn to_json(&self) -> String {
        let mut value = serde_json::to_value(self).expect("plain fields");
        let digest = digest(&value);
        if let Some(fields) = value.as_object_mut()
            && !matches!(self.origin, Origin::Read(None))
        {
            fields.insert(DIGEST.into(), digest.into());
        }
        format!("{value:#}\n")
    }

    /// What tells this file from any other: "sha256:" and 64 digits; none if it was read from a file that has none.
    pub fn digest(&self) -> Option<String> {
        match &self.origin {
            Origin::Made => Some(digest(&serde_json::to_value(self).expect("plain fields"))),
            Origin::Read(digest) => digest.clone(),
        }
    }

    /// The digest in words.
    pub fn digest_in_words(&self) -> String {
        let none = "no digest: an earlier version wrote this file";
        self.digest().unwrap_or_else(|| none.into())
    }

    /// Reads a model file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it cannot be read, [`Error::Model`] if it is no model, is damaged, contradicts itself, or was made by a version
    /// that knows more than this one.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let text = std::fs::read(path)
            .map_err(|e| Error::File { path: shown.clone(), why: e.to_string() })?;
        Model::from_json(&text, &shown)
    }

    /// Reads the text of a model file; `shown` is what errors call it.
    ///
    /// # Errors
    ///
    /// [`Error::Model`], as [`read`](Self::read).
    pub fn from_json(text: &[u8], shown: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Model { path: shown.into(), why };
        let Unique(mut value) = serde_json::from_slice(text).map_err(|error| {
            wrong(match error.is_data() {
                true => "one of its objects has a repeated key".into(),
                false => "it is not JSON; model files are made by `quietly fit`".into(),
            })
        })?;
        if value.get("format").and_then(|f| f.as_str()) != Some(FORMAT) {
            return Err(wrong(format!("its \"format\" is not \"{FORMAT}\"")));
        }
        match value.get("version").and_then(|v| v.as_u64()) {
            Some(version) if version <= VERSION => {}
            Some(version) => {
                return Err(wrong(format!(
                    "it has format version {version}, made by a newer quietly; this one reads up to {VERSION}"
                )));
            }
            None => return Err(wrong("it has no \"version\"".into())),
        }
        if has_hidden(&value) {
            let why =
                "a text in it has a character that cannot be seen, such as a control character";
            return Err(wrong(why.into()));
        }
        let said = value.as_object_mut().and_then(|fields| fields.shift_remove(DIGEST));
        let digest = match said {
            None => None,
            Some(said) if said == digest(&value) => said.as_str().map(String::from),
            Some(_) => {
                let why = "its \"digest\" is not that of the rest: the file was changed after it was written";
                return Err(wrong(why.into()));
            }
        };
        if value["version"].as_u64() < Some(VERSION) {
            v3::rewrite_plan(&mut value["plan"]);
            v3::rewrite_certificate(&mut value["certificate"]);
            if let Some(expansion) = value.get_mut("expansion") {
                v3::rename(expansion);
            }
        }
        let mut model: Model = serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?;
        model.check().and_then(|()| model.check_consistency()).map_err(|why| wrong(why.into()))?;
        // It is written as files of today are.
        model.version = VERSION;
        model.origin = Origin::Read(digest);
        Ok(model)
    }

    /// Whether the parts of a file say the same.
    fn check_consistency(&self) -> Result<(), &'static str> {
        let (plan, certificate) = (&self.plan, &self.certificate);
        let tuned = certificate.selection.as_ref();
        let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-6 * b.abs();
        if plan.privacy().check_unit().is_err() {
            return Err("its plan's budget for one row is not what its unit's budget leaves");
        }
        let asked = match tuned {
            None => {
                certificate.budget == plan.unit_budget()
                    && near(certificate.epsilon, plan.unit_epsilon())
            }
            // The plan is that of one trial, which is for one row.
            Some(tuned) => {
                let once = (plan.budget().epsilon(), plan.budget().delta());
                once == (tuned.epsilon, tuned.delta)
                    && plan.budget().neighbours() == certificate.budget.neighbours()
                    && tuned.is_total(certificate)
            }
        };
        let public = plan.always_public();
        let target = self.encoding.target().map(|target| target.name.as_str());
        match () {
            () if !asked => Err("its certificate and its plan say different budgets or epsilons"),
            () if plan.epsilon() > plan.budget().epsilon() => {
                Err("its plan costs more than its budget")
            }
            () if certificate.stages != plan.stages() || certificate.sampler != plan.sampler() => {
                Err("its certificate and its plan list different releases")
            }
            () if plan.budget().is_private() && plan.agrees().is_err() => {
                Err("its plan lists other releases than its method makes")
            }
            () if plan.link() != self.link || plan.expansion() != self.expansion.as_ref() => {
                Err("its plan is for another model")
            }
            () if plan.inputs() != self.encoding.width() => {
                Err("its plan is for another number of features")
            }
            () if target != Some(&self.target) => Err("its \"target\" is not that of its encoding"),
            () if !certificate.public.starts_with(&public) => {
                Err("its \"public\" does not begin with what every fit takes to be public")
            }
            () if !plan.privacy().counts_as(plan.rows(), certificate.rows_used.as_ref()) => {
                Err("its \"rows_used\" is not what its plan releases")
            }
            () if name_problem(&certificate.unit).is_some() => Err("its \"unit\" is not a name"),
            () if self.asks_nothing_but_learns() => {
                Err("it lists no release, but has learnt something")
            }
            () => certificate.contradiction().map_or(Ok(()), Err),
        }
    }

    /// Whether nothing is said to have been asked of the data by a model that is not the one without data.
    fn asks_nothing_but_learns(&self) -> bool {
        let plan = &self.plan;
        if !plan.budget().is_private() || !plan.stages().is_empty() {
            return false;
        }
        let middle = self.encoding.target().map_or(0.0, |t| 0.5 * t.lo + 0.5 * t.hi);
        let empty = plan.reach() == Learnable::Nothing && plan.epsilon() == 0.0;
        let ignorant = self.weights.iter().all(|w| *w == 0.0) && self.intercept == middle;
        !(empty && ignorant && self.network.is_none())
    }
}

/// SHA-256 of the canonical text: JSON without white space, its keys sorted, numbers in the shortest form that is read back as the same.
fn digest(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    let hash = Sha256::digest(value.to_string());
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// A certificate from JSON, if it is one, nothing in it contradicts the rest and all of it can be seen.
///
/// That is consistency. [`Certificate::is_consistent`] also asks the accountant.
pub fn certificate_from_json(text: &str) -> Option<Certificate> {
    let mut value: Value = serde_json::from_str(text).ok().filter(|value| !has_hidden(value))?;
    v3::rewrite_certificate(&mut value);
    serde_json::from_value(value).ok().filter(Certificate::has_no_contradiction)
}

/// Whether a text or a key has a character that cannot be seen.
fn has_hidden(value: &Value) -> bool {
    let hidden = |text: &str| text.chars().any(is_hidden);
    match value {
        Value::String(text) => hidden(text),
        Value::Array(all) => all.iter().any(has_hidden),
        Value::Object(fields) => fields.iter().any(|(key, value)| hidden(key) || has_hidden(value)),
        _ => false,
    }
}

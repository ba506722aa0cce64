//! A fitted model: weights, how to read a row, and the certificate, in one file.
//!
//! The file is JSON; docs/model-file.md describes every field.
use std::path::Path;

use quietly_data::Encoding;
use serde::{Deserialize, Serialize};

use crate::{certificate::Certificate, error::Error, plan::Plan};

/// What the first field of every model file says.
const FORMAT: &str = "quietly model";
/// Files of this version and of all before it can be read.
const VERSION: u64 = 1;

/// How a prediction follows from the weighted sum u of the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// u itself: linear regression.
    Linear,
    /// max(u, 0): ReLU regression.
    Relu,
    /// 1/(1 + e^-u) is the probability of the last class.
    Logistic,
    /// The sign of u decides between two classes.
    Svm,
    /// One u for every class.
    Softmax,
    /// u itself, fitted so that far-off targets pull no harder than others.
    Robust,
    /// u itself, fitted to a quantile of the target.
    Quantile,
}

impl Link {
    /// The word used on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Link::Linear => "linear",
            Link::Relu => "relu",
            Link::Logistic => "logistic", Link::Svm => "svm", Link::Softmax => "softmax", Link::Robust => "robust", Link::Quantile => "quantile",
        }
    }

    /// The prediction for a weighted sum.
    pub fn apply(self, u: f64) -> f64 {
        match self {
            Link::Linear => u,
            Link::Relu => u.max(0.0),
            _ => u,
        }
    }
}

/// A fitted model with its certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Model {
    format: String,
    version: u64,
    /// How a prediction follows from the weighted sum.
    pub link: Link,
    /// The column that is predicted.
    pub target: String,
    /// How a row of a table becomes numbers.
    pub encoding: Encoding,
    /// The prediction's value where all encoded features are zero.
    pub intercept: f64,
    /// One weight for every encoded feature.
    pub weights: Vec<f64>,
    /// What was planned before the data was read.
    pub plan: Plan,
    /// What was promised, and why.
    pub certificate: Certificate,
}

impl Model {
    pub(crate) fn new(
        plan: Plan,
        target: String,
        encoding: Encoding,
        (intercept, weights): (f64, Vec<f64>),
        certificate: Certificate,
    ) -> Self {
        let (format, version, link) = (FORMAT.into(), VERSION, plan.link);
        Model { format, version, link, target, encoding, intercept, weights, plan, certificate }
    }

    /// The prediction for one encoded row.
    pub fn predict(&self, features: &[f64]) -> f64 {
        let u = self.weights.iter().zip(features).map(|(w, x)| w * x).sum::<f64>() + self.intercept;
        self.link.apply(u)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain fields");
        text.push('\n');
        text
    }

    /// Reads a model file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it cannot be read, [`Error::Model`] if it is no model, is damaged, or was
    /// made by a version that knows more than this one.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let text = std::fs::read(path)
            .map_err(|e| Error::File { path: shown.clone(), why: e.to_string() })?;
        let wrong = |why: String| Error::Model { path: shown.clone(), why };
        let value: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|_| wrong("it is not JSON; model files are made by `quietly fit`".into()))?;
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
        let model: Model = serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?;
        if model.weights.len() != model.encoding.features().len() {
            return Err(wrong("it does not have one weight for every feature".into()));
        }
        let finite = model.weights.iter().chain([&model.intercept]).all(|w| w.is_finite());
        if finite { Ok(model) } else { Err(wrong("a weight is not a finite number".into())) }
    }
}

//! A fitted model: weights, how to read a row, and the certificate, in one file.
//!
//! The file is JSON; docs/model-file.md describes every field.
use quietly_core::certificate::Certificate;
use quietly_data::Encoding;
use quietly_engine::{
    column_map::{ColumnMap, Tail},
    expansion::{CachedExpander, Expansion},
    link::Link,
    target_scaling::TargetScaling,
};
use quietly_glm::RowMap;
use quietly_kan::KanModel;
use quietly_linear::linear_fit::FittedBends;
use serde::{Deserialize, Serialize};

use crate::{any_algorithm::Fitted, plan::PlanRecord};

pub use self::{
    affine::Affine,
    classes::Classified,
    curves::{Curve, PairMap, VarianceShares},
    file::certificate_from_json,
    part::SplinePart,
};
use self::{
    classes::{finite, sum},
    file::Origin,
};

mod affine;
mod classes;
mod curves;
mod file;
mod part;

pub(crate) mod unique;
pub(crate) mod v3;

/// What the first field of every model file says.
const FORMAT: &str = "quietly model";
/// Files of this version and of all before it can be read.
const VERSION: u64 = 5;
/// The first version that knows networks and expansions.
const NETWORKS: u64 = 3;
/// The first version that knows winsorised columns and held predictions.
const COLUMNS: u64 = 5;

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
    /// The weighted sum where all encoded features are zero.
    pub intercept: f64,
    /// The same for each class, where every class has weights of its own ([`Link::Softmax`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercepts: Vec<f64>,
    /// One weight for every encoded feature, or for every expanded one; of softmax so many for the first class, then for the second, and so on.
    pub weights: Vec<f64>,
    /// What is made of the features of a row first, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Expansion>,
    #[serde(skip)]
    prepared: CachedExpander,
    /// How a row of features, perhaps expanded, comes to the weights, if not as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowMap>,
    /// How features are winsorised before the weights, if they are: weights hold inside of the intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<ColumnMap>,
    /// What lies beyond winsor intervals, with weights of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<Tail>,
    /// One weight for each of them, over the public length of its part of the range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail_weights: Vec<f64>,
    /// Bends of columns and pairs, by the ranks of `columns`: they are added to the held prediction, which is held again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bends: Option<FittedBends>,
    /// Weights of expanded rows, whose scores are added to those of the weights above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub splines: Option<SplinePart>,
    /// What no probability of a class is below, if anything bounds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_probability: Option<f64>,
    /// Whether predictions are held to the public range of the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clamped: bool,
    /// The network, if it is one: then there are no weights beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<KanModel>,
    /// What was planned before the data was read.
    pub plan: PlanRecord,
    /// What was promised, and why.
    pub certificate: Certificate,
    /// The parameters of the estimator that made it, as its front end writes them: for a front end that makes the estimator again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<serde_json::Map<String, serde_json::Value>>,
    #[serde(skip)]
    origin: Origin,
}

impl Model {
    pub(crate) fn new(
        plan: PlanRecord,
        target: String,
        encoding: Encoding,
        fitted: Fitted,
        mut certificate: Certificate,
    ) -> Self {
        if encoding.names_from_header() {
            certificate.add_header();
        }
        let (link, expansion) = (plan.link(), plan.expansion().cloned());
        let (mut columns, mut tails, mut tail_weights, mut clamped) = Default::default();
        let mut bends = None;
        let (mut learnt, network) = match fitted {
            Fitted::Weights(learnt) => (learnt, None),
            Fitted::Linear(fit) => {
                bends = fit.bends;
                columns = match bends {
                    Some(_) => fit.map,
                    None => fit.map.map(ColumnMap::without_ranks),
                };
                (tails, tail_weights, clamped) = (fit.tails, fit.tail_weights, fit.range.is_some());
                ((fit.intercept, fit.weights).into(), None)
            }
            Fitted::Network(network) => ((0.0, Vec::new()).into(), Some(network)),
        };
        let (mut intercepts, weights): (Vec<f64>, Vec<Vec<f64>>) =
            std::mem::take(&mut learnt.outputs).into_iter().unzip();
        let several = link == Link::Softmax && network.is_none();
        let intercept = if several { 0.0 } else { intercepts.remove(0) };
        Model {
            format: FORMAT.into(),
            version: VERSION,
            link,
            target,
            encoding,
            intercept,
            intercepts,
            weights: weights.concat(),
            expansion,
            prepared: CachedExpander::default(),
            rows: learnt.rows,
            columns,
            tails,
            tail_weights,
            bends,
            splines: SplinePart::new(learnt.splines, &plan),
            least_probability: learnt.least,
            clamped,
            network,
            plan,
            certificate,
            parameters: None,
            origin: Origin::default(),
        }
    }

    /// The prediction for one encoded row; of a classifier the place of the class, as the target is encoded.
    pub fn predict(&self, features: &[f64]) -> f64 {
        if self.link.is_classifier() {
            return self.classify(features).class as f64;
        }
        if let Some(network) = &self.network {
            let range = self.encoding.target().map_or((-1.0, 1.0), |t| (t.lo, t.hi));
            let score = finite(network.scores(features)[0]);
            return finite(TargetScaling::new(self.link, range).decode(score, Vec::new()).0);
        }
        let said = match &self.columns {
            None => sum(&self.weights, &self.mapped(features), self.intercept),
            Some(map) => {
                let held = map.winsorised(features, &self.tails);
                let (columns, tails) = held.split_at(self.weights.len());
                sum(&self.tail_weights, tails, sum(&self.weights, columns, self.intercept))
            }
        };
        let said = self.link.apply(said);
        match (&self.bends, &self.columns) {
            (Some(bends), Some(map)) => {
                let linear = self.within_range(said);
                self.held(finite(linear + bends.predict(map, features)))
            }
            _ => self.held(said),
        }
    }

    /// A prediction, held to the public range of the target if predictions are.
    fn held(&self, said: f64) -> f64 {
        if self.clamped { self.within_range(said) } else { said }
    }

    /// A number, held to the public range of the target.
    fn within_range(&self, said: f64) -> f64 {
        self.encoding.target().map_or(said, |target| said.clamp(target.lo, target.hi))
    }

    /// The same model, whose predictions are not held to the public range of the target.
    #[must_use]
    pub fn unclamped(self) -> Self {
        Model { clamped: false, ..self }
    }

    fn check_columns(&self) -> Result<(), &'static str> {
        let winsorised = self.columns.is_some() || !self.tails.is_empty();
        if self.version < COLUMNS && (winsorised || self.clamped) {
            return Err("its \"version\" does not know its \"columns\"");
        }
        let regression = matches!(self.link, Link::Linear | Link::Relu) && self.network.is_none();
        if !regression && (winsorised || self.clamped) || self.expansion.is_some() && winsorised {
            return Err("its \"columns\" do not go with its model");
        }
        let Some(map) = &self.columns else {
            let nothing = !winsorised && self.bends.is_none();
            return if nothing {
                Ok(())
            } else {
                Err("its \"tails\" or \"bends\" have no columns")
            };
        };
        let bent = |bends: &FittedBends| {
            self.link == Link::Linear && self.clamped && bends.fits(map, self.encoding.width())
        };
        if !self.bends.as_ref().is_none_or(bent) {
            return Err("its \"bends\" do not go with its columns");
        }
        let there = |tail: &Tail| {
            let column = map.columns.get(tail.feature).and_then(Option::as_ref);
            let (below, above) = column.map_or((false, false), |column| column.has_tails());
            if tail.above { above } else { below }
        };
        let tails = self.tail_weights.len() == self.tails.len() && self.tails.iter().all(there);
        let numbers = self.tail_weights.iter().all(|w| w.is_finite());
        match map.fits(self.encoding.width()) && tails && numbers && self.rows.is_none() {
            true => Ok(()),
            false => Err("its \"columns\" do not go with its features"),
        }
    }

    fn check_classes(&self) -> Result<(), &'static str> {
        let plain = matches!(self.link, Link::Logistic | Link::Softmax) && self.network.is_none();
        if let Some(splines) = &self.splines {
            let outputs = if self.link == Link::Softmax { self.intercepts.len() } else { 1 };
            let planned = self.plan.algorithm().splines() == Some(splines.expansion());
            if !plain || self.version < COLUMNS || self.expansion.is_some() || !planned {
                return Err("its \"splines\" do not go with its model");
            }
            splines.check(self.encoding.width(), outputs)?;
        }
        let Some(least) = self.least_probability else { return Ok(()) };
        match plain && self.version >= COLUMNS {
            false => Err("its \"least_probability\" does not go with its model"),
            true if least > 0.0 && least < 0.5 => Ok(()),
            true => Err("its \"least_probability\" is not above 0 and below one half"),
        }
    }

    fn check_network(&self, network: &KanModel, classes: usize) -> Result<(), &'static str> {
        let (shape, outputs) = (network.shape(), network.shape().loss.outputs());
        match self.link {
            _ if self.version < NETWORKS => Err("its \"version\" does not know networks"),
            _ if self.expansion.is_some() => Err("it has an expansion beside its network"),
            _ if !self.weights.is_empty() || !self.intercepts.is_empty() => {
                Err("it has weights beside its network")
            }
            _ if shape.inputs.len() != self.encoding.width() => {
                Err("its network does not have one input for every feature")
            }
            Link::Logistic if classes == 2 && outputs == 1 => Ok(()),
            Link::Softmax if classes >= 2 && outputs == classes => Ok(()),
            Link::Robust if classes == 0 && outputs == 1 => Ok(()),
            _ => Err("its network does not go with its target"),
        }
    }

    /// How many features come to the weights.
    fn expanded_width(&self) -> Result<usize, &'static str> {
        let Some(expansion) = &self.expansion else { return Ok(self.encoding.width()) };
        if self.version < NETWORKS {
            return Err("its \"version\" does not know expansions");
        }
        if expansion.inputs() != self.encoding.width() {
            return Err("its \"expansion\" does not go with its features");
        }
        expansion.check().map_err(|_| "its \"expansion\" is not valid")?;
        Ok(expansion.width())
    }

    /// How many rows a unit has, at most.
    pub fn rows_per_unit(&self) -> u64 {
        self.certificate.budget.rows_per_unit()
    }

    /// Whether weights, features and classes go together.
    fn check(&self) -> Result<(), &'static str> {
        let numbers = self.weights.iter().chain(&self.intercepts).chain([&self.intercept]);
        if !numbers.into_iter().all(|w| w.is_finite()) {
            return Err("a weight is not a finite number");
        }
        self.check_columns()?;
        self.check_classes()?;
        if self.version < self.link.version() {
            return Err("its \"version\" does not know its \"link\"");
        }
        let width = self.expanded_width()?;
        if !self.rows.as_ref().is_none_or(|map| map.fits(width)) {
            return Err("its \"rows\" do not go with its features");
        }
        let classes = self.encoding.target().map_or(0, |target| target.class_count());
        if let Some(network) = &self.network {
            return self.check_network(network, classes);
        }
        let vectors = self.intercepts.len();
        match self.link {
            Link::Softmax if classes < 2 => Err("its target does not have two or more classes"),
            Link::Softmax if vectors != classes => {
                Err("it does not have one intercept for every class")
            }
            Link::Softmax if self.weights.len() != classes * width => {
                Err("it does not have one weight for every feature of every class")
            }
            Link::Softmax => Ok(()),
            _ if vectors > 0 => Err("only a softmax model has more than one intercept"),
            _ if self.weights.len() != width => {
                Err("it does not have one weight for every feature")
            }
            Link::Logistic | Link::Svm if classes != 2 => {
                Err("its target does not have two classes")
            }
            Link::Logistic | Link::Svm => Ok(()),
            _ if classes > 0 => Err("its target has classes, but it predicts a number"),
            _ => Ok(()),
        }
    }
}

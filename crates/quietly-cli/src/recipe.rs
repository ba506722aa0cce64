//! What people type of a recipe, and its plan.
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quietly::{Asked, Budget, Encoding, Link, Method, Plan, Schema};

use crate::{
    auto::Chosen,
    failure::Failure,
    loss::{Model, Shape},
    network::Network,
    number::{Count, Number},
    tables::{Columns, Spending},
};

/// What methods can be compared and audited on.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// The target is a weighted sum of the features
    Linear,
    /// The target is a weighted sum of the features, or 0 where that is negative
    Relu,
}

impl Kind {
    pub(crate) fn link(self) -> Link {
        match self {
            Kind::Linear => Link::Linear,
            Kind::Relu => Link::Relu,
        }
    }
}

/// What is to be learnt, how, and at what price.
#[derive(Args, Debug)]
pub(crate) struct Recipe {
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) spending: Spending,
    /// auto, full-batch, one-pass, or a name that `quietly methods` lists
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,
    /// How many steps, for methods from papers
    #[arg(long, value_name = "T", hide_short_help = true)]
    steps: Option<Count>,
    /// How far a step goes, for methods from papers: for a mean gradient, with features of mean square one
    #[arg(long, value_name = "X", hide_short_help = true)]
    step_size: Option<Number>,
    /// The most that the weights of features within [-1, 1] may measure, for a target within [-1, 1]: for dp-pgd, and the
    /// size of --constraint, 1 by default
    #[arg(long, value_name = "W", hide_short_help = true)]
    radius: Option<Number>,
    /// Make many features of few first: splines[=P] of every number, or waves[=COUNT] of all features
    #[arg(long, value_name = "HOW")]
    expand: Option<String>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    network: Network,
    /// A public table of the same columns to take thresholds from: for dp-glmtron, dp-mbglmtron and their DP-SGD twins
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) public: Option<PathBuf>,
}

impl Recipe {
    /// The flags of this recipe, to be typed again.
    pub(crate) fn typed(&self) -> String {
        let mut flags = format!("{}{}", self.columns.typed(), self.spending.typed());
        if self.method != "auto" {
            flags += &format!(" --method {}", self.method);
        }
        if let Some(steps) = self.steps {
            flags += &format!(" --steps {}", steps.shown());
        }
        if let Some(size) = self.step_size {
            flags += &format!(" --step-size {}", size.0);
        }
        if let Some(radius) = self.radius {
            flags += &format!(" --radius {}", radius.0);
        }
        if let Some(expand) = &self.expand {
            flags += &format!(" --expand {expand}");
        }
        if let Some(public) = &self.public {
            flags += &format!(" --public {}", public.display());
        }
        flags + &self.shape.typed() + &self.network.typed()
    }

    /// The model that is asked for, or that `auto` takes.
    pub(crate) fn choose(
        &self,
        model: Model,
        schema: &Schema,
        usual: Option<f64>,
        encoding: &Encoding,
    ) -> Result<Chosen, Failure> {
        if model != Model::Auto {
            return Ok(Chosen::by_name(model));
        }
        let others = !self.not_of_networks(method(&self.method)?).is_empty();
        // What can be learnt depends on what is left for one row.
        let budget = self.budget(schema, usual)?.of_one_row()?;
        Ok(Chosen::by_numbers(encoding, (schema.rows, budget), others))
    }

    /// The plan; `steps` is how many a table was prepared for, and `usual` the delta where none is typed.
    pub(crate) fn plan(
        &self,
        model: Model,
        schema: &Schema,
        encoding: &Encoding,
        steps: Option<u64>,
        usual: Option<f64>,
    ) -> Result<Plan, Failure> {
        let method = method(&self.method)?;
        let mut asked = Asked::new(model.family());
        if model == Model::Kan {
            self.network(method)?.ask(&mut asked.network)?;
        } else if self.network.is_asked_for() {
            return Err(stray("for `fit kan` alone", &self.network.typed()));
        }
        asked.method.clone_from(&self.method);
        asked.steps = self.steps.map(|steps| steps.get("steps")).transpose()?;
        let regression = matches!(model, Model::Linear | Model::Relu);
        if let (Some(steps), true, "auto" | "one-pass") = (steps, regression, &*self.method) {
            // That is what it was prepared for.
            asked.method = "one-pass".into();
            asked.steps = asked.steps.or(Some(steps));
        }
        asked.step_size = self.step_size.map(|size| size.0);
        asked.radius = self.radius.map(|radius| radius.0);
        asked.expand.clone_from(&self.expand);
        asked.public_rows = self.public.is_some();
        self.shape.ask(&mut asked);
        Ok(asked.plan(encoding, schema.rows, self.budget(schema, usual)?)?)
    }

    /// What may be spent on a unit; `usual` is the delta where none is typed.
    fn budget(&self, schema: &Schema, usual: Option<f64>) -> Result<Budget, Failure> {
        Ok(self.spending.budget(schema.rows, usual)?.for_units_of(schema.rows_per_unit)?)
    }

    /// The flags of a network, if no others are given that it does not have.
    fn network(&self, method: Method) -> Result<&Network, Failure> {
        let others = self.not_of_networks(method);
        if others.is_empty() {
            return Ok(&self.network);
        }
        Err(stray("for other models: `fit kan` takes --passes and --sampling", &others))
    }

    /// Flags that networks do not have.
    fn not_of_networks(&self, method: Method) -> String {
        let steps = self.steps.map(|steps| format!(" --steps {}", steps.shown()));
        let method = (method != Method::Auto).then(|| format!(" --method {}", self.method));
        let expand = self.expand.as_ref().map(|how| format!(" --expand {how}"));
        let public = self.public.as_ref().map(|file| format!(" --public {}", file.display()));
        let others = [steps, method, expand, public].map(Option::unwrap_or_default);
        self.shape.typed() + &others.concat()
    }
}

/// Flags that another model has.
fn stray(whose: &'static str, flags: &str) -> Failure {
    let got = flags.trim().to_string();
    quietly::Error::Parameter {
        name: "flags",
        want: "left out here",
        got: format!("{got}, which is {whose}"),
    }
    .into()
}

/// The method of this name.
pub(crate) fn method(name: &str) -> Result<Method, Failure> {
    Method::named(name).ok_or_else(|| Failure::NoSuchMethod(name.into()))
}

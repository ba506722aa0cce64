//! What a fit takes and gives: rows, options, and the released parameters with what their certificate needs.
use std::{fmt, ops::ControlFlow};

use quietly_core::{
    allocation::Allocation,
    certificate::Certificate,
    charge::Charge,
    checkpoint::Checkpoint,
    mechanism::Sampler,
    progress::{Progress, ProgressCallback},
    rows_used::RowsUsed,
};
use quietly_data::{Encoding, Private, Source, Sparse, Table};
use quietly_engine::{backend::Backend, error::Error};
use quietly_glm::Weights;
use quietly_kan::KanModel;
use quietly_linear::linear_fit::LinearFit;
use quietly_noise::Source as Randomness;

use super::Plan;
use crate::{any_algorithm::Fitted, model::Model};

/// The private rows of a fit, wherever they are.
///
/// A source and a backend come with the encoding that makes numbers of their rows: then the fit can become a
/// [`Model`]. A table in memory has numbers already, and comes with the public range of its target.
pub struct FitInput<'a> {
    pub(super) rows: InputRows<'a>,
    pub(super) allocation: Option<&'a Allocation>,
}

/// Where the rows are.
pub(crate) enum InputRows<'a> {
    Source(&'a Source, &'a Encoding),
    Backend(&'a mut dyn Backend, &'a Encoding),
    Table(&'a Private<Table>, (f64, f64)),
    Sparse(&'a Private<Sparse>, (f64, f64)),
}

impl<'a> FitInput<'a> {
    fn new(rows: InputRows<'a>) -> Self {
        FitInput { rows, allocation: None }
    }

    /// Files, or a frame in memory.
    pub fn source(source: &'a Source, encoding: &'a Encoding) -> Self {
        FitInput::new(InputRows::Source(source, encoding))
    }

    /// Rows that are summed elsewhere; the backend reads them as [`Plan::reading`] says.
    pub fn backend(backend: &'a mut dyn Backend, encoding: &'a Encoding) -> Self {
        FitInput::new(InputRows::Backend(backend, encoding))
    }

    /// Numbers in memory. Targets are the numbers of classes, or lie in `range`, which is public.
    pub fn table(table: &'a Private<Table>, range: (f64, f64)) -> Self {
        FitInput::new(InputRows::Table(table, range))
    }

    /// Sparse numbers in memory, for convex losses. They stay sparse wherever the method does not turn them.
    pub fn sparse(rows: &'a Private<Sparse>, range: (f64, f64)) -> Self {
        FitInput::new(InputRows::Sparse(rows, range))
    }

    /// How the rows of a backend came to their steps, where each is in one.
    pub fn allocated(self, allocation: Option<&'a Allocation>) -> Self {
        FitInput { allocation, ..self }
    }

    /// What makes numbers of the rows, unless they are numbers.
    pub(super) fn encoding(&self) -> Option<&'a Encoding> {
        match self.rows {
            InputRows::Source(_, encoding) | InputRows::Backend(_, encoding) => Some(encoding),
            InputRows::Table(..) | InputRows::Sparse(..) => None,
        }
    }
}

/// The charge of a fit, and how it runs.
pub struct FitOptions<'a> {
    pub(crate) charge: Charge,
    pub(crate) threads: usize,
    pub(crate) watch: Option<&'a mut ProgressCallback<'a>>,
    pub(crate) public: Option<&'a Table>,
    pub(crate) checkpoint: Option<Checkpoint>,
}

impl<'a> FitOptions<'a> {
    /// One thread for every core, and no progress, public rows or checkpoint.
    pub fn new(charge: Charge) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        FitOptions { charge, threads, watch: None, public: None, checkpoint: None }
    }

    /// How many threads; the result has the same bits for any number.
    pub fn threads(self, threads: usize) -> Self {
        FitOptions { threads, ..self }
    }

    /// Receives progress, and may interrupt the fit.
    pub fn watch(self, watch: &'a mut ProgressCallback<'a>) -> Self {
        FitOptions { watch: Some(watch), ..self }
    }

    /// A public table of the same columns, for algorithms that take thresholds from one.
    pub fn public(self, public: impl Into<Option<&'a Table>>) -> Self {
        FitOptions { public: public.into(), ..self }
    }

    /// Where releases are written down, so that an interrupted fit can be resumed. For plans whose releases are sums.
    pub fn checkpoint(self, checkpoint: impl Into<Option<Checkpoint>>) -> Self {
        FitOptions { checkpoint: checkpoint.into(), ..self }
    }
}

/// Passes progress on, if anything receives it.
pub(crate) fn watching<'a>(
    mut watch: Option<&'a mut ProgressCallback<'a>>,
) -> impl FnMut(Progress) -> ControlFlow<()> + 'a {
    move |progress| match &mut watch {
        Some(watch) => watch(progress),
        None => ControlFlow::Continue(()),
    }
}

/// What a fit gives: the released parameters of a plan.
///
/// [`model`](Self::model) puts them together with their certificate, for rows that were read by an encoding. Of a table
/// in memory, the parameters are [`coefficients`](Self::coefficients), [`weights`](Self::weights) or a
/// [`network`](Self::network), and [`certificate`](Self::certificate) goes with them.
pub struct FitOutput<'a> {
    pub(super) plan: &'a Plan,
    pub(super) fitted: Fitted,
    pub(super) encoding: Option<&'a Encoding>,
    pub(super) allocation: Option<&'a Allocation>,
    /// Where the noise came from; none without noise.
    pub(super) randomness: Option<Randomness>,
    pub(super) rows_used: Option<RowsUsed>,
    /// Of stages of which one ran instead of the other, those that ran.
    pub(super) ran: Vec<String>,
    /// The checkpoint with all that was released, to be finished when the model is safe.
    pub checkpoint: Option<Checkpoint>,
}

impl fmt::Debug for FitOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FitOutput").field("fitted", &self.fitted).finish_non_exhaustive()
    }
}

impl FitOutput<'_> {
    /// The proof of what this fit promises for each `unit`, such as "person".
    ///
    /// # Errors
    ///
    /// As [`Plan::certificate`].
    pub fn certificate(&self, unit: &str) -> Result<Certificate, Error> {
        let mut certificate = self.plan.certificate(unit, self.randomness)?;
        certificate.rows_used = self.rows_used;
        certificate.ran.clone_from(&self.ran);
        if let (Sampler::RandomAllocation { .. }, Some(allocation)) =
            (self.plan.sampler(), self.allocation)
        {
            certificate.record(allocation);
        }
        Ok(certificate)
    }

    /// The model with its certificate.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for a table in memory, which has no encoding; as [`certificate`](Self::certificate).
    pub fn model(self, unit: &str) -> Result<Model, Error> {
        let Some(encoding) = self.encoding else {
            let want = "a source or a backend, whose encoding the model needs; use `coefficients`, `weights` or `network`";
            return Err(Error::Parameter { name: "input", want, got: "a table in memory".into() });
        };
        let certificate = self.certificate(unit)?;
        let (target, _) = self.plan.target(encoding)?;
        let (plan, encoding) = (self.plan.record(), encoding.clone());
        Ok(Model::new(plan, target.name, encoding, self.fitted, certificate))
    }

    /// The intercept and the weights of every output.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] of a network, which has none.
    pub fn weights(self) -> Result<Weights, Error> {
        match self.fitted {
            Fitted::Weights(weights) => Ok(Weights { expander: self.plan.expander()?, ..weights }),
            Fitted::Linear(fit) => Ok((fit.intercept, fit.weights).into()),
            Fitted::Network(_) => Err(self.refused("of a model with weights; use `network`")),
        }
    }

    /// The intercept and the weights, of the features as the table has them or as the plan expands them. Those of the default
    /// regressions hold inside of the winsor intervals of their columns: [`linear`](Self::linear) has those, too.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] of a network, and of a classifier where each class has weights of its own.
    pub fn coefficients(self) -> Result<(f64, Vec<f64>), Error> {
        match self.fitted {
            Fitted::Weights(mut weights) if weights.outputs.len() == 1 => {
                Ok(weights.outputs.remove(0))
            }
            Fitted::Linear(fit) => Ok((fit.intercept, fit.weights)),
            _ => {
                Err(self
                    .refused("of a model with one vector of weights; use `weights` or `network`"))
            }
        }
    }

    /// The regression, with the map of its columns where it has one: what predicts numbers for rows, as the plan expands them.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] of any other model.
    pub fn linear(self) -> Result<LinearFit, Error> {
        let number = !self.plan.link().is_classifier();
        match self.fitted {
            Fitted::Linear(fit) => Ok(fit),
            Fitted::Weights(mut weights) if number && weights.rows.is_none() => {
                Ok(LinearFit::plain(self.plan.link(), weights.outputs.remove(0)))
            }
            _ => Err(self.refused("one of a regression")),
        }
    }

    /// The network.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] of any other model.
    pub fn network(self) -> Result<KanModel, Error> {
        match self.fitted {
            Fitted::Network(network) => Ok(network),
            _ => Err(self.refused("one of a network; use `weights`")),
        }
    }

    fn refused(&self, want: &'static str) -> Error {
        Error::Parameter { name: "plan", want, got: self.plan.method().name().into() }
    }
}

//! Differentially private learning on sensitive tables: plan, release, prove.
//!
//! ```
//! use quietly::{Budget, Charge, FitInput, FitOptions, Key, Link, Private, Regression, Table};
//!
//! // Two thousand rows of y = 3x + 1 (nearly), features within [-1, 1].
//! let x: Vec<f64> = (0..2000).map(|i| f64::from(i % 200) / 100.0 - 1.0).collect();
//! let y = x.iter().enumerate().map(|(i, x)| 3.0 * x + 1.0 + 0.1 * (i as f64).sin()).collect();
//! let table = Private::new(Table::new(1, x, y));
//!
//! // The plan sees no data. It can be printed, saved and refused.
//! let plan = Regression::new(Link::Linear).plan(2000, 1, Budget::new(1.0, 1e-5)?)?;
//! assert!(plan.epsilon() <= 1.0);
//!
//! // One run through the releaser. Targets are known to lie within [-10, 10].
//! let charge = Charge::without_ledger(Key::from_os()?);
//! let fit = plan.fit(FitInput::table(&table, (-10.0, 10.0)), FitOptions::new(charge))?;
//! let (intercept, weights) = fit.coefficients()?;
//! assert!((weights[0] - 3.0).abs() < 1.0 && (intercept - 1.0).abs() < 1.0);
//! # Ok::<(), quietly::Error>(())
//! ```
//!
//! # Where to start
//!
//! * [`Schema`] says what is public about a table, [`Source`] opens its files, [`Encoding`] makes
//!   rows of numbers of them.
//! * [`ModelSpec`] is any of these models with its parameters; [`ModelSpec::plan`] plans it.
//! * [`Regression::plan`] makes a [`Plan`]: every question that will be put to the data, and its price.
//! * [`Plan::fit`] takes the rows as [`FitInput`], wherever they are, and [`FitOptions`]; [`FitOutput::model`] is the
//!   [`Model`] with its [`Certificate`].
//! * [`Model::label`] is that certificate as one HTML page, for people who did not make the model.
//! * [`Expansion`] makes many features of few, by splines or waves, for any of these plans.
//! * [`predict`] and [`evaluate`] use it, [`classify`] and [`evaluate_classes`] if it is a classifier.
//! * [`private_range`] finds a column's range at a price, [`public_range`] in a public file.
//! * [`Moments`] are private means and standard deviations.
//! * [`Ledger`] remembers what was spent on a table, and refuses more. Whatever reads a table and adds noise takes [`Charge`]: it
//!   was charged to a ledger, or deliberately was not.
//! * [`Tuning`] chooses among candidates at one price.
//! * [`audit`] attacks plans and mechanisms on made-up tables: a lower bound on ε, beside the proven upper one.
//! * [`Backend`](backend::Backend) sums a [`Query`](query::Query) over the rows of a table: [`FitInput::backend`] takes any,
//!   [`PartitionedTable`] tables are grouped by secret step so that a run reads them once, and a [`Checkpoint`] lets a run resume.
//! * [`Error`] is the error of models and tables. Budgets, ledgers and certificates have [`CoreError`], which turns into it.
//!
//! # What is promised
//!
//! Whatever happens to one row, the released model's law changes by no more than the certificate says. Rows are
//! touched through one releaser (`release.rs`), which adds the planned noise and nothing less. No row can cause an
//! error or appear in one. Sums are exact integers: the same seed gives the same bits for any number of threads
//! and for any split of the rows into files.
pub use quietly_accounting::Neighbours;
pub use quietly_core::{
    allocation::Allocation,
    batch_sampling::BatchDraw,
    budget::Budget,
    certificate::Certificate,
    charge::Charge,
    checkpoint::{Checkpoint, PlanDigest},
    cores::forbid_core_files,
    disk,
    error::Error as CoreError,
    ledger::{Ledger, LedgerEntry, Run},
    mechanism::{Correlation, Mechanism, PlannedRelease, Sampler, Stage},
    privacy_plan::{PrivacyPlan, UncheckedPlan},
    private_selection::PrivateSelection,
    progress::{Progress, ProgressCallback},
    rows_used::RowsUsed,
};
pub use quietly_data::{
    Encoding, Error as DataError, Feature, Format, Kind, LedgerSettings, Missing, Notation,
    Options as ReadOptions, Private, Rule, Schema, Source, Sparse, Table, TablePart, Target, Value,
    is_hidden, visible,
};
pub use quietly_engine::{
    algorithm::{Access, Shape},
    backend,
    column_map::{ColumnMap, MappedColumn, Tail},
    error::Error,
    expansion::Expansion,
    link::Link,
    partitioned::{Grouped, PartitionedTable, Partitioning},
    query, remote,
    residual::Residual,
    wire::{Build, Foreign, from_bytes, opened, sealed, to_bytes},
};
pub use quietly_glm::{
    Classes, ConvexFit, Growth, Localisation, Loss, Minimiser, NoisyGradients,
    ObjectivePerturbation, OutputPerturbation, Problem, Regulariser, RowMap, Set, Weights,
    classes::Splines,
};
pub use quietly_kan as kan;
pub use quietly_linear::{
    additive::Additive,
    budget_split::{Centre, ClipFrom, Design, Learnable, Shares},
    earlier::{BudgetSplit, EarlierFullBatch, EarlierOnePass, EarlierShares},
    full_batch::FullBatch,
    ladder::{LadderShares, Rung},
    least_squares::LeastSquares,
    linear_fit::{FittedBends, LinearFit},
    one_pass::OnePass,
    papers::{
        AdaSsp, Averaging, BoostedAdaSsp, Clip, Noise, Pace, Paper, Recipe, Sampling, TukeyEm,
    },
};
pub use quietly_noise::Key;

pub use crate::{
    any_algorithm::{AnyAlgorithm, Fitted},
    bounds::{private_range, private_range_on, public_range, range_reading},
    evaluate::{
        Bin, ClassScores, Scores, classify, evaluate, evaluate_classes, evaluate_classes_privately,
        evaluate_privately, predict,
    },
    label::Label,
    methods::{Method, MethodInfo},
    model::{
        Affine, Classified, Curve, Model, PairMap, SplinePart, VarianceShares,
        certificate_from_json,
    },
    moments::Moments,
    partial_dependence::{ColumnCurves, Curves, Places},
    plan::{
        Convex, FitInput, FitOptions, FitOutput, Plan, PlanRecord, Regression, plan_auto_classes,
    },
    queries::decode_query,
    spec::{
        Family, ModelSpec, PARAMETERS, ParameterGroup, ParameterInfo, ParameterKind,
        ParameterValue, RENAMED,
    },
    table_check::{ColumnCheck, TableCheck},
    tune::{Tuning, Validation},
};

mod any_algorithm;
pub mod audit;
mod bounds;
pub mod diagnose;
mod evaluate;
mod label;
mod methods;
mod model;
mod moments;
mod one_sum;
mod partial_dependence;
mod plan;
mod queries;
mod spec;
pub mod svg;
mod table_check;
#[cfg(test)]
mod tests;
mod tune;

//! The best of a random number of trials.
use pyo3::{prelude::*, types::PyDict};
use quietly::{Encoding, FitOptions, Tuning, Validation};

use crate::{
    errors::{exception, raise},
    ledger::LedgerFile,
    model::Model,
    plan::Keywords,
    progress::watched,
    schema::Schema,
    table::Table,
};

/// How candidates are tried.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Trying {
    /// How many trials there are in the mean.
    trials: f64,
    /// The share of rows that tell how good a candidate is, where no other table does.
    share: f64,
    /// Whether the table of validation is public.
    public: bool,
}

/// Tries candidates, and gives the place of the best, its score and its model. All keywords but those for the model are the first's.
#[pyfunction]
#[pyo3(signature = (table, validation, schema, candidates, trying, taken_public, ledger=None))]
#[expect(clippy::too_many_arguments, reason = "they come from Python one by one")]
fn tune(
    py: Python<'_>,
    table: &Table,
    validation: Option<&Table>,
    schema: &Schema,
    candidates: Vec<Bound<'_, PyDict>>,
    trying: Trying,
    taken_public: Vec<String>,
    ledger: Option<&LedgerFile>,
) -> PyResult<(usize, f64, Model)> {
    let Trying { trials, share, public } = trying;
    let first = Keywords(candidates.first().ok_or_else(|| wrong("there are no candidates"))?);
    let specs = candidates.iter().map(|c| Keywords(c).spec()).collect::<PyResult<Vec<_>>>()?;
    let target = first.word("target")?.unwrap_or_default();
    let columns = table.source.columns();
    let encoding = Encoding::new(&schema.inner, columns, None, Some(&target)).map_err(raise)?;
    let rows = first.count("rows")?.unwrap_or(schema.inner.rows);
    let budget = first.budget(rows, schema)?;
    let (key, threads) = (first.key()?, first.threads()?);
    let not_covered = first.not_covered()?;
    let parameters = candidates.iter().map(|c| Keywords(c).parameters());
    let mut parameters = parameters.collect::<PyResult<Vec<_>>>()?;
    let training = match validation {
        Some(_) => rows,
        None if (0.01..=0.9).contains(&share) => ((rows as f64) * (1.0 - share)).round() as u64,
        None => return Err(wrong("share must be from 0.01 to 0.9 of the rows")),
    };
    let tuning = py
        .detach(|| Tuning::plan(&specs, &encoding, training.max(1), budget, trials, public))
        .map_err(raise)?;
    for table in validation.into_iter().chain([table]) {
        table.check(&encoding, schema)?;
    }
    // Rows are split at random by their position, independently of their values.
    let parts = match validation {
        Some(_) => None,
        None => Some(split(table, share, &key)?),
    };
    let (charge, run) = match ledger {
        Some(ledger) => {
            let (charge, run) = ledger.pay("the best of a random number of trials", budget, key)?;
            (charge, Some((ledger, run)))
        }
        None => (quietly::Charge::without_ledger(key), None),
    };
    let (train, held) = match (&parts, validation) {
        (Some((held, train)), _) => (train, held),
        (None, Some(held)) => (&table.source, &held.source),
        (None, None) => unreachable!("one or the other"),
    };
    let held = if public { Validation::Public(held) } else { Validation::Private(held) };
    let (place, score, mut model) = watched(py, first.tell()?, |watch| {
        let options = FitOptions::new(charge).threads(threads).watch(watch);
        tuning.run(train, &encoding, held, &schema.inner.unit, options)
    })?;
    if let Some((ledger, run)) = run {
        ledger.finish(&run);
    }
    model.certificate.public.extend(taken_public);
    model.certificate.not_covered.extend(not_covered);
    model.parameters = parameters.swap_remove(place);
    Ok((place, score, Model(model)))
}

/// Rows that tell how good a candidate is, and rows to train with.
pub(crate) fn split(
    table: &Table,
    share: f64,
    key: &quietly::Key,
) -> PyResult<(quietly::Source, quietly::Source)> {
    let mut bits = key.stream("which rows are held back").bits(0).map_err(raise)?;
    let below = (share * (1_u64 << 53) as f64) as u64;
    let mut failed = None;
    let parts = table.source.split(&mut || match bits.word() {
        Ok(word) => word >> 11 < below,
        Err(error) => {
            failed = Some(error);
            false
        }
    });
    match (failed, parts.map_err(raise)?) {
        (Some(error), _) => Err(raise(error)),
        (None, Some(parts)) => Ok(parts),
        (None, None) => Err(wrong(
            "only a table in memory can be divided: give validation=(X, y), rows that are not among those of the files",
        )),
    }
}

fn wrong(message: &str) -> PyErr {
    exception("ParameterError", message, None)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tune, module)?)
}

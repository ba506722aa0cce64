//! Fits on tables that are not in memory: rows in parts, on this machine or on a cluster, and resumed runs.
use std::path::{Path, PathBuf};

use clap::Args;
use quietly::{
    Checkpoint, Encoding, Error, FitInput, FitOptions, Key, Ledger, Method, Model,
    PartitionedTable, Plan, Run, Source, TablePart,
    backend::{Backend, ParquetParts, ReadSpec},
};

use crate::{
    cluster::{Fleet, OnCluster},
    error::Failure,
    parse::Count,
};

/// Where the rows are, and whether the run can be resumed.
#[derive(Args, Debug)]
pub(crate) struct Away {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Checkpoint file: the same command resumes an interrupted run (Parquet only)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    checkpoint: Option<PathBuf>,
}

/// Which cluster.
#[derive(Args, Debug)]
pub(crate) struct Cluster {
    /// Run queries on a cluster: df://host:port of `quietly-cluster scheduler`
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    cluster: Option<String>,
    /// Number of tasks of a step on the cluster; one for every 64 MB by default
    #[arg(long, value_name = "N", hide_short_help = true, requires = "cluster")]
    tasks: Option<Count>,
}

impl Cluster {
    /// The worker there, if there is one.
    pub(crate) fn fleet(&self) -> Result<Option<Fleet>, Failure> {
        let Some(address) = &self.cluster else { return Ok(None) };
        let tasks = self.tasks.map(|tasks| tasks.at_least_one("tasks")).transpose()?;
        Ok(Some(Fleet::reached(address, tasks.map(|tasks| tasks.min(1 << 20) as usize))?))
    }
}

impl Fleet {
    /// All rows of a table, summed there.
    pub(crate) fn rows(self, source: &Source, read: ReadSpec) -> Result<OnCluster, Failure> {
        let parts = absolute(source.parts().map_err(Error::from)?)?;
        Ok(OnCluster { fleet: self, parts: ParquetParts::new(vec![parts], read, 1) })
    }
}

/// The table that was prepared in a folder, if that is what was named.
pub(crate) fn prepared(files: &[PathBuf]) -> Result<Option<PartitionedTable>, Failure> {
    match files {
        [folder] => Ok(PartitionedTable::read(folder)?),
        _ => Ok(None),
    }
}

/// Rows that are not held in memory.
pub(crate) struct There {
    backend: Box<dyn Backend>,
    prepared: Option<(PartitionedTable, PathBuf)>,
    checkpoint: Option<Checkpoint>,
}

impl Away {
    /// The file of the checkpoint, if it is not to be written over.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.checkpoint.as_deref()
    }

    /// Whether a plan is run on rows that are not held.
    pub(crate) fn is_asked_for(&self, plan: &Plan, prepared: Option<&PartitionedTable>) -> bool {
        self.cluster.cluster.is_some()
            || self.checkpoint.is_some()
            || (prepared.is_some() && plan.method() == Method::OnePass)
    }

    /// Prepares queries over the rows; none has been read, and nothing is charged. `about` identifies what else a resumed run must have
    /// in common.
    pub(crate) fn there(
        &self,
        plan: &Plan,
        (source, files): (&Source, &[PathBuf]),
        prepared: Option<PartitionedTable>,
        (encoding, about): (&Encoding, &str),
        (key, threads): (&Key, usize),
        ledger: Option<&Ledger>,
    ) -> Result<There, Failure> {
        plan.check_sums()?;
        if self.checkpoint.is_some() {
            plan.check_resumable(prepared.as_ref().map(|prepared| &prepared.allocation))?;
        }
        let one_pass = plan.method() == Method::OnePass;
        let prepared = prepared.filter(|_| one_pass).map(|prepared| (prepared, files[0].clone()));
        let steps = match &prepared {
            Some((prepared, folder)) => prepared.steps(folder)?,
            None if one_pass => {
                let (name, got) = ("table", "not partitioned".into());
                let want = "partitioned, to be read step by step: quietly partition TABLE --steps T --output FOLDER";
                return Err(Error::Parameter { name, want, got }.into());
            }
            None => vec![absolute(source.parts().map_err(Error::from)?)?],
        };
        plan.suits(prepared.as_ref().map(|(prepared, _)| &prepared.allocation))?;
        let seed = match key.source() {
            quietly_noise::Source::Seed(seed) => Some(seed),
            quietly_noise::Source::OperatingSystem => None,
        };
        let allocation = prepared.as_ref().map_or("", |(prepared, _)| &prepared.allocation.id);
        let read = serde_json::to_string(encoding).expect("plain fields");
        let about = format!("{}; {allocation}; {read}; {about}", fingerprint(&steps));
        let checkpoint = match &self.checkpoint {
            Some(path) => Some(Checkpoint::open(path, &plan.identity(), &about, seed, ledger)?),
            None => None,
        };
        if let (Some((prepared, folder)), false) = (&prepared, begun(&checkpoint)) {
            prepared.check_unused(folder)?;
        }
        let parts = ParquetParts::new(steps, plan.reading(encoding), threads);
        let backend: Box<dyn Backend> = match self.cluster.fleet()? {
            Some(fleet) => Box::new(OnCluster { fleet, parts }),
            None => Box::new(parts),
        };
        Ok(There { backend, prepared, checkpoint })
    }
}

/// Whether a run was begun before.
fn begun(checkpoint: &Option<Checkpoint>) -> bool {
    checkpoint.as_ref().is_some_and(Checkpoint::is_begun)
}

impl There {
    /// Whether the run is resumed: it was charged when it began.
    pub(crate) fn goes_on(&self) -> bool {
        begun(&self.checkpoint)
    }

    /// The run that is to be charged, if it is not begun.
    pub(crate) fn run(&self, what: &str) -> Result<Run, Error> {
        let mut run = Run::new(what)?;
        if let Some(checkpoint) = &self.checkpoint {
            run.name = checkpoint.run().into();
        }
        let allocation = self.prepared.as_ref().map(|(prepared, _)| &prepared.allocation);
        run.allocation = allocation.filter(|a| !a.test_only).map(|a| a.id.clone());
        Ok(run)
    }

    /// Fits the rows; `save` puts the model where it is safe, before the checkpoint is deleted.
    pub(crate) fn fit(
        mut self,
        (plan, run): (&Plan, &str),
        encoding: &Encoding,
        unit: &str,
        options: FitOptions<'_>,
        save: impl FnOnce(&mut Model) -> Result<(), Failure>,
    ) -> Result<Model, Failure> {
        let mut checkpoint = self.checkpoint.take();
        if let Some(checkpoint) = &mut checkpoint {
            checkpoint.begin()?;
        }
        if let Some((prepared, folder)) = &self.prepared {
            prepared.claim(folder, run)?;
        }
        let allocation = self.prepared.as_ref().map(|(prepared, _)| &prepared.allocation);
        let input = FitInput::backend(&mut *self.backend, encoding).allocated(allocation);
        let mut fit = plan.fit(input, options.checkpoint(checkpoint))?;
        let checkpoint = fit.checkpoint.take();
        let mut model = fit.model(unit)?;
        save(&mut model)?;
        if let Some((prepared, folder)) = &self.prepared {
            prepared.close(folder, run)?;
        }
        if let Some(checkpoint) = checkpoint {
            checkpoint.finish()?;
        }
        Ok(model)
    }
}

/// The same parts by paths that mean the same everywhere on a machine.
fn absolute(parts: Vec<TablePart>) -> Result<Vec<TablePart>, Failure> {
    let one = |mut part: TablePart| {
        part.path = std::fs::canonicalize(&part.path).map_err(|e| Failure::file(&part.path, &e))?;
        Ok(part)
    };
    parts.into_iter().map(one).collect()
}

/// What tells a table from others: its files, and how much there is in each. It stays in the checkpoint, beside the table.
fn fingerprint(steps: &[Vec<TablePart>]) -> String {
    let mut files: Vec<(&Path, u64)> = Vec::new();
    for part in steps.iter().flatten() {
        match files.iter_mut().find(|(path, _)| *path == part.path) {
            Some((_, bytes)) => *bytes += part.bytes(),
            None => files.push((&part.path, part.bytes())),
        }
    }
    let told: Vec<String> = files.iter().map(|(p, b)| format!("{}: {b}", p.display())).collect();
    told.join("; ")
}

//! Tasks as the engine sees them: a table of one row for every task, over another that says what each is to be done with.
//!
//! The lower one is in memory, a partition for every task, so that the engine knows how to give an executor its own.
use std::{fmt, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    arrow::{
        array::{Array, ArrayRef, BinaryArray, BooleanArray, RecordBatch, UInt32Array},
        datatypes::{DataType, Field, Schema, SchemaRef},
    },
    catalog::{Session, TableProvider},
    common::{DataFusionError, Result, tree_node::TreeNodeRecursion},
    datasource::memory::MemorySourceConfig,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{Expr, TableType},
    physical_expr::{EquivalenceProperties, PhysicalExpr},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
        ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions,
        execution_plan::{Boundedness, EmissionType},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::StreamExt;
use quietly::{
    Foreign, decode_query, from_bytes,
    remote::{Job, JobSpec, TaskPart},
    to_bytes,
};

use crate::roots::Roots;

/// The work of one step, as the client sends it. It is never printed: it may hold secrets.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) bytes: Arc<Vec<u8>>,
    work: Arc<JobSpec>,
}

impl Table {
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self> {
        let work = from_bytes(&bytes).map_err(other_build)?;
        Ok(Table { bytes: Arc::new(bytes), work: Arc::new(work) })
    }

    /// How many tasks there are.
    pub(crate) fn count(&self) -> usize {
        self.work.tasks.len()
    }
}

fn other_build(why: Foreign) -> DataFusionError {
    DataFusionError::Plan(why.to_string())
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Table(..)")
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        done_schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let row = |(task, parts): (usize, &Vec<TaskPart>)| {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(UInt32Array::from(vec![task as u32])),
                Arc::new(BinaryArray::from(vec![&to_bytes(parts)[..]])),
            ];
            Ok(vec![RecordBatch::try_new(to_do_schema(), columns)?])
        };
        let to_do: Vec<Vec<RecordBatch>> =
            self.work.tasks.iter().enumerate().map(row).collect::<Result<_>>()?;
        let to_do = MemorySourceConfig::try_new_exec(&to_do, to_do_schema(), None)?;
        Ok(Arc::new(Tasks::new(to_bytes(&self.work.job), to_do, None)))
    }
}

/// The number of a task, and what it is to be done with.
fn to_do_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("task", DataType::UInt32, false),
        Field::new("parts", DataType::Binary, false),
    ]))
}

/// The number of a task, whether it was done, and what it came to or why not.
fn done_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("task", DataType::UInt32, false),
        Field::new("done", DataType::Boolean, false),
        Field::new("what", DataType::Binary, false),
    ]))
}

/// The same as executors are sent it.
#[derive(Clone)]
pub(crate) struct Tasks {
    pub(crate) bytes: Arc<Vec<u8>>,
    /// An executor of another build answers so, rather than fail: then the client is told why.
    job: Result<Arc<Job>, Foreign>,
    to_do: Arc<dyn ExecutionPlan>,
    roots: Option<Arc<Roots>>,
    properties: Arc<PlanProperties>,
}

impl Tasks {
    pub(crate) fn new(
        bytes: Vec<u8>,
        to_do: Arc<dyn ExecutionPlan>,
        roots: Option<Arc<Roots>>,
    ) -> Self {
        let job = from_bytes(&bytes).map(Arc::new);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(done_schema()),
            to_do.output_partitioning().clone(),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Tasks { bytes: Arc::new(bytes), job, to_do, roots, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tasks(..)")
    }
}

impl DisplayAs for Tasks {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tasks")
    }
}

impl ExecutionPlan for Tasks {
    fn name(&self) -> &'static str {
        "Tasks"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.to_do]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    /// More partitions than there are tasks would be of no use.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let to_do = children.pop().ok_or_else(|| other_build(Foreign::Bytes))?;
        Ok(Arc::new(Tasks::new(self.bytes.to_vec(), to_do, self.roots.clone())))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, anew)
    }

    fn execute(&self, at: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (job, roots) = (self.job.clone(), self.roots.clone());
        let to_do = self.to_do.execute(at, context)?;
        let done = to_do.then(move |batch| done(job.clone(), roots.clone(), batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(done_schema(), done)))
    }
}

/// Does one task, unless it is for another build or for files that this executor does not touch.
fn done_here(
    job: Result<Arc<Job>, Foreign>,
    roots: Option<&Roots>,
    parts: &[TaskPart],
) -> Result<Vec<u8>, String> {
    let job = job.map_err(|other| format!("an executor refuses: {other}"))?;
    let roots = roots.ok_or("tasks are done by executors alone")?;
    let parts = roots.admitted(&job, parts)?;
    job.run(&parts, decode_query).map(crate::relay::sent).map_err(|error| error.to_string())
}

/// Does the tasks of a batch, one after the other.
async fn done(
    job: Result<Arc<Job>, Foreign>,
    roots: Option<Arc<Roots>>,
    batch: Result<RecordBatch>,
) -> Result<RecordBatch> {
    let batch = batch?;
    let (mut numbers, mut fine, mut whats) = (Vec::new(), Vec::new(), Vec::new());
    for (number, parts) in to_do(&batch).ok_or_else(|| other_build(Foreign::Bytes))? {
        let (job, roots) = (job.clone(), roots.clone());
        // Reading and adding up take the thread for a while.
        let work = move || done_here(job, roots.as_deref(), &parts);
        let done = tokio::task::spawn_blocking(work).await;
        let (good, what) = match done {
            Ok(Ok(answer)) => (true, answer),
            // A file that cannot be read will not be read by another, either: it is no failure of the engine's.
            Ok(Err(why)) => (false, why.into_bytes()),
            // What it said may be about a row.
            Err(_) => return Err(DataFusionError::Execution("a task was interrupted".into())),
        };
        numbers.push(number);
        fine.push(good);
        whats.push(what);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from(numbers)),
        Arc::new(BooleanArray::from(fine)),
        Arc::new(whats.iter().map(|what| Some(&what[..])).collect::<BinaryArray>()),
    ];
    Ok(RecordBatch::try_new(done_schema(), columns)?)
}

/// The tasks of a batch.
fn to_do(batch: &RecordBatch) -> Option<Vec<(u32, Vec<TaskPart>)>> {
    let numbers: &UInt32Array = batch.column(0).as_any().downcast_ref()?;
    let parts: &BinaryArray = batch.column(1).as_any().downcast_ref()?;
    let rows = 0..batch.num_rows();
    rows.map(|row| Some((numbers.value(row), from_bytes(parts.value(row)).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use quietly::Build;

    use super::*;

    /// An executor that gets an job of another build, or one for files outside of its folders, does nothing and says why.
    #[test]
    fn orders_of_another_build_are_refused_by_version() {
        let place = tempfile::tempdir().unwrap();
        let roots = Roots::new(place.path(), None).unwrap();
        let ours = to_bytes(&Job::Check);
        let line = Build::this().line();
        let other = line.replace(line.rsplit_once(' ').unwrap().1, "00000000deadbeef");
        let theirs = [other.as_bytes(), &ours[line.len()..]].concat();
        let done = |bytes: &[u8]| done_here(from_bytes(bytes).map(Arc::new), Some(&roots), &[]);
        assert!(done(&ours).is_ok());
        let refused = done(&theirs).unwrap_err();
        assert!(refused.contains("an executor refuses: this is quietly "), "{refused}");
        assert!(refused.contains("sources 00000000deadbeef"), "{refused}");
        assert!(Table::new(theirs).unwrap_err().to_string().contains("00000000deadbeef"));
        assert!(done_here(from_bytes(&ours).map(Arc::new), None, &[]).is_err());
    }
}

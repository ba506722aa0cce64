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
use quietly::{Load, Order, Work, from_bytes, to_bytes};

/// The work of one step, as the client sends it. It is never printed: it may hold secrets.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) bytes: Arc<Vec<u8>>,
    work: Arc<Work>,
}

impl Table {
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self> {
        let work = from_bytes(&bytes).ok_or_else(other_version)?;
        Ok(Table { bytes: Arc::new(bytes), work: Arc::new(work) })
    }

    /// How many tasks there are.
    pub(crate) fn count(&self) -> usize {
        self.work.tasks.len()
    }
}

fn other_version() -> DataFusionError {
    DataFusionError::Plan("this is not work for a cluster of this version".into())
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
        let row = |(task, loads): (usize, &Vec<Load>)| {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(UInt32Array::from(vec![task as u32])),
                Arc::new(BinaryArray::from(vec![&to_bytes(loads)[..]])),
            ];
            Ok(vec![RecordBatch::try_new(to_do_schema(), columns)?])
        };
        let to_do: Vec<Vec<RecordBatch>> =
            self.work.tasks.iter().enumerate().map(row).collect::<Result<_>>()?;
        let to_do = MemorySourceConfig::try_new_exec(&to_do, to_do_schema(), None)?;
        Ok(Arc::new(Tasks::new(to_bytes(&self.work.order), to_do)?))
    }
}

/// The number of a task, and what it is to be done with.
fn to_do_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("task", DataType::UInt32, false),
        Field::new("loads", DataType::Binary, false),
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
    order: Arc<Order>,
    to_do: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Tasks {
    pub(crate) fn new(bytes: Vec<u8>, to_do: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let order = from_bytes(&bytes).ok_or_else(other_version)?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(done_schema()),
            to_do.output_partitioning().clone(),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (bytes, order, properties) = (Arc::new(bytes), Arc::new(order), Arc::new(properties));
        Ok(Tasks { bytes, order, to_do, properties })
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
        let to_do = children.pop().ok_or_else(other_version)?;
        Ok(Arc::new(Tasks::new(self.bytes.to_vec(), to_do)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, anew)
    }

    fn execute(&self, at: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (order, to_do) = (self.order.clone(), self.to_do.execute(at, context)?);
        let done = to_do.then(move |batch| done(order.clone(), batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(done_schema(), done)))
    }
}

/// Does the tasks of a batch, one after the other.
async fn done(order: Arc<Order>, batch: Result<RecordBatch>) -> Result<RecordBatch> {
    let batch = batch?;
    let (mut numbers, mut fine, mut whats) = (Vec::new(), Vec::new(), Vec::new());
    for (number, loads) in to_do(&batch).ok_or_else(other_version)? {
        let order = order.clone();
        // Reading and adding up take the thread for a while.
        let done = tokio::task::spawn_blocking(move || order.run(&loads)).await;
        let (good, what) = match done {
            Ok(Ok(answer)) => (true, crate::relay::sent(answer)),
            // A file that cannot be read will not be read by another, either: it is no failure of the engine's.
            Ok(Err(why)) => (false, why.to_string().into_bytes()),
            // What it said may be about a row.
            Err(_) => return Err(DataFusionError::Execution("a task was broken off".into())),
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
fn to_do(batch: &RecordBatch) -> Option<Vec<(u32, Vec<Load>)>> {
    let numbers: &UInt32Array = batch.column(0).as_any().downcast_ref()?;
    let loads: &BinaryArray = batch.column(1).as_any().downcast_ref()?;
    let rows = 0..batch.num_rows();
    rows.map(|row| Some((numbers.value(row), from_bytes(loads.value(row))?))).collect()
}

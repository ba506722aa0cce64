//! What a cluster does: quietly's tasks, and nothing else. The engine could read any file that its user may read.
//!
//! The scheduler takes one kind of plan from its clients: a scan of our own [`Table`](crate::tasks::Table), which the codec decodes. Scans of
//! files, SQL over them and ready-made physical plans are refused before they are decoded. Executors look once more, at what they are about to run.
use std::{any::Any, sync::Arc};

use ballista_core::JobId;
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use bytes::BufMut;
use datafusion::{
    common::{DataFusionError, Result},
    datasource::{memory::MemorySourceConfig, source::DataSourceExec},
    execution::TaskContext,
    logical_expr::LogicalPlan,
    physical_plan::ExecutionPlan,
    prelude::SessionConfig,
};
use datafusion_proto::{
    logical_plan::{AsLogicalPlan, LogicalExtensionCodec},
    physical_plan::{AsExecutionPlan, PhysicalExtensionCodec},
    protobuf::{LogicalPlanNode, PhysicalPlanNode, logical_plan_node::LogicalPlanType},
};

use crate::tasks::Tasks;

pub(crate) fn refused() -> DataFusionError {
    DataFusionError::Plan("this cluster does the work of quietly, and nothing else".into())
}

/// A logical plan that a client may submit.
#[derive(Clone, Debug)]
pub(crate) struct Submitted(LogicalPlanNode);

impl AsLogicalPlan for Submitted {
    fn try_decode(bytes: &[u8]) -> Result<Self> {
        let node = <LogicalPlanNode as AsLogicalPlan>::try_decode(bytes)?;
        match &node.logical_plan_type {
            // A filter may hold a query of its own.
            Some(LogicalPlanType::CustomScan(scan)) if scan.filters.is_empty() => {
                Ok(Submitted(node))
            }
            _ => Err(refused()),
        }
    }

    fn try_encode<B: BufMut>(&self, into: &mut B) -> Result<()> {
        self.0.try_encode(into)
    }

    fn try_into_logical_plan(
        &self,
        context: &TaskContext,
        codec: &dyn LogicalExtensionCodec,
    ) -> Result<LogicalPlan> {
        self.0.try_into_logical_plan(context, codec)
    }

    fn try_from_logical_plan(
        plan: &LogicalPlan,
        codec: &dyn LogicalExtensionCodec,
    ) -> Result<Self> {
        LogicalPlanNode::try_from_logical_plan(plan, codec).map(Submitted)
    }
}

/// A physical plan, which the scheduler sends and does not take.
#[derive(Clone, Debug)]
pub(crate) struct Launched(PhysicalPlanNode);

impl AsExecutionPlan for Launched {
    fn try_decode(_: &[u8]) -> Result<Self> {
        Err(refused())
    }

    fn try_encode<B: BufMut>(&self, into: &mut B) -> Result<()> {
        self.0.try_encode(into)
    }

    fn try_into_physical_plan(
        &self,
        context: &TaskContext,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.try_into_physical_plan(context, codec)
    }

    fn try_from_physical_plan(
        plan: Arc<dyn ExecutionPlan>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<Self> {
        PhysicalPlanNode::try_from_physical_plan(plan, codec).map(Launched)
    }
}

/// Runs plans that are ours.
#[derive(Default)]
pub(crate) struct Engine(DefaultExecutionEngine);

impl ExecutionEngine for Engine {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        folder: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        if !is_ours(&plan) {
            return Err(refused());
        }
        self.0.create_query_stage_exec(job, stage, task, partitions, plan, folder, config)
    }
}

/// Whether a plan writes down what tasks come to, which are read from memory.
pub(crate) fn is_ours(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let any: &dyn Any = &**plan;
    if any.is::<Tasks>() {
        return plan.children().into_iter().all(is_in_memory);
    }
    matches!(plan.children()[..], [input] if WRAPPERS.contains(&plan.name()) && is_ours(input))
}

/// What the engine puts around tasks: none of it reads anything by itself.
const WRAPPERS: [&str; 3] = ["ShuffleWriterExec", "CoalescePartitionsExec", "CooperativeExec"];

fn is_in_memory(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let any: &dyn Any = &**plan;
    let source = any.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    source.is_some_and(|source| source.is::<MemorySourceConfig>())
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{CsvReadOptions, SessionContext};
    use datafusion_proto::bytes::logical_plan_to_bytes;

    use super::*;

    /// SELECT over a CSV file, as a plain client sends it, and as an executor would see it.
    #[tokio::test]
    async fn scans_of_files_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("t.csv");
        std::fs::write(&file, "a,b\n1,2\n").unwrap();
        let session = SessionContext::new();
        let path = file.to_str().unwrap();
        session.register_csv("t", path, CsvReadOptions::new()).await.unwrap();
        for query in ["SELECT * FROM t", "SELECT 1", "SELECT count(*) FROM t"] {
            let plan = session.sql(query).await.unwrap();
            let (state, logical) = plan.into_parts();
            let bytes = logical_plan_to_bytes(&logical).unwrap();
            let error = Submitted::try_decode(&bytes).unwrap_err().to_string();
            assert!(error.contains("nothing else"), "{error}");
            let physical = state.create_physical_plan(&logical).await.unwrap();
            assert!(!is_ours(&physical), "{query}");
        }
        assert!(Launched::try_decode(&[]).is_err());
    }
}

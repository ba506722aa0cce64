//! How tasks travel: as bytes behind a mark of our own, among whatever else the engine sends.
use std::{any::Any, sync::Arc};

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::{
    arrow::datatypes::SchemaRef,
    catalog::TableProvider,
    common::{Result, TableReference},
    execution::TaskContext,
    logical_expr::{Extension, LogicalPlan},
    physical_plan::ExecutionPlan,
};
use datafusion_proto::{
    logical_plan::LogicalExtensionCodec,
    physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension},
};

use crate::tasks::{Table, Tasks};

const MARK: &[u8] = b"quietly tasks 1\n";

/// What the client and the scheduler say to each other.
#[derive(Debug, Default)]
pub(crate) struct Logical(BallistaLogicalExtensionCodec);

/// What the scheduler and executors say to each other.
#[derive(Debug, Default)]
pub(crate) struct Physical(BallistaPhysicalExtensionCodec);

fn write(bytes: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(MARK);
    into.extend_from_slice(bytes);
}

fn read(bytes: &[u8]) -> Option<Vec<u8>> {
    bytes.strip_prefix(MARK).map(<[u8]>::to_vec)
}

impl LogicalExtensionCodec for Logical {
    fn try_decode(&self, b: &[u8], i: &[LogicalPlan], c: &TaskContext) -> Result<Extension> {
        self.0.try_decode(b, i, c)
    }

    fn try_encode(&self, node: &Extension, into: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, into)
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        table: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match read(bytes) {
            Some(work) => Ok(Arc::new(Table::new(work)?)),
            None => self.0.try_decode_table_provider(bytes, table, schema, context),
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        node: Arc<dyn TableProvider>,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        match (&*node as &dyn Any).downcast_ref::<Table>() {
            Some(table) => {
                write(&table.bytes, into);
                Ok(())
            }
            None => self.0.try_encode_table_provider(name, node, into),
        }
    }
}

impl PhysicalExtensionCodec for Physical {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (read(bytes), inputs) {
            (Some(order), [to_do]) => Ok(Arc::new(Tasks::new(order, to_do.clone())?)),
            _ => self.0.try_decode(bytes, inputs, context, converter),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        into: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match (&*node as &dyn Any).downcast_ref::<Tasks>() {
            Some(tasks) => {
                write(&tasks.bytes, into);
                Ok(())
            }
            None => self.0.try_encode(node, into, converter),
        }
    }
}

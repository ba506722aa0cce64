//! How tasks travel: as bytes behind a mark of our own and the token of the cluster. The engine's other messages are refused, but for the
//! node by which it writes down what tasks come to.
use std::{any::Any, sync::Arc};

use ballista_core::{execution_plans::ShuffleWriterExec, serde::BallistaPhysicalExtensionCodec};
use datafusion::{
    arrow::datatypes::SchemaRef,
    catalog::TableProvider,
    common::{DataFusionError, Result, TableReference},
    execution::TaskContext,
    logical_expr::{Extension, LogicalPlan},
    physical_plan::ExecutionPlan,
};
use datafusion_proto::{
    logical_plan::LogicalExtensionCodec,
    physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension},
};

use crate::{
    ours::refused,
    roots::Roots,
    tasks::{Table, Tasks},
    token::{LENGTH, Token},
};

const MARK: &[u8] = b"quietly tasks 3\n";

/// What the client and the scheduler say to each other.
#[derive(Debug)]
pub(crate) struct Logical(pub(crate) Token);

/// What the scheduler and executors say to each other.
#[derive(Debug)]
pub(crate) struct Physical {
    token: Token,
    /// Where an executor reads and writes; the scheduler does neither.
    roots: Option<Arc<Roots>>,
    engine: BallistaPhysicalExtensionCodec,
}

impl Physical {
    pub(crate) fn new(token: Token, roots: Option<Roots>) -> Self {
        Physical { token, roots: roots.map(Arc::new), engine: Default::default() }
    }
}

fn write(token: &Token, bytes: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(MARK);
    into.extend_from_slice(token.bytes());
    into.extend_from_slice(bytes);
}

/// The bytes behind the mark and the token; none if there is no mark.
fn read(token: &Token, bytes: &[u8]) -> Option<Result<Vec<u8>>> {
    let rest = bytes.strip_prefix(MARK)?;
    Some(match rest.split_at_checked(LENGTH) {
        Some((given, bytes)) if token.is(given) => Ok(bytes.to_vec()),
        _ => Err(DataFusionError::Plan("this cluster of quietly needs its token".into())),
    })
}

impl LogicalExtensionCodec for Logical {
    fn try_decode(&self, _: &[u8], _: &[LogicalPlan], _: &TaskContext) -> Result<Extension> {
        Err(refused())
    }

    fn try_encode(&self, _: &Extension, _: &mut Vec<u8>) -> Result<()> {
        Err(refused())
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        _: &TableReference,
        _: SchemaRef,
        _: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let work = read(&self.0, bytes).ok_or_else(refused)??;
        Ok(Arc::new(Table::new(work)?))
    }

    fn try_encode_table_provider(
        &self,
        _: &TableReference,
        node: Arc<dyn TableProvider>,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        let table = (&*node as &dyn Any).downcast_ref::<Table>().ok_or_else(refused)?;
        write(&self.0, &table.bytes, into);
        Ok(())
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
        if let Some(order) = read(&self.token, bytes) {
            let [to_do] = inputs else { return Err(refused()) };
            return Ok(Arc::new(Tasks::new(order?, to_do.clone(), self.roots.clone())));
        }
        let node = self.engine.try_decode(bytes, inputs, context, converter)?;
        if (&*node as &dyn Any).is::<ShuffleWriterExec>() { Ok(node) } else { Err(refused()) }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        into: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match (&*node as &dyn Any).downcast_ref::<Tasks>() {
            Some(tasks) => {
                write(&self.token, &tasks.bytes, into);
                Ok(())
            }
            None => self.engine.try_encode(node, into, converter),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;
    use quietly::{
        remote::{Job, JobSpec},
        to_bytes,
    };

    use super::*;

    #[test]
    fn work_needs_the_mark_and_the_token() {
        let (token, other) = (Token::fresh().unwrap(), Token::fresh().unwrap());
        let work = to_bytes(&JobSpec { job: Job::Check, tasks: vec![vec![]] });
        let context = SessionContext::new().task_ctx();
        let taken = |bytes: &[u8]| {
            let (name, schema) = (TableReference::bare("t"), SchemaRef::new(arrow_schema()));
            let codec = Logical(token.clone());
            codec.try_decode_table_provider(bytes, &name, schema, &context).map(|_| ())
        };
        let marked = |token: &Token| {
            let mut bytes = Vec::new();
            write(token, &work, &mut bytes);
            bytes
        };
        taken(&marked(&token)).unwrap();
        let short = &marked(&token)[..MARK.len() + 7];
        for (bytes, say) in [
            (&marked(&other)[..], "token"),
            (short, "token"),
            (&work, "nothing else"),
            (b"", "nothing else"),
        ] {
            let error = taken(bytes).unwrap_err().to_string();
            assert!(error.contains(say), "{error}");
        }
    }

    fn arrow_schema() -> datafusion::arrow::datatypes::Schema {
        datafusion::arrow::datatypes::Schema::empty()
    }
}

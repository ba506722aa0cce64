//! The part that gives tasks to executors.
use std::{net::SocketAddr, sync::Arc};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::{
    cluster::BallistaCluster,
    config::SchedulerConfig,
    scheduler_process::{create_scheduler, start_grpc_service_with_listener},
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use crate::{Scheduler, codec};

/// Seconds without a sign of life after which an executor counts as lost, and its tasks are given to others.
const LOST_AFTER: u64 = 10;

pub(crate) async fn run(asked: &Scheduler) -> Result<(), String> {
    let address = asked.binding.address()?;
    let listener = TcpListener::bind(SocketAddr::new(address, asked.port)).await;
    let listener =
        listener.map_err(|e| format!("cannot listen at {address}:{}: {e}", asked.port))?;
    let place = listener.local_addr().map_err(|e| e.to_string())?;
    let config = SchedulerConfig {
        bind_host: address.to_string(),
        external_host: address.to_string(),
        bind_port: place.port(),
        // Executors that ask for tasks sleep in between.
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        executor_timeout_seconds: LOST_AFTER,
        expire_dead_executor_interval_seconds: 2,
        no_executors_grace_period_seconds: LOST_AFTER,
        // Clients ask whether there is one.
        min_ready_executors: 1,
        // Sums are private: they are not kept longer than the client needs to fetch them.
        finished_job_data_clean_up_interval_seconds: 30,
        finished_job_state_clean_up_interval_seconds: 60,
        grpc_server_max_decoding_message_size: MESSAGE,
        grpc_server_max_encoding_message_size: MESSAGE,
        grpc_client_max_message_size: MESSAGE,
        override_logical_codec: Some(Arc::new(codec::Logical::default())),
        override_physical_codec: Some(Arc::new(codec::Physical::default())),
        ..Default::default()
    };
    let config = Arc::new(config);
    let failed = |e: ballista_core::error::BallistaError| format!("the scheduler cannot run: {e}");
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config);
    let scheduler = scheduler.await.map_err(failed)?;
    println!("quietly-cluster scheduler at df://{place}");
    tokio::select! {
        ended = start_grpc_service_with_listener(listener, scheduler) => ended.map_err(failed),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// The largest message between parts of a cluster, in bytes: lists of the parts of a table may be long.
pub(crate) const MESSAGE: u32 = 256 << 20;

//! The part that gives tasks to executors.
use std::{net::SocketAddr, sync::Arc};

use axum::{http::StatusCode, routing::get};
use ballista_core::{
    config::TaskSchedulingPolicy, serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer,
};
use ballista_scheduler::{
    cluster::BallistaCluster, config::SchedulerConfig, scheduler_process::create_scheduler,
    scheduler_server::SchedulerServer,
};
use tokio::net::TcpListener;
use tonic::service::{RoutesBuilder, interceptor::InterceptedService};

use crate::{
    Scheduler, codec,
    ours::{Launched, Submitted},
    token::{Gate, Token, VARIABLE},
};

/// Seconds without a sign of life after which an executor counts as lost, and its tasks are given to others.
const LOST_AFTER: u64 = 10;

pub(crate) async fn run(asked: &Scheduler) -> Result<(), String> {
    let address = asked.binding.address()?;
    let given = Token::given()?;
    let token = given.clone().map_or_else(Token::fresh, Ok)?;
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
        override_logical_codec: Some(Arc::new(codec::Logical(token.clone()))),
        override_physical_codec: Some(Arc::new(codec::Physical::new(token.clone(), None))),
        override_create_grpc_client_endpoint: Some(token.endpoint()),
        ..Default::default()
    };
    let config = Arc::new(config);
    let failed = |e: ballista_core::error::BallistaError| format!("the scheduler cannot run: {e}");
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    let scheduler = create_scheduler::<Submitted, Launched>(cluster, config);
    let scheduler = scheduler.await.map_err(failed)?;
    println!("quietly-cluster scheduler at df://{place}");
    if given.is_none() {
        println!("{VARIABLE}={}", token.hex());
    }
    tokio::select! {
        ended = serve(listener, scheduler, Gate(token)) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// The engine's server behind a gate, and a page that says whether there is an executor.
async fn serve(
    listener: TcpListener,
    scheduler: SchedulerServer<Submitted, Launched>,
    gate: Gate,
) -> Result<(), String> {
    let service = SchedulerGrpcServer::new(scheduler.clone())
        .max_encoding_message_size(MESSAGE as usize)
        .max_decoding_message_size(MESSAGE as usize);
    let mut routes = RoutesBuilder::default();
    routes.add_service(InterceptedService::new(service, gate));
    let ready = move || {
        let status =
            if scheduler.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        async move { status }
    };
    let router = routes.routes().into_axum_router().route("/readyz", get(ready));
    // The engine asks for the addresses of executors.
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await.map_err(|e| format!("the scheduler has ended: {e}"))
}

/// The largest message between parts of a cluster, in bytes: lists of the parts of a table may be long.
pub(crate) const MESSAGE: u32 = 256 << 20;

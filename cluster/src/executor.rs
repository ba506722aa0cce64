//! The part that does tasks.
use std::{net::SocketAddr, sync::Arc, thread::available_parallelism};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::{
    config::TaskSchedulingPolicy, error::BallistaError, utils::create_grpc_server,
};
use ballista_executor::{
    ArrowFlightServerProvider,
    executor_process::{ExecutorProcessConfig, start_executor_process},
    flight_service::BallistaFlightService,
};
use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;

use crate::{
    Executor, codec, ours, place,
    roots::Roots,
    scheduler::MESSAGE,
    scratch::Scratch,
    token::{Gate, Token},
};

pub(crate) async fn run(asked: &Executor) -> Result<(), String> {
    let address = asked.binding.address()?;
    let (host, port) = place(&asked.scheduler)?;
    let cores = asked.cores.unwrap_or_else(|| available_parallelism().map_or(1, |n| n.get()));
    if cores == 0 {
        return Err("--cores must be at least 1, but is 0".into());
    }
    let token = Token::wanted()?;
    let roots = Roots::new(&asked.data_root, asked.scratch_root.as_deref())?;
    let scratch = Scratch::new(asked.scratch.as_deref())?;
    let flight = free(address, asked.port).await?;
    let second = if asked.port == 0 { 0 } else { asked.port.checked_add(1).unwrap_or(0) };
    let grpc = free(address, second).await?;
    let config = ExecutorProcessConfig {
        bind_host: address.to_string(),
        external_host: Some(asked.host.clone().unwrap_or_else(|| address.to_string())),
        port: flight,
        grpc_port: grpc,
        scheduler_host: host,
        scheduler_port: port,
        scheduler_connect_timeout_seconds: 30,
        vcores: cores,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(scratch.path().display().to_string()),
        job_data_ttl_seconds: 300,
        job_data_clean_up_interval_seconds: 60,
        executor_heartbeat_interval_seconds: 2,
        grpc_max_decoding_message_size: MESSAGE,
        grpc_max_encoding_message_size: MESSAGE,
        override_logical_codec: Some(Arc::new(codec::Logical(token.clone()))),
        override_physical_codec: Some(Arc::new(codec::Physical::new(token.clone(), Some(roots)))),
        override_execution_engine: Some(Arc::new(ours::Engine::default())),
        override_create_grpc_client_endpoint: Some(token.endpoint()),
        override_arrow_flight_service: Some(sums(Gate(token))),
        ..Default::default()
    };
    println!("quietly-cluster executor at {address}:{flight}, {cores} cores");
    let ended = start_executor_process(Arc::new(config)).await;
    drop(scratch);
    ended.map_err(|e| {
        format!("the executor cannot run: {e}; is the scheduler at {} running?", asked.scheduler)
    })
}

/// The server that clients fetch sums from, behind a gate.
fn sums(gate: Gate) -> Arc<ArrowFlightServerProvider> {
    Arc::new(move |folder, address, mut shutdown, config| {
        let service = FlightServiceServer::new(BallistaFlightService::new(folder))
            .max_decoding_message_size(MESSAGE as usize)
            .max_encoding_message_size(MESSAGE as usize);
        let service = InterceptedService::new(service, gate.clone());
        tokio::spawn(async move {
            let server = create_grpc_server(&config).add_service(service);
            let ended = server.serve_with_shutdown(address, shutdown.recv()).await;
            ended.map_err(BallistaError::TonicError)
        })
    })
}

/// A port that is free, or that was asked for.
async fn free(address: std::net::IpAddr, port: u16) -> Result<u16, String> {
    let told = |e: std::io::Error| format!("cannot listen at {address}:{port}: {e}");
    let listener = TcpListener::bind(SocketAddr::new(address, port)).await.map_err(told)?;
    Ok(listener.local_addr().map_err(told)?.port())
}

//! The part that does tasks.
use std::{net::SocketAddr, sync::Arc, thread::available_parallelism};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use tokio::net::TcpListener;

use crate::{Executor, codec, place, scheduler::MESSAGE, scratch::Scratch};

pub(crate) async fn run(asked: &Executor) -> Result<(), String> {
    let address = asked.binding.address()?;
    let (host, port) = place(&asked.scheduler)?;
    let cores = asked.cores.unwrap_or_else(|| available_parallelism().map_or(1, |n| n.get()));
    if cores == 0 {
        return Err("--cores must be at least 1, but is 0".into());
    }
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
        override_logical_codec: Some(Arc::new(codec::Logical::default())),
        override_physical_codec: Some(Arc::new(codec::Physical::default())),
        ..Default::default()
    };
    println!("quietly-cluster executor at {address}:{flight}, {cores} cores");
    let ended = start_executor_process(Arc::new(config)).await;
    drop(scratch);
    ended.map_err(|e| {
        format!("the executor cannot run: {e}; is the scheduler at {} running?", asked.scheduler)
    })
}

/// A port that is free, or that was asked for.
async fn free(address: std::net::IpAddr, port: u16) -> Result<u16, String> {
    let told = |e: std::io::Error| format!("cannot listen at {address}:{port}: {e}");
    let listener = TcpListener::bind(SocketAddr::new(address, port)).await.map_err(told)?;
    Ok(listener.local_addr().map_err(told)?.port())
}

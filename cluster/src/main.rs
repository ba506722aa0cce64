//! Tables that outgrow one machine: the sums of quietly's recipes on a Ballista cluster.
//!
//! `quietly-cluster scheduler` and `quietly-cluster executor` are the cluster; `quietly fit … --cluster df://host:port` uses it, through
//! `quietly-cluster relay`. What quietly asks of the rows of a table are sums of integers, so that many machines give the same
//! bits as one: an executor does [tasks](tasks), each with some parts of the table, and any other can do them again.
//!
//! Answers are private until noise is added to them, which only `quietly` does: all parts of a cluster, the network between them and their
//! scratch folders are as secret as the table.
use std::{net::IpAddr, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

mod bench;
mod codec;
mod example;
mod executor;
mod logging;
mod ours;
mod relay;
mod roots;
mod scheduler;
mod scratch;
mod tasks;
mod token;

/// The parts of a cluster that quietly can fit tables on
#[derive(Parser, Debug)]
#[command(name = "quietly-cluster", version, disable_help_subcommand = true, term_width = 0)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Say what the engine does, on standard error
    #[arg(long, global = true)]
    verbose: bool,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Give tasks to executors; there is one
    Scheduler(Scheduler),
    /// Do tasks; there is one on every machine, or several
    Executor(Executor),
    /// Print a new token for a cluster: all of its parts find it in QUIETLY_CLUSTER_TOKEN
    Token,
    /// Write a made-up Parquet table to try a cluster on
    Example(Example),
    /// What a cluster carries beside one machine, on a made-up table
    Bench(Bench),
    /// Take work from standard input: what `quietly fit --cluster` starts
    #[command(hide = true)]
    Relay {
        /// The scheduler: df://host:port
        scheduler: String,
    },
}

/// Where a part of the cluster listens.
#[derive(Args, Debug)]
struct Binding {
    /// The address to listen at; others than this machine's own need --private-network
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Only the cluster can reach this network: its traffic is not encrypted
    #[arg(long)]
    private_network: bool,
}

impl Binding {
    /// The address, unless others could listen in.
    fn address(&self) -> Result<IpAddr, String> {
        if self.bind.is_loopback() || self.private_network {
            return Ok(self.bind);
        }
        Err(format!(
            "--bind must be 127.0.0.1 or ::1, but is {}: sums that pass between the parts of a cluster are private, and not \
             encrypted; add --private-network if only the cluster can reach that network",
            self.bind
        ))
    }
}

#[derive(Args, Debug)]
struct Scheduler {
    #[command(flatten)]
    binding: Binding,
    /// The port to listen at; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    port: u16,
}

#[derive(Args, Debug)]
struct Executor {
    #[command(flatten)]
    binding: Binding,
    /// The scheduler: df://host:port
    #[arg(value_name = "SCHEDULER", default_value = "df://127.0.0.1:50050")]
    scheduler: String,
    /// The name that others reach this machine by; the address it listens at by default
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The first of two ports to listen at; 0 for any that are free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// How many tasks are done at a time; as many as there are cores by default
    #[arg(long, value_name = "N")]
    cores: Option<usize>,
    /// Where sums are kept for a while; a new folder for temporary files by default
    #[arg(long, value_name = "FOLDER")]
    scratch: Option<PathBuf>,
    /// The folder of the tables: files outside of it are not read
    #[arg(long, value_name = "FOLDER")]
    data_root: PathBuf,
    /// The folder for tables that are prepared: without it, or outside of it, none is written
    #[arg(long, value_name = "FOLDER")]
    scratch_root: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct Example {
    /// Where its files go; its schema goes beside
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// How many rows
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    rows: usize,
    /// How many features, beside a number (y) and a class (sick) to predict
    #[arg(long, value_name = "D", default_value_t = 18)]
    features: usize,
    /// How many files
    #[arg(long, value_name = "K", default_value_t = 8)]
    files: usize,
}

#[derive(Args, Debug)]
struct Bench {
    /// A table that `quietly-cluster example` wrote
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The scheduler: df://host:port
    #[arg(value_name = "SCHEDULER", default_value = "df://127.0.0.1:50050")]
    scheduler: String,
    /// Threads of the one machine
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// How often each is measured; the best counts
    #[arg(long, value_name = "N", default_value_t = 2)]
    times: usize,
}

/// The host and the port of a scheduler's address.
fn place(address: &str) -> Result<(String, u16), String> {
    let bad = || format!("the scheduler must be df://host:port, but is {address:?}");
    let rest = address.strip_prefix("df://").ok_or_else(bad)?;
    let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(bad)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
    if host.is_empty() { Err(bad()) } else { Ok((host.into(), port)) }
}

fn main() -> ExitCode {
    quietly::forbid_core_files();
    // What a bug says may be about a row: only where it was is told.
    std::panic::set_hook(Box::new(|info| {
        let at = info.location().map(|at| format!(" at {}, line {}", at.file(), at.line()));
        eprintln!("error: a fault of quietly-cluster's own{}", at.unwrap_or_default());
    }));
    let cli = Cli::parse();
    logging::start(cli.verbose);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(async {
            match cli.verb {
                Verb::Scheduler(asked) => scheduler::run(&asked).await,
                Verb::Executor(asked) => executor::run(&asked).await,
                Verb::Bench(asked) => bench::run(&asked).await,
                Verb::Example(asked) => example::run(&asked),
                Verb::Token => token::Token::fresh().map(|token| println!("{}", token.hex())),
                Verb::Relay { scheduler } => relay::run(&scheduler).await,
            }
        }),
        Err(error) => Err(format!("no threads can be started: {error}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_bound_unless_the_network_is_private() {
        let at = |bind: &str, private_network| {
            Binding { bind: bind.parse().unwrap(), private_network }.address()
        };
        assert!(at("127.0.0.1", false).is_ok() && at("::1", false).is_ok());
        assert!(at("10.0.0.7", true).is_ok());
        for open in ["0.0.0.0", "10.0.0.7", "::"] {
            assert!(at(open, false).unwrap_err().contains("--private-network"));
        }
    }

    #[test]
    fn a_scheduler_has_a_host_and_a_port() {
        assert_eq!(place("df://a.b:70").unwrap(), ("a.b".into(), 70));
        for bad in ["", "a:1", "df://", "df://a", "df://:1", "df://a:0", "df://a:x", "http://a:1"] {
            assert!(place(bad).unwrap_err().contains("df://host:port"), "{bad}");
        }
    }
}

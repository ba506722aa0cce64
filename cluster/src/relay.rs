//! What stands between `quietly fit --cluster` and the engine: work comes in by standard input, what it came to goes out by standard
//! output.
//!
//! A message is its length, in four bytes, and that many bytes. Work is what [`quietly::remote::JobSpec`] says. The answer is one byte and then
//! what every task came to, each with its length (0), or why there is none: because a file cannot be read (1), or because the engine failed
//! more often than it was tried (2).
//!
//! Work that fails is given to the engine again: nothing was released, and every worker computes the same bytes.
use std::{
    io::{self, Read, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use datafusion::{
    arrow::array::{Array, BinaryArray, BooleanArray, RecordBatch, UInt32Array},
    execution::SessionStateBuilder,
    prelude::{SessionConfig, SessionContext},
};
use quietly::Private;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{codec, place, scheduler::MESSAGE, tasks::Table, token::Token};

/// How often work is given to the engine before it is given up.
const TRIES: u32 = 3;
/// How long there may be no executor.
const PATIENCE: Duration = Duration::from_secs(25);

/// The host and the port of a scheduler.
type Place = (String, u16);

/// What an executor sends to its client: the one place where an answer leaves a worker, on its way to the process that adds noise.
pub(crate) fn sent(answer: Private<Vec<u8>>) -> Vec<u8> {
    answer.sent_to_driver()
}

pub(crate) async fn run(scheduler: &str) -> Result<(), String> {
    let mut engine = Engine::new(scheduler)?;
    while let Some(bytes) = received().map_err(|e| format!("no work: {e}"))? {
        let reply = engine.reply(bytes).await?;
        reply.send().map_err(|e| format!("the answer could not be delivered: {e}"))?;
    }
    Ok(())
}

/// The engine, as its client sees it.
pub(crate) struct Engine {
    scheduler: String,
    place: Place,
    token: Token,
    session: Option<SessionContext>,
}

impl Engine {
    pub(crate) fn new(scheduler: &str) -> Result<Self, String> {
        let (place, token) = (place(scheduler)?, Token::wanted()?);
        Ok(Engine { scheduler: scheduler.into(), place, token, session: None })
    }

    pub(crate) fn address(&self) -> String {
        self.scheduler.clone()
    }

    /// What every task of some work came to.
    pub(crate) async fn done(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        match self.reply(bytes).await? {
            Reply::Done(done) => Ok(done),
            Reply::Refused(why) | Reply::Failed(why) => Err(why),
        }
    }

    async fn reply(&mut self, bytes: Vec<u8>) -> Result<Reply, String> {
        let tasks = match Table::new(bytes) {
            Ok(tasks) => tasks,
            Err(other) => return Ok(Reply::Refused(format!("quietly-cluster: {other}"))),
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let place = self.place.clone();
            let done = tokio::select! {
                done = self.tried(&tasks) => done,
                // The engine would wait for ever.
                why = deserted(&place) => return Ok(Reply::Failed(why)),
            };
            match done {
                Ok(done) => return Ok(done),
                Err(why) if tries == TRIES => return Ok(Reply::Failed(why)),
                Err(why) => {
                    log::warn!("the engine failed, and is tried again: {why}");
                    self.session = None;
                    tokio::time::sleep(Duration::from_secs(u64::from(tries))).await;
                }
            }
        }
    }

    /// Gives work to the engine.
    async fn tried(&mut self, tasks: &Table) -> Result<Reply, String> {
        // Work that comes before the first executor is not given to those that come later.
        while !is_ready(&self.place).await {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        match &mut self.session {
            Some(session) => collected(session, tasks).await,
            none => {
                let session = connected(&self.scheduler, &self.token).await?;
                collected(none.insert(session), tasks).await
            }
        }
    }
}

/// Returns when there was no executor for a while, or no scheduler.
async fn deserted(place: &Place) -> String {
    let mut since = Instant::now();
    while since.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if is_ready(place).await {
            since = Instant::now();
        }
    }
    let (host, port) = place;
    let seconds = PATIENCE.as_secs();
    format!("for {seconds} seconds there was no scheduler at {host}:{port}, or it had no executor")
}

/// Whether there is a scheduler with an executor, from its status page.
async fn is_ready((host, port): &Place) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await?;
        let mut start = [0; 12];
        stream.read_exact(&mut start).await?;
        io::Result::Ok(start.ends_with(b" 200"))
    };
    matches!(tokio::time::timeout(Duration::from_secs(2), asked).await, Ok(Ok(true)))
}

enum Reply {
    Done(Vec<Vec<u8>>),
    /// No executor can do a task.
    Refused(String),
    /// The engine failed.
    Failed(String),
}

impl Reply {
    fn send(self) -> io::Result<()> {
        let mut bytes = Vec::new();
        match self {
            Reply::Done(tasks) => {
                bytes.push(0);
                for task in tasks {
                    bytes.extend((task.len() as u32).to_le_bytes());
                    bytes.extend(task);
                }
            }
            Reply::Refused(why) => {
                bytes.push(1);
                bytes.extend(why.into_bytes());
            }
            Reply::Failed(why) => {
                bytes.push(2);
                bytes.extend(why.into_bytes());
            }
        }
        let mut out = io::stdout().lock();
        out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        out.write_all(&bytes)?;
        out.flush()
    }
}

/// The next work; none when there is no more.
fn received() -> io::Result<Option<Vec<u8>>> {
    let mut from = io::stdin().lock();
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

async fn connected(scheduler: &str, token: &Token) -> Result<SessionContext, String> {
    let config = SessionConfig::new_with_ballista()
        .with_ballista_logical_extension_codec(Arc::new(codec::Logical(token.clone())))
        .with_ballista_physical_extension_codec(Arc::new(codec::Physical::new(token.clone(), None)))
        .with_ballista_override_create_grpc_client_endpoint(token.endpoint())
        .with_ballista_grpc_client_max_message_size(MESSAGE as usize);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let session = SessionContext::remote_with_state(scheduler, state).await;
    session.map_err(|e| format!("no scheduler at {scheduler}: {e}"))
}

/// What every task came to.
async fn collected(session: &SessionContext, tasks: &Table) -> Result<Reply, String> {
    let count = tasks.count();
    let table = session.read_table(Arc::new(tasks.clone())).map_err(|e| e.to_string())?;
    let batches: Vec<RecordBatch> = table.collect().await.map_err(|e| e.to_string())?;
    let mut done: Vec<Option<Vec<u8>>> = vec![None; count];
    for batch in &batches {
        let (numbers, fine, what) = columns(batch).ok_or("the engine answers otherwise")?;
        for row in 0..batch.num_rows() {
            if !fine.value(row) {
                return Ok(Reply::Refused(String::from_utf8_lossy(what.value(row)).into_owned()));
            }
            let place = done.get_mut(numbers.value(row) as usize).ok_or("a task too many")?;
            // A record that counts twice would be worse than none.
            if place.replace(what.value(row).to_vec()).is_some() {
                return Err("the engine did a task twice".into());
            }
        }
    }
    match done.into_iter().collect::<Option<Vec<_>>>() {
        Some(done) => Ok(Reply::Done(done)),
        None => Err("the engine lost a task".into()),
    }
}

fn columns(batch: &RecordBatch) -> Option<(&UInt32Array, &BooleanArray, &BinaryArray)> {
    let column = |k: usize| batch.columns().get(k).map(|column| column.as_any());
    Some((column(0)?.downcast_ref()?, column(1)?.downcast_ref()?, column(2)?.downcast_ref()?))
}

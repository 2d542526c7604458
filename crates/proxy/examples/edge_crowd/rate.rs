//! An open-loop load: requests leave at a steady rate, whatever becomes of those before them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, Uri};
use posthaste_http::ClientError;
use posthaste_service::Body;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::connection::{Connection, Place, Way};
use crate::{Error, Result, whole};

/// One request of this many comes on a connection of its own, as a new client's does.
const NEW_EVERY: u64 = 20;
/// For one request, from the moment it was due.
const PATIENCE: Duration = Duration::from_secs(10);
/// The field by which a server names its configuration.
const GENERATION: &str = "x-generation";

/// What is asked for, and how often.
pub(crate) struct Load {
    pub(crate) way: Way,
    pub(crate) path: String,
    /// Length of the response's body.
    pub(crate) bytes: u64,
    /// Connections that are kept.
    pub(crate) connections: u64,
    /// Requests per second.
    pub(crate) rate: u64,
    pub(crate) seconds: u64,
}

/// A connection that is kept, and replaced when it is lost.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// How many were made.
    made: u64,
}

/// A request's target.
struct Target {
    place: Place,
    way: Way,
    uri: Uri,
    bytes: u64,
}

/// What became of a request.
struct Ended {
    /// The generation that the server named.
    outcome: Result<u64>,
    /// It was sent again, since the server had not processed it.
    is_repeated: bool,
    took: Duration,
}

impl Load {
    /// Sends all requests, and prints what became of them.
    pub(crate) async fn run(&self, place: Place) -> Result<()> {
        let uri = place.uri(&self.path)?;
        let target = Arc::new(Target { place, way: self.way, uri, bytes: self.bytes });
        let slots: Vec<Arc<Slot>> = (0..self.connections).map(|_| Arc::default()).collect();
        for slot in &slots {
            target.attempt(slot).await?;
        }
        println!("began");
        let (began, count) = (Instant::now(), self.rate * self.seconds);
        let (mut tasks, mut tally) = (JoinSet::new(), Tally::default());
        for number in 0..count {
            let due = began + Duration::from_nanos(number * 1_000_000_000 / self.rate);
            sleep_until(due).await;
            let is_new = number % NEW_EVERY == 0;
            let slot = if is_new {
                Arc::default()
            } else {
                Arc::clone(&slots[(number % self.connections) as usize])
            };
            let target = Arc::clone(&target);
            tasks.spawn(async move {
                let ended = target.ask(&slot, due).await;
                if is_new && let Some(connection) = slot.state.lock().await.connection.take() {
                    connection.close().await;
                }
                ended
            });
            while let Some(ended) = tasks.try_join_next() {
                tally.add(ended?);
            }
        }
        let sending = began.elapsed();
        while let Some(ended) = tasks.join_next().await {
            tally.add(ended?);
        }
        let mut replaced = 0;
        for slot in &slots {
            replaced += slot.made().await - 1;
        }
        println!("sent {count}\nrate {}\nreplaced {replaced}", count as f64 / sending.as_secs_f64());
        tally.print();
        Ok(())
    }
}

impl Slot {
    /// The connection; a new one if there is none that can be used.
    async fn connection(&self, target: &Target) -> Result<Connection> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|connection| connection.is_usable()) {
            return connection.another();
        }
        let followed = state.connection.take().map_or(0, |connection| connection.replaced());
        state.made += followed;
        let connection = target.place.connect(target.way, false).await?;
        state.made += 1;
        let another = connection.another()?;
        state.connection = Some(connection);
        Ok(another)
    }

    /// How many connections there were.
    async fn made(&self) -> u64 {
        let state = self.state.lock().await;
        let more = state.connection.as_ref().map_or(0, Connection::replaced);
        state.made + more
    }
}

impl Target {
    async fn ask(&self, slot: &Slot, due: Instant) -> Ended {
        let mut is_repeated = false;
        let asking = async {
            let first = self.attempt(slot).await;
            if !first.as_ref().is_err_and(is_unprocessed) {
                return first;
            }
            // As browsers do.
            is_repeated = true;
            self.attempt(slot).await
        };
        let outcome = timeout_at(due + PATIENCE, asking).await;
        let outcome = outcome.unwrap_or_else(|_| Err("no response in time".into()));
        Ended { outcome, is_repeated, took: due.elapsed() }
    }

    /// Sends the request once; the generation that answers.
    async fn attempt(&self, slot: &Slot) -> Result<u64> {
        let mut connection = slot.connection(self).await?;
        let mut answer = connection.send(Request::get(self.uri.clone()).body(Body::empty())?).await?;
        answer.expect(StatusCode::OK)?;
        let generation = answer.field(GENERATION).ok_or("no generation")?.parse()?;
        let mut length = 0;
        while let Some(piece) = answer.chunk().await? {
            length += piece.len() as u64;
        }
        if length == self.bytes { Ok(generation) } else { Err(format!("WRONG length: {length}").into()) }
    }
}

/// True if the server has said that it has not processed the request. What hyper knows of HTTP/2's GOAWAY and
/// `REFUSED_STREAM` it tells by its text alone.
fn is_unprocessed(error: &Error) -> bool {
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        let why = whole(error);
        return error.is_canceled()
            || why.contains("refused stream")
            || why.contains("not a result of an error");
    }
    matches!(error.downcast_ref(), Some(ClientError::NotProcessed { .. }))
}

#[derive(Default)]
struct Tally {
    took: Vec<Duration>,
    repeated: u64,
    generations: BTreeSet<u64>,
    failed: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, ended: Ended) {
        self.repeated += u64::from(ended.is_repeated);
        match ended.outcome {
            Ok(generation) => {
                self.took.push(ended.took);
                self.generations.insert(generation);
            }
            Err(error) => *self.failed.entry(whole(&*error).replace('\n', " ")).or_default() += 1,
        }
    }

    fn print(mut self) {
        self.took.sort_unstable();
        let quantile = |thousandth: usize| {
            let place = (self.took.len() * thousandth).div_ceil(1000).max(1) - 1;
            self.took.get(place).map_or(0, Duration::as_micros)
        };
        println!("answered {}\nrepeated {}", self.took.len(), self.repeated);
        println!("p50 {}\np99 {}\nmost {}", quantile(500), quantile(990), quantile(1000));
        println!("generations {}", self.generations.len());
        println!("last {}", self.generations.last().copied().unwrap_or_default());
        for (why, count) in &self.failed {
            println!("failed {count} {why}");
        }
    }
}

//! Clients that come and go, a few at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::conduct::{Conduct, Step, Visit};
use crate::connection::{Place, Way};
use crate::{Result, whole};

/// For all that one client does; one that takes longer hangs. More than any of the client's own limits.
const PATIENCE: Duration = Duration::from_secs(75);

/// How many clients there are, and how they come.
pub(crate) struct Crowd {
    pub(crate) over_quic: bool,
    pub(crate) connections: u64,
    pub(crate) at_once: usize,
    pub(crate) seed: u64,
}

/// How a client has fared.
struct Ended {
    way: Way,
    conduct: Conduct,
    requests: u64,
    outcome: Result<()>,
    step: Step,
    asked: SystemTime,
}

impl Crowd {
    /// Runs all clients to their end, and prints how they have fared.
    pub(crate) async fn run(&self, place: Place) -> Result<()> {
        let places = Arc::new(Semaphore::new(self.at_once.max(1)));
        let mut tally = Tally::default();
        let mut clients = JoinSet::new();
        for number in 0..self.connections {
            let free = Arc::clone(&places).acquire_owned().await?;
            let drawn = scatter(self.seed.wrapping_add(number));
            let way = match drawn >> 32 & 1 {
                _ if self.over_quic => Way::Http3,
                0 => Way::Http1,
                _ => Way::Http2,
            };
            let (place, conduct) = (place.clone(), Conduct::drawn(drawn));
            clients.spawn(async move {
                let ended = visit(&place, way, conduct).await;
                drop(free);
                ended
            });
            while let Some(ended) = clients.try_join_next() {
                tally.add(&ended?);
            }
        }
        while let Some(ended) = clients.join_next().await {
            tally.add(&ended?);
        }
        tally.print();
        Ok(())
    }
}

async fn visit(place: &Place, way: Way, conduct: Conduct) -> Ended {
    let mut visit = Visit::new(place, way, conduct);
    let outcome = timeout(PATIENCE, visit.run()).await.unwrap_or_else(|_| Err("HANGS".into()));
    let (requests, step, asked) = (visit.requests, visit.step, visit.asked);
    Ended { way, conduct, requests, outcome, step, asked }
}

#[derive(Default)]
struct Tally {
    requests: u64,
    did: BTreeMap<(Way, Conduct), u64>,
}

impl Tally {
    fn add(&mut self, ended: &Ended) {
        let Ended { way, conduct, requests, outcome, step, asked } = ended;
        self.requests += requests;
        match outcome {
            Ok(()) => *self.did.entry((*way, *conduct)).or_default() += 1,
            Err(error) => {
                let (began, ended) = (milliseconds(*asked), milliseconds(SystemTime::now()));
                let why = whole(&**error).replace('\n', " ");
                println!("failed {} {conduct:?} {step:?} {began} {ended} {why}", way.name());
            }
        }
    }

    fn print(&self) {
        for ((way, conduct), count) in &self.did {
            println!("did {} {conduct:?} {count}", way.name());
        }
        println!("requests {}", self.requests);
    }
}

fn milliseconds(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// Neighbouring numbers give unlike ones (splitmix64's last steps).
const fn scatter(number: u64) -> u64 {
    let number = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 31
}

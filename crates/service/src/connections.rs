//! The connections of a server, a task each, and their common end.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Ended;

/// How long connections may take to end once the server's time is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// How far a server has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It takes requests.
    Serving,
    /// It finishes those that it has.
    Stopping,
    /// Its time is over.
    Over,
}

/// The tasks of a server's connections. Each is to watch the server's [`Phase`], and to return how many of its requests
/// were cut off. They are ended at once when this is dropped.
#[derive(Debug)]
pub struct Connections {
    tasks: JoinSet<usize>,
    phase: watch::Sender<Phase>,
}

impl Default for Connections {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), phase: watch::Sender::new(Phase::Serving) }
    }
}

impl Connections {
    /// Connections that have not ended.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// The server's phases, for a connection to follow.
    pub fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Begins to serve a connection.
    pub fn serve(&mut self, connection: impl Future<Output = usize> + Send + 'static) {
        self.tasks.spawn(connection);
    }

    /// Waits until a connection has ended. `None` at once if there is none.
    pub async fn ended(&mut self) -> Option<()> {
        self.tasks.join_next().await.map(drop)
    }

    /// Ends the connections: they finish their requests within `grace`, or until `cut` resolves, and are then cut off.
    pub async fn end(&mut self, grace: Duration, cut: impl Future<Output = ()>) -> Ended {
        self.phase.send_replace(Phase::Stopping);
        tokio::select! {
            () = async { while self.ended().await.is_some() {} } => {}
            () = sleep(grace) => {}
            () = cut => {}
        }
        self.phase.send_replace(Phase::Over);
        let mut ended = Ended::default();
        let all = async {
            while let Some(over) = self.tasks.join_next().await {
                let requests = over.unwrap_or(0);
                ended.cut_off += usize::from(requests > 0);
                ended.requests_cut_off += requests;
            }
        };
        if timeout(FAREWELL, all).await.is_err() {
            // Services that do not end.
            ended.cut_off += self.tasks.len();
            ended.requests_cut_off += self.tasks.len();
            self.tasks.abort_all();
        }
        ended
    }
}

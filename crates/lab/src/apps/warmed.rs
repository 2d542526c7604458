//! A client that was here before: the same things over several connections, one after another, of which only the last
//! is looked at. What the server has learnt from the others is what the last one finds.

use posthaste_units::{Duration, Rng, Time};

use super::{App, AppReport, Hosts, Progress, WorkloadError, client};
use crate::peer::PeerEvent;
use crate::spec::WorkloadSpec;

/// One of the connections, or as many as the workload needs.
#[derive(Debug)]
pub struct Stage {
    /// What the client does.
    pub workload: WorkloadSpec,
    /// Its hosts.
    pub clients: Vec<usize>,
    /// What it draws from.
    pub rng: Rng,
}

/// The client; see the module.
pub struct Warmed {
    /// The stages to come, the next one last.
    stages: Vec<Stage>,
    clients: Vec<usize>,
    app: Box<dyn App>,
    pause: Duration,
    /// The last stage begins no earlier.
    last_at: Time,
    /// When the next stage begins, between two.
    next_at: Option<Time>,
}

impl Warmed {
    /// A client that goes through `stages`, from `first_at` on, with a `pause` before each further one; the last begins
    /// at `last_at`, or once it can if that is later.
    ///
    /// # Errors
    /// If one of the workloads cannot be.
    ///
    /// # Panics
    /// Without stages.
    pub fn new(
        mut stages: Vec<Stage>,
        first_at: Time,
        last_at: Time,
        pause: Duration,
    ) -> Result<Self, WorkloadError> {
        stages.iter().try_for_each(|stage| stage.workload.validate())?;
        stages.reverse();
        let Stage { workload, clients, rng } = stages.pop().expect("a stage at least");
        let app = client(&workload, &clients, first_at, rng)?;
        Ok(Self { stages, clients, app, pause, last_at, next_at: None })
    }

    /// Once a stage is over, hangs up, and waits for the next.
    fn look(&mut self, now: Time, hosts: &mut dyn Hosts) {
        let is_over = self.next_at.is_none() && self.app.progress() == Progress::Idle;
        if is_over && !self.stages.is_empty() {
            for host in &self.clients {
                hosts.peer(*host).close(now);
            }
            let soon = now + self.pause;
            self.next_at = Some(if self.stages.len() == 1 { soon.max(self.last_at) } else { soon });
        }
    }

    fn begin_next(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.next_at = None;
        let Some(Stage { workload, clients, rng }) = self.stages.pop() else { return };
        // It was checked when this began, and its hosts are as many as it asked for.
        if let Ok(app) = client(&workload, &clients, now, rng) {
            self.app = app;
            self.clients = clients;
            self.app.start(now, hosts);
        }
    }
}

impl App for Warmed {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.app.start(now, hosts);
    }

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        // What comes of connections that were hung up is of no account.
        if self.next_at.is_none() && self.clients.contains(&host) {
            self.app.on_event(now, host, event, hosts);
            self.look(now, hosts);
        }
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        match self.next_at {
            Some(at) if at > now => return,
            Some(_) => self.begin_next(now, hosts),
            None => self.app.on_timeout(now, hosts),
        }
        self.look(now, hosts);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next_at.or_else(|| self.app.next_timeout())
    }

    fn progress(&self) -> Progress {
        match self.app.progress() {
            Progress::Idle if !self.stages.is_empty() => Progress::Working,
            progress => progress,
        }
    }

    fn report(&self) -> AppReport {
        let report = self.app.report();
        // Only the last stage is what the run is about; before it, nothing has begun.
        match (self.stages.is_empty(), report.failure) {
            (true, failure) => AppReport { failure, ..report },
            (false, failure) => AppReport {
                failure: failure.map(|reason| format!("warm-up: {reason}")),
                ..AppReport::default()
            },
        }
    }
}

//! What happens while the edge runs: reloads, certificate files that change, certificates that end.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use posthaste_edge::{Authority, Config, ConfigError, Edge, Metrics, Watched};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::acme::Certifying;
use super::{systemd, trusted};
use crate::exit::Failure;
use crate::log_queue::LogQueue;

/// Between two looks at the certificates' files.
const LOOK: Duration = Duration::from_secs(3);

/// Between two warnings of certificates that end.
const REMIND: Duration = Duration::from_secs(12 * 3600);

/// Who certifies the sites that have no certificate files.
pub(super) struct Certifier {
    pub(super) authority: Option<Authority>,
    /// Plain HTTP is answered, too.
    pub(super) has_plain: bool,
}

/// Begins it; it ends when the result is aborted.
pub(super) fn begin(
    edge: Edge,
    config: Config,
    file: Option<PathBuf>,
    certifier: Certifier,
    (log, metrics): (LogQueue, Metrics),
) -> Result<JoinHandle<()>, Failure> {
    let hangups =
        Hangups::catch().map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;
    Ok(tokio::spawn(Upkeep { edge, config, file, certifier, log, metrics }.run(hangups)))
}

struct Upkeep {
    edge: Edge,
    /// In use.
    config: Config,
    file: Option<PathBuf>,
    certifier: Certifier,
    log: LogQueue,
    metrics: Metrics,
}

impl Upkeep {
    async fn run(mut self, mut hangups: Hangups) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watched = Watched::default();
        let mut reminded: Option<Instant> = None;
        let mut _certifying = self.certify();
        loop {
            tokio::select! {
                () = hangups.next() => {
                    self.reload().await;
                    // There may be other sites.
                    _certifying = self.certify();
                }
                _ = looks.tick() => {
                    watched = self.look(watched).await;
                    if reminded.is_none_or(|at| at.elapsed() >= REMIND) {
                        reminded = Some(Instant::now());
                        self.warn_of_ends();
                    }
                }
            }
        }
    }

    fn certify(&self) -> Certifying {
        let Certifier { authority, has_plain } = &self.certifier;
        Certifying::begin(
            &self.config,
            authority.as_ref(),
            &self.edge,
            *has_plain,
            (&self.log, &self.metrics),
        )
    }

    /// Reads the file again; without one, the certificates.
    async fn reload(&mut self) {
        systemd::reloading();
        self.load().await;
        // With the new configuration or the old one.
        systemd::ready();
    }

    async fn load(&mut self) {
        let (edge, file, config) = (self.edge.clone(), self.file.clone(), self.config.clone());
        let reloaded = spawn_blocking(move || -> Result<(Config, bool), ConfigError> {
            let settings = config.edge.clone();
            let mut config = file.as_deref().map_or(Ok(config), Config::read)?;
            let settings = std::mem::replace(&mut config.edge, settings);
            edge.reload(&config, &trusted)?;
            let is_changed = settings != config.edge;
            Ok((config, is_changed))
        });
        match reloaded.await {
            Ok(Ok((config, is_changed))) => {
                if is_changed {
                    self.note("changes of [edge] take effect at the next start");
                }
                self.config = config;
                self.metrics.on_reload(SystemTime::now(), None);
                self.note("reloaded");
                self.warn_of_ends();
            }
            Ok(Err(error)) => self.on_refused(&error.to_string()),
            Err(error) => self.on_refused(&error.to_string()),
        }
    }

    fn on_refused(&self, error: &str) {
        self.metrics.on_reload(SystemTime::now(), Some(error.to_owned()));
        self.note(&format!("not reloaded, nothing has changed: {error}"));
    }

    async fn look(&self, mut watched: Watched) -> Watched {
        let resolver = self.edge.resolver().clone();
        let looked = spawn_blocking(move || {
            let failed = watched.look(&resolver);
            (watched, failed)
        });
        let Ok((watched, failed)) = looked.await else { return Watched::default() };
        for reason in failed {
            self.metrics.on_bad_certificate();
            self.note(&format!("the certificate in use stays, the new one cannot be used: {reason}"));
        }
        watched
    }

    fn warn_of_ends(&self) {
        for state in self.edge.resolver().states() {
            if let Some(warning) = state.warning(SystemTime::now()) {
                self.note(&format!("warning: {warning}"));
            }
        }
    }

    fn note(&self, message: &str) {
        self.log.line(format_args!("posthaste: {message}"));
    }
}

/// SIGHUPs, where there are any.
struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangups {
    fn catch() -> std::io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    #[cfg_attr(not(unix), expect(clippy::unused_self, reason = "there is nothing to wait for"))]
    async fn next(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

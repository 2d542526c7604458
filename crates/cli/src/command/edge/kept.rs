//! HTTP/3's part of the server, and what of it outlives the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posthaste_edge::{Config, Edge};
use posthaste_endpoint::{HistoryStore, ServerConfig, SessionStore, TransportConfig, tls};
use posthaste_http::ALPN;

use super::no_tls;
use crate::command::exposure::is_served;
use crate::exit::Failure;
use crate::kept::{self, KeptSessions};

/// Where things are kept, and what is.
pub(super) struct State {
    directory: Option<PathBuf>,
    sessions: Arc<SessionStore>,
    history: Option<Arc<HistoryStore>>,
}

/// What is left for the next run when this one is over.
pub(super) struct Kept {
    sessions: (KeptSessions, Arc<SessionStore>),
    history: Option<Arc<HistoryStore>>,
}

impl State {
    /// The server's configuration: with the secret of the last run, and with what the profile needs.
    ///
    /// # Errors
    /// The directory cannot be used, or clients could read it.
    pub(super) fn open(
        config: &Config,
        edge: &Edge,
        transport: TransportConfig,
    ) -> Result<(ServerConfig, Self), Failure> {
        let directory = config.edge.state.as_ref().map(|state| std::path::absolute(state.get_ref()));
        let directory = directory.transpose();
        let directory =
            directory.map_err(|error| Failure::runtime(format!("there is no directory: {error}")))?;
        if let Some(directory) = &directory {
            refuse_served(config, directory)?;
        }
        let sessions = Arc::new(SessionStore::new());
        let (path_memory, history) =
            kept::path_memory(None, &transport.profile, directory.as_deref(), directory.is_some())?;
        let tls = tls::server_with_early_data(&over_quic(edge)?, Arc::clone(&sessions) as _);
        let secret = directory.as_deref().map(kept::secret).transpose()?;
        let server = ServerConfig { path_memory, secret, ..ServerConfig::new(tls, transport) };
        Ok((server, Self { directory, sessions, history }))
    }

    /// Takes over what the last run at this port has left. To be called when the port is this server's: a server that could
    /// not listen has left the sessions to the one that does.
    pub(super) fn restore(self, port: u16) -> Kept {
        let Self { directory, sessions, history } = self;
        let kept = KeptSessions::restore(directory.as_deref(), port, &sessions);
        Kept { sessions: (kept, sessions), history }
    }
}

impl Kept {
    /// Leaves it for the next run.
    pub(super) fn save(self) {
        let (kept, sessions) = self.sessions;
        kept.save(&sessions);
        if self.history.is_some_and(|history| !history.flush()) {
            tracing::warn!("the path histories are not saved on disk");
        }
    }
}

/// Refuses a directory that one of the sites would serve.
fn refuse_served(config: &Config, directory: &Path) -> Result<(), Failure> {
    let sites = config.sites.values();
    let routes = sites.flat_map(|site| site.routes.iter().map(|route| &route.files).chain([&site.files]));
    for root in routes.flatten() {
        let served = Path::new(root.get_ref()).canonicalize();
        if served.is_ok_and(|served| is_served(&served, directory, false)) {
            let (directory, root) = (directory.display(), root.get_ref());
            return Err(Failure::usage(format!(
                "the state directory {directory} would be served: it is inside {root}"
            ))
            .hint("choose a place outside of it: `state` in [edge], --state"));
        }
    }
    Ok(())
}

/// TLS of HTTP/3, with the edge's certificates.
fn over_quic(edge: &Edge) -> Result<rustls::ServerConfig, Failure> {
    let builder = rustls::ServerConfig::builder_with_provider(tls::crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| no_tls(&error))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(edge.resolver().clone()));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    Ok(config)
}

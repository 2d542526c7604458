//! What is kept between runs in the state directory: a server's secret, its sessions and its history, a client's address tokens.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use posthaste_endpoint::tls::crypto_provider;
use posthaste_endpoint::{
    HistoryError, HistoryStore, MemoryStore, PathMemory, Secret, SessionStore, TokenCache,
};
use posthaste_http::client::ConnectionGains;
use posthaste_policy::Profile;

use crate::args::HistoryPlace;
use crate::exit::Failure;
use crate::identity::{create_private_directory, replace};

/// What stateless resets and address tokens are made with.
const SECRET: &str = "secret";

/// Address tokens that servers gave.
const TOKENS: &str = "address-tokens";

/// What downloads have found out about numbers of connections.
const GAINS: &str = "connection-gains";

/// What a server has learnt of paths.
const HISTORY: &str = "history.redb";

/// What a file system gets to take the last words of a server that ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// The largest file that is read back.
const MAX_FILE: u64 = 16 << 20;

/// The secret in `state`; a new one if there is none.
pub(crate) fn secret(state: &Path) -> Result<Secret, Failure> {
    let path = state.join(SECRET);
    let fail = |error: &dyn std::fmt::Display| {
        Failure::runtime(format!("cannot keep a secret in {}: {error}", path.display()))
            .hint("choose a writable directory with --state DIR")
    };
    match read(&path) {
        Ok(bytes) => {
            let kept =
                bytes.try_into().map_err(|_| fail(&"it must have 32 bytes; delete it to get a new one"))?;
            return Ok(Secret(kept));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(fail(&error)),
    }
    let mut secret = [0; 32];
    crypto_provider()
        .secure_random
        .fill(&mut secret)
        .map_err(|_| fail(&"the system gives no random numbers"))?;
    create_private_directory(state).map_err(|error| fail(&error))?;
    replace(&path, &secret).map_err(|error| fail(&error))?;
    Ok(Secret(secret))
}

/// The sessions of a server at one port, in a file that exists only between two runs: sessions are good once, so no
/// two servers may have them.
pub(crate) struct KeptSessions(Option<PathBuf>);

impl KeptSessions {
    /// Moves what the last run has left in `state` into `store`. Without a state directory, or at a port that is
    /// another each time, nothing is kept.
    pub(crate) fn restore(state: Option<&Path>, port: u16, store: &SessionStore) -> Self {
        let path = state.filter(|_| port != 0).map(|state| state.join(format!("sessions-{port}")));
        if let Some(path) = &path {
            // Gone before the first of them is used. If that cannot be, none is.
            match read(path).and_then(|sessions| std::fs::remove_file(path).map(|()| sessions)) {
                Ok(sessions) => {
                    let count = store.import(&sessions);
                    tracing::debug!(count, "sessions of the last run");
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    // One that cannot be read now must not be read by a later run, when others have used them.
                    let _ = std::fs::remove_file(path);
                    let path = path.display();
                    tracing::warn!(%error, "{path} cannot be used: clients make full handshakes");
                }
            }
        }
        Self(path)
    }

    /// Leaves the sessions for the next run. A file system that does not answer does not keep the process.
    pub(crate) fn save(self, store: &SessionStore) {
        let Some(path) = self.0 else { return };
        let (sessions, place) = (store.export(), path.clone());
        let saved = within(FAREWELL, move || replace(&place, &sessions));
        if let Err(error) = saved {
            // Clients then make full handshakes.
            tracing::warn!(%error, path = %path.display(), "cannot keep the sessions");
        }
    }
}

/// The file of what a server has learnt of paths.
pub(crate) fn history_file(state: &Path) -> PathBuf {
    state.join(HISTORY)
}

/// Where a server that runs `profile` keeps what it learns of paths. Addresses of clients come to the disk only where
/// somebody has asked for it: `place` says so, or the state directory was named.
pub(crate) fn path_memory(
    place: Option<HistoryPlace>,
    profile: &Profile,
    state: Option<&Path>,
    is_state_named: bool,
) -> Result<(PathMemory, Option<Arc<HistoryStore>>), Failure> {
    let Some(rules) = profile.history_rules() else {
        return match place {
            None | Some(HistoryPlace::None) => Ok((PathMemory::Nowhere, None)),
            Some(_) => Err(Failure::usage(format!("the profile {} does not use a history", profile.name()))
                .hint("choose one that does, such as --profile history, or omit --history")),
        };
    };
    let default = if is_state_named { HistoryPlace::Store } else { HistoryPlace::Memory };
    match (place.unwrap_or(default), state) {
        (HistoryPlace::None, _) => Ok((PathMemory::Nowhere, None)),
        (HistoryPlace::Token, _) => Ok((PathMemory::Tokens, None)),
        (HistoryPlace::Memory, _) => Ok((PathMemory::Store(Arc::new(MemoryStore::new(rules))), None)),
        (HistoryPlace::Store, Some(state)) => {
            create_private_directory(state).map_err(|error| {
                Failure::runtime(format!("cannot use the folder {}: {error}", state.display()))
                    .hint("choose a writable directory with --state DIR")
            })?;
            let store =
                HistoryStore::open(&history_file(state), rules).map_err(|error| history_failure(&error))?;
            let store = Arc::new(store);
            Ok((PathMemory::Store(Arc::clone(&store) as _), Some(store)))
        }
        (HistoryPlace::Store, None) => Err(Failure::usage("--history store needs a state directory")
            .hint("name one with --state DIR, or use --history memory or token")),
    }
}

/// Why the history cannot be used, and what to do.
pub(crate) fn history_failure(error: &HistoryError) -> Failure {
    let hint = match error {
        HistoryError::Damaged { .. } => "a server moves it aside and starts a new one; or delete it yourself",
        HistoryError::InUse { .. } => {
            "wait for the other program, or choose another directory with --state DIR"
        }
        HistoryError::Io { .. } => "choose a readable and writable directory with --state DIR",
    };
    Failure::runtime(error).hint(hint)
}

/// The tokens in `state`, or none.
pub(crate) fn tokens(state: &Path) -> TokenCache {
    let cache = TokenCache::new();
    if let Ok(bytes) = read(&state.join(TOKENS)) {
        cache.import(&String::from_utf8_lossy(&bytes));
    }
    cache
}

/// Keeps the tokens in `state`.
pub(crate) fn save_tokens(state: &Path, tokens: &TokenCache) -> Result<(), Failure> {
    save(state, TOKENS, "address tokens", &tokens.export())
}

/// What is known of numbers of connections in `state`, or nothing.
pub(crate) fn gains(state: &Path) -> ConnectionGains {
    let gains = ConnectionGains::new();
    if let Ok(bytes) = read(&state.join(GAINS)) {
        gains.import(&String::from_utf8_lossy(&bytes));
    }
    gains
}

/// Keeps what is known of numbers of connections in `state`.
pub(crate) fn save_gains(state: &Path, gains: &ConnectionGains) -> Result<(), Failure> {
    save(state, GAINS, "what downloads have found out", &gains.export())
}

fn save(state: &Path, name: &str, what: &str, text: &str) -> Result<(), Failure> {
    let path = state.join(name);
    let saved = create_private_directory(state).and_then(|()| replace(&path, text.as_bytes()));
    saved.map_err(|error| {
        Failure::runtime(format!("cannot keep {what} in {}: {error}", path.display()))
            .hint("choose a writable directory with --state DIR")
    })
}

/// Does `work` on a thread and waits for it, but not for longer than `limit`.
fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, is_done) = sync_channel(1);
    std::thread::Builder::new().spawn(move || {
        let _ = done.send(work());
    })?;
    is_done.recv_timeout(limit).map_err(|_| io::Error::from(ErrorKind::TimedOut))?
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > MAX_FILE {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "it is too large"));
    }
    std::fs::read(path)
}

#[cfg(test)]
mod tests {
    use rustls::server::StoresServerSessions;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_kept() {
        let state = tempfile::tempdir().unwrap();
        let deep = state.path().join("deep");
        let first = secret(&deep).unwrap();
        assert_eq!(secret(&deep).unwrap(), first);
        assert_ne!(secret(state.path()).unwrap(), first);
        std::fs::write(deep.join(SECRET), b"short").unwrap();
        assert!(secret(&deep).is_err_and(|error| error.to_string().contains("32 bytes")));
    }

    #[test]
    fn work_that_does_not_end_is_not_waited_for() {
        let (end, ended) = sync_channel::<()>(1);
        let waits = move || ended.recv().map_err(io::Error::other);
        assert_eq!(within(Duration::from_millis(10), waits).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(end);
        assert_eq!(within(Duration::from_secs(10), || Ok(7)).unwrap(), 7);
    }

    #[test]
    fn sessions_are_restored_once() {
        let state = tempfile::tempdir().unwrap();
        let store = SessionStore::new();
        let kept = KeptSessions::restore(Some(state.path()), 4433, &store);
        store.put(b"key".to_vec(), b"value".to_vec());
        kept.save(&store);
        let next = SessionStore::new();
        KeptSessions::restore(Some(state.path()), 4433, &next);
        assert_eq!(next.take(b"key"), Some(b"value".to_vec()));
        let third = SessionStore::new();
        KeptSessions::restore(Some(state.path()), 4433, &third);
        assert!(third.is_empty(), "a run that ends without a word leaves none");
        KeptSessions::restore(Some(state.path()), 0, &store).save(&store);
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    }
}

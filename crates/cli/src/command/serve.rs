//! `posthaste serve`: files over HTTP/3.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use posthaste_endpoint::{
    Endpoint, ReceiveBudget, RetryPolicy, SendBudget, ServerConfig, SessionStore, TransportConfig, tls,
};
use posthaste_http::{ALPN, Budget, Ended, ServerOptions, StaticFiles};
use serde::Serialize;

use super::exposure;
use super::running::{Running, Terms, cannot_listen, connectable, interrupts, over_quic};
use super::workers::{self, Worker};
use crate::args::{Cipher, Retry, Serve};
use crate::exit::Failure;
use crate::identity::Identity;
use crate::kept::{self, KeptSessions};
use crate::log_queue::LogQueue;
use crate::printer::{self, shell_quote};
use crate::{profile, state_directory};

/// Serves until it is stopped. What goes to stderr meanwhile goes through `log`.
pub(crate) async fn run(args: Serve, log: &LogQueue) -> Result<ExitCode, Failure> {
    let profile = match args.guaranteed_rate_max {
        Some(most) => profile::granting(&args.profile, most)?,
        None => profile::complete(&args.profile)?,
    };
    profile::warn(&profile);
    let mut transport = TransportConfig {
        receive_budget: ReceiveBudget::new(args.receive_budget),
        send_budget: SendBudget::new(args.send_budget),
        max_idle_timeout: args.idle_timeout,
        ..profile::transport(profile, None, args.max_datagram_size)?
    };
    profile::limit_keys(&mut transport, args.key_limit);
    let profile_name = transport.profile.name().to_owned();
    let files = open_directory(&args)?;
    exposure::refuse(files.root(), &args, state(&args)?.as_deref())?;
    let traces = args.qlog.as_deref().map(|folder| profile::trace_server(folder, &mut transport));
    let traces = traces.transpose()?;
    let identity = identity(&args)?;
    let tls = tls_config(&args, &identity)?;
    let interrupts = interrupts()?;
    let state = state(&args)?;
    let sessions = Arc::new(SessionStore::new());
    let (path_memory, history) =
        kept::path_memory(args.history, &transport.profile, state.as_deref(), args.state.is_some())?;
    let config = ServerConfig {
        path_memory,
        retry: retry_policy(args.retry),
        secret: state.as_deref().map(kept::secret).transpose()?,
        ..ServerConfig::new(tls::server_with_early_data(&tls, Arc::clone(&sessions) as _), transport)
    };
    let refused = |error: io::Error| cannot_listen(args.listen, &error);
    let workers = listen(&args, config).map_err(refused)?;
    // Only now: who could not listen has left the sessions to whoever does.
    let kept_sessions = KeptSessions::restore(state.as_deref(), args.listen.port(), &sessions);
    let address =
        workers.first().map_or(Ok(args.listen), |(_, endpoint)| endpoint.local_addr()).map_err(refused)?;
    let start = Start::new(address, files.root(), &profile_name, &identity);
    announce(&start, &args)?;
    let access_log = !args.no_access_log;
    let running = Running { json: args.json, access_log, redact_query: false, grace: args.grace };
    let end = running
        .run(move |terms| workers::run(terms, move |terms| works(workers, &files, &terms)), interrupts, log)
        .await;
    drop(traces);
    // What is left for the next run.
    kept_sessions.save(&sessions);
    if history.is_some_and(|history| !history.flush()) {
        tracing::warn!("the path histories are not saved on disk");
    }
    end
}

/// The workers with their endpoints.
fn listen(args: &Serve, config: ServerConfig) -> io::Result<Vec<(Worker, Endpoint)>> {
    let start = |quic: posthaste_endpoint::Worker| {
        let worker = Worker::new()?;
        let endpoint = worker.make(|| quic.start())?;
        Ok((worker, endpoint))
    };
    Endpoint::workers(args.listen, args.workers, config)?.into_iter().map(start).collect()
}

/// What each of them does. A single one has a thread of its own, too: requests that change threads cost more than they gain
/// (docs/results/benchmarks.md).
fn works(
    workers: Vec<(Worker, Endpoint)>,
    files: &StaticFiles,
    terms: &Terms,
) -> Vec<(Worker, Endpoint, impl Future<Output = Ended> + Send + use<>)> {
    let options = ServerOptions::default();
    let budget = Budget::new(&options);
    let start = |(worker, endpoint): (Worker, Endpoint)| {
        let server = posthaste_http::serve(endpoint.clone(), files.clone()).within(budget.clone());
        let work = over_quic(server, options.clone(), terms.clone()).run();
        (worker, endpoint, work)
    };
    workers.into_iter().map(start).collect()
}

fn tls_config(args: &Serve, identity: &Identity) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let only = |cipher: Cipher| tls::crypto_provider_with(cipher.into());
    let provider = args.cipher.map_or_else(tls::crypto_provider, only);
    let tls = tls::server_config_using(provider, identity.chain.clone(), identity.key.clone_key(), &[ALPN]);
    tls.map_err(|error| {
        Failure::usage(format!("certificate and key cannot be used together: {error}"))
            .hint("--key must be the private key of the first certificate in --cert")
    })
}

fn open_directory(args: &Serve) -> Result<StaticFiles, Failure> {
    let files = StaticFiles::new(&args.directory, args.listing).map_err(|error| {
        let shown = args.directory.display();
        match error.kind() {
            io::ErrorKind::NotFound => Failure::usage(format!("there is no directory {shown}"))
                .hint("create it, or name another directory: posthaste serve DIR"),
            io::ErrorKind::NotADirectory => Failure::usage(format!("{shown} is not a directory"))
                .hint("name the directory that contains the file: posthaste serve DIR"),
            _ => Failure::usage(format!("cannot read the directory {shown}: {error}")),
        }
    })?;
    Ok(if args.hidden { files.with_hidden_files() } else { files })
}

fn identity(args: &Serve) -> Result<Identity, Failure> {
    if let (Some(certificate), Some(key)) = (&args.cert, &args.key) {
        return Identity::load(certificate, key);
    }
    let state = match state(args)? {
        Some(state) => state,
        None => state_directory::default()?,
    };
    let identity = Identity::keep(&state, SystemTime::now())?;
    if !args.listen.ip().is_loopback() {
        printer::note(
            "the certificate is for localhost only: other machines will refuse it; give --cert and --key for them",
        );
    }
    Ok(identity)
}

/// Where things are kept between runs. A server with a certificate of its own need not have a place.
fn state(args: &Serve) -> Result<Option<PathBuf>, Failure> {
    let state = match &args.state {
        Some(state) => Some(state.clone()),
        None if args.cert.is_some() => None,
        None => Some(state_directory::default()?),
    };
    Ok(state.map(|state| std::path::absolute(&state).unwrap_or(state)))
}

fn retry_policy(retry: Retry) -> RetryPolicy {
    match retry {
        Retry::Always => RetryPolicy::Always,
        Retry::UnderLoad => RetryPolicy::default(),
        Retry::Never => RetryPolicy::Never,
    }
}

/// What a person or a program needs to know to use the server.
#[derive(Serialize)]
struct Start {
    event: &'static str,
    url: String,
    address: SocketAddr,
    root: String,
    profile: String,
    certificate: String,
    certificate_is_own: bool,
    spki_sha256: String,
    commands: Commands,
}

/// Ready to paste.
#[derive(Serialize)]
struct Commands {
    curl: String,
    get: String,
    chromium: String,
}

impl Start {
    fn new(address: SocketAddr, root: &Path, profile: &str, identity: &Identity) -> Self {
        let reachable = SocketAddr::new(connectable(address.ip()), address.port());
        let url = format!("https://{reachable}/");
        let certificate = identity.file.display().to_string();
        let (quoted_url, quoted_certificate) = (shell_quote(&url), shell_quote(&certificate));
        let trust = |option: &str| {
            if identity.is_own { format!("{option} {quoted_certificate} ") } else { String::new() }
        };
        let commands = Commands {
            curl: format!("curl --http3-only {}{quoted_url}", trust("--cacert")),
            get: format!("posthaste get {}{quoted_url}", trust("--ca")),
            chromium: format!(
                "chromium --user-data-dir=\"$(mktemp -d)\" {} --ignore-certificate-errors-spki-list={} {quoted_url}",
                shell_quote(&format!("--origin-to-force-quic-on={reachable}")),
                identity.spki_hash
            ),
        };
        Self {
            event: "listening",
            url,
            address,
            root: root.display().to_string(),
            profile: profile.to_owned(),
            certificate,
            certificate_is_own: identity.is_own,
            spki_sha256: identity.spki_hash.clone(),
            commands,
        }
    }
}

fn announce(start: &Start, args: &Serve) -> Result<(), Failure> {
    let printed = if args.json {
        printer::json_line(start)
    } else {
        let kept = if start.certificate_is_own { "made for localhost, kept in" } else { "from" };
        printer::line(format_args!(
            "Serving {root}\n\
             \x20 URL          \x1b[1m{url}\x1b[0m\n\
             \x20 profile      {profile}\n\
             \x20 certificate  {kept} {certificate}\n\
             \x20 SPKI SHA-256 {spki}\n\n\
             Fetch with one of these, any path after the slash:\n\
             \x20 {get}\n\x20 {curl}\n\x20 {chromium}\n\n\
             Ctrl-C stops.{follows}",
            root = start.root,
            url = start.url,
            profile = start.profile,
            certificate = start.certificate,
            spki = start.spki_sha256,
            get = start.commands.get,
            curl = start.commands.curl,
            chromium = start.commands.chromium,
            follows = if args.no_access_log { "" } else { " One line per request follows." },
        ))
    };
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_can_be_connected_to() {
        let state = tempfile::tempdir().unwrap();
        let identity = Identity::keep(state.path(), SystemTime::now()).unwrap();
        for (address, url) in [
            ("127.0.0.1:1", "https://127.0.0.1:1/"),
            ("0.0.0.0:1", "https://127.0.0.1:1/"),
            ("[::]:1", "https://[::1]:1/"),
        ] {
            let start = Start::new(address.parse().unwrap(), Path::new("/x"), "cubic", &identity);
            assert_eq!(start.url, url);
            assert!(start.commands.chromium.contains(&identity.spki_hash));
            assert!(start.commands.curl.starts_with("curl --http3-only --cacert "));
        }
    }
}

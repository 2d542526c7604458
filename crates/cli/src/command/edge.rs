//! `posthaste edge`: existing sites over HTTP/3.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use posthaste_edge::{Config, ConfigError, Edge};
use posthaste_endpoint::{ServerConfig, SessionStore, tls};
use posthaste_http::{ALPN, serve};
use rustls::client::danger::ServerCertVerifier;

use super::running::{Running, cannot_listen, interrupts};
use crate::args::{Edge as Args, EdgeCommand};
use crate::exit::Failure;
use crate::log_queue::LogQueue;
use crate::{printer, profile, trust};

mod announce;
mod check;
mod from_args;
mod front;
mod upkeep;

/// Serves until it is stopped. What goes to stderr meanwhile goes through `log`.
pub(crate) async fn run(args: Args, log: &LogQueue) -> Result<ExitCode, Failure> {
    if let Some(EdgeCommand::Check(args)) = &args.command {
        return check::run(args).await;
    }
    let config = match &args.config {
        Some(file) => Config::read(file).map_err(|error| refused(&error))?,
        None => from_args::config(&args),
    };
    if args.print_config {
        let printed = printer::line(config.to_toml().trim_end());
        return match printer::unless_reader_left(printed) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(Failure::runtime(format!("cannot write to stdout: {error}"))),
        };
    }
    let profile = profile::complete(&config.edge.profile)?;
    profile::warn(&profile);
    let transport = profile::transport(profile, None, None)?;
    let profile_name = transport.profile.name().to_owned();
    let edge = Edge::new(&config, &trusted).map_err(|error| refused(&error))?;
    let tls = tls::server_with_early_data(&*tls(&edge, &[ALPN])?, Arc::new(SessionStore::new()));
    let interrupts = interrupts()?;
    let (endpoint, front) = front::listen(&config, &edge, &ServerConfig::new(tls, transport)).await?;
    let address = endpoint.local_addr().map_err(|error| cannot_listen(config.edge.listen, &error))?;
    // Before anybody is told that it runs: a SIGHUP from then on must not end it.
    let upkeep = upkeep::begin(edge.clone(), config.clone(), args.config, log.clone())?;
    let redirect = front.as_ref().and_then(front::Front::redirect_address);
    let place = announce::Place { address, redirect, has_tcp: front.is_some() };
    let access_log = !args.no_access_log;
    announce::announce(&config, &edge, place, &profile_name, announce::Form { json: args.json, access_log })?;
    let running = Running { json: args.json, access_log, grace: config.edge.grace.duration() };
    let quic = serve(endpoint, edge.clone());
    let end = running.run_all(|terms| front::run(quic, front, edge, terms), interrupts, log).await;
    upkeep.abort();
    end
}

/// TLS with the edge's certificates, for these protocols.
fn tls(edge: &Edge, alpn: &[&[u8]]) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let builder = rustls::ServerConfig::builder_with_provider(tls::crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Failure::runtime(format!("TLS cannot be used: {error}")))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(edge.resolver().clone()));
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    Ok(Arc::new(config))
}

/// Whom `https` upstreams must be certified by.
fn trusted(file: Option<&Path>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    trust::in_file_or_system(file).map_err(|failure| failure.to_string())
}

fn refused(error: &ConfigError) -> Failure {
    let failure = Failure::usage(error.message());
    match error.help() {
        Some(help) => failure.hint(help),
        None => failure,
    }
}

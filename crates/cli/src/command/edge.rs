//! `posthaste edge`: existing sites over HTTP/3.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use admin::Admin;
use posthaste_edge::{About, Config, ConfigError, Edge, Metrics, QueryInLog};
use posthaste_policy::Profile;
use rustls::client::danger::ServerCertVerifier;

use super::running::{Running, cannot_listen, interrupts};
use crate::args::{Edge as Args, EdgeCommand};
use crate::exit::Failure;
use crate::log_queue::LogQueue;
use crate::{printer, profile, trust};

mod acme;
mod admin;
mod announce;
mod check;
mod dashboard;
mod doctor;
mod from_args;
mod front;
mod kept;
mod limits;
mod sockets;
mod status;
mod systemd;
mod upkeep;

pub(crate) use systemd::Passed;

/// Serves until it is stopped, on the sockets that were passed if there are any. What goes to stderr meanwhile goes through `log`.
pub(crate) async fn run(args: Args, passed: Passed, log: &LogQueue) -> Result<ExitCode, Failure> {
    if let Some(command) = &args.command {
        return run_command(command).await;
    }
    if args.print_schema {
        return print(Config::json_schema());
    }
    let config = match &args.config {
        Some(file) => Config::read(file).map_err(|error| refused(&error))?,
        None => from_args::config(&args),
    };
    if args.print_config {
        return print(&config.to_toml());
    }
    let profile = named_profile(&config)?;
    profile::warn(&profile);
    let transport = profile::transport(profile, None, None)?;
    let profile_name = transport.profile.name().to_owned();
    let edge = Edge::new(&config, &trusted).map_err(|error| refused(&error))?;
    let (server, state) = kept::State::open(&config, &edge, transport)?;
    let interrupts = interrupts()?;
    // A port that is another each time has nothing to keep.
    let is_lasting = !passed.is_empty() || config.edge.listen.port() != 0;
    let sockets = sockets::listen(&config, server, passed).await?;
    let front = front::Front::new(&config, &edge, sockets)?;
    let address = front.address().map_err(|error| cannot_listen(config.edge.listen, &error))?;
    let kept = state.restore(if is_lasting { address.port() } else { 0 });
    // Before anybody is told that it runs: a SIGHUP from then on must not end it.
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: profile_name.clone(),
        began: SystemTime::now(),
    };
    let metrics = Metrics::new(about, edge.clone(), front.endpoints());
    let admin = Admin::begin(&config.edge, &metrics).await?;
    let redirect = front.redirect_address();
    let certifier =
        upkeep::Certifier { authority: acme::authority(&config, &edge)?, has_plain: redirect.is_some() };
    let telling = (log.clone(), metrics.clone());
    let upkeep = upkeep::begin(edge.clone(), config.clone(), args.config, certifier, telling)?;
    let has_tcp = front.has_tcp();
    let place = announce::Place { address, redirect, admin: admin.as_ref().map(|it| it.address), has_tcp };
    let access_log = !args.no_access_log;
    announce::announce(&config, &edge, place, &profile_name, announce::Form { json: args.json, access_log })?;
    systemd::ready();
    let redact_query = config.edge.log_query == QueryInLog::Redacted;
    let grace = config.edge.grace.duration();
    let running = Running { json: args.json, access_log, redact_query, grace };
    let limits = config.edge.limits;
    let observed = admin.is_some().then_some(metrics);
    let start = |terms| front.run(edge, limits, terms, observed);
    let end = running.run(start, interrupts, log).await;
    kept.save();
    upkeep.abort();
    drop(admin);
    end
}

/// What is asked of an edge instead of serving.
async fn run_command(command: &EdgeCommand) -> Result<ExitCode, Failure> {
    match command {
        EdgeCommand::Check(args) => check::run(args).await,
        EdgeCommand::Status(args) => status::run(args),
        EdgeCommand::Doctor(args) => doctor::run(args).await,
        #[cfg(feature = "page")]
        EdgeCommand::Prove(args) => super::page::prove(args).await,
        #[cfg(not(feature = "page"))]
        EdgeCommand::Prove(_) => Err(crate::exit::not_built("the command `edge prove`")),
    }
}

/// Prints a file instead of serving.
fn print(file: &str) -> Result<ExitCode, Failure> {
    printer::unless_reader_left(printer::line(file.trim_end()))
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

fn no_tls(error: &rustls::Error) -> Failure {
    Failure::runtime(format!("TLS cannot be used: {error}"))
}

/// The profile that a configuration names.
fn named_profile(config: &Config) -> Result<Profile, Failure> {
    let named = &config.edge.profile;
    profile::complete(named.get_ref()).map_err(|failure| failure.at(config.place(named.span())))
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

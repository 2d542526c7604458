//! `posthaste get`: files over HTTP/3.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::{StatusCode, Uri};
use posthaste_endpoint::{
    ClientConfig, HistoryStore, PathMemory, PathStore, TokenCache, TransportConfig, Version, tls,
};
use posthaste_http::client::ConnectionGains;
use posthaste_http::{ALPN, Client, ClientError, ClientOptions, parse_url};
use posthaste_units::Rate;
use tokio::time::Instant;

use crate::args::{Get, GuaranteedRate, QuicVersion};
use crate::exit::{FAILED, Failure};
use crate::interrupt::Interrupts;
use crate::output_file::OutputError;
use crate::{kept, link_rate, printer, profile, trust};

mod disruption;
pub(crate) mod fallback;
mod output;
mod parts;
mod progress;
mod report;
mod resume;
mod upload;

use disruption::Disruption;
use fallback::{Fallback, Reach, Reply, TcpError};
use output::{Destination, Output, Wanted};
use progress::Progress;
use report::Transfer;
use upload::UploadError;

/// Silence after which the server is asked whether it is still there.
const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(5);

pub(crate) async fn run(args: Get) -> Result<ExitCode, Failure> {
    let uris =
        args.urls.iter().map(|url| parse_url(url)).collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
    upload::check(&args, &uris)?;
    let destinations = output::destinations(&args, &uris)?;
    parts::check(&args, &destinations)?;
    resume::check(&args, &destinations)?;
    let profile = profile::complete(&args.profile)?;
    let mut transport = profile::transport(profile, args.qlog.as_deref(), args.max_datagram_size)?;
    // Who only receives does not notice when a router forgets it: the server has to hear from where to send to.
    transport.keep_alive = Some(KEEP_ALIVE);
    profile::limit_keys(&mut transport, args.key_limit);
    let profile_name = transport.profile.name().to_owned();
    let tokens = Arc::new(args.state.as_deref().map_or_else(TokenCache::new, kept::tokens));
    let (store, history) = uploads_history(&args, &transport)?;
    let mut options = options(&args, transport, &tokens)?;
    options.quic.guaranteed_rate = stated_rate(&args, uris.first())?;
    options.quic.path_store = store;
    options.path_hint = args.path_hint.map(|hint| (hint.rate, hint.round_trip));
    if let Some(state) = &args.state {
        options.connection_gains = Arc::new(kept::gains(state));
    }
    let gains = Arc::clone(&options.connection_gains);
    let client = Client::new(options);
    let fallback = if args.fallback { Some(over_tcp(&args)?) } else { None };
    let mut interrupts = Interrupts::catch()
        .map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;

    let writes_to_terminal =
        destinations.contains(&Destination::Stdout) && std::io::IsTerminal::is_terminal(&std::io::stdout());
    let progress = Progress::new(uris.len(), writes_to_terminal);
    let disruption = Disruption::new(&client, &args);
    let means = Means {
        client: &client,
        fallback: fallback.as_ref(),
        disruption: &disruption,
        args: &args,
        progress: &progress,
    };
    let transfers = tokio::select! {
        transfers = all(means, &uris, &destinations) => transfers,
        () = interrupts.next() => {
            progress.clear();
            client.close().await;
            return Err(Failure::runtime(interrupted(&args)));
        }
    };
    progress.clear();
    if args.json {
        let report = report::Report::new(&profile_name, &transfers, &client.connections());
        let printed = printer::unless_reader_left(printer::json(&report));
        printed.map_err(|error| Failure::runtime(format!("cannot write the report: {error}")))?;
    }
    if args.repeat > 1 && !args.json && transfers.iter().all(|transfer| transfer.error.is_none()) {
        let rounds: Vec<_> = transfers.chunks(uris.len()).map(report::longest).collect();
        printer::note(gain(&rounds));
    }
    client.close().await;
    keep(&args, &tokens, &gains, history.as_deref())?;
    let is_ok = transfers.iter().all(|transfer| transfer.error.is_none());
    Ok(if is_ok { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// What Ctrl-C leaves.
fn interrupted(args: &Get) -> &'static str {
    if args.upload.is_some() {
        "interrupted; the upload is not complete"
    } else if args.resume {
        "interrupted; the same command continues what was kept, and fetches the rest anew"
    } else {
        "interrupted; nothing incomplete was kept"
    }
}

/// Leaves for later runs what this one has learnt, where the user wants that.
fn keep(
    args: &Get,
    tokens: &TokenCache,
    gains: &ConnectionGains,
    history: Option<&HistoryStore>,
) -> Result<(), Failure> {
    if let Some(state) = &args.state {
        kept::save_tokens(state, tokens)?;
        if !gains.is_empty() {
            kept::save_gains(state, gains)?;
        }
    }
    if history.is_some_and(|history| !history.flush()) {
        printer::note("what the upload has learnt of its path could not be kept for later runs");
    }
    Ok(())
}

/// What coming back has saved: the first time, and the median of the later ones.
fn gain(rounds: &[Duration]) -> String {
    let (first, mut later) = (rounds[0], rounds[1..].to_vec());
    later.sort_unstable();
    let median = later[later.len() / 2];
    let saving = 100.0 * (1.0 - median.as_secs_f64() / first.as_secs_f64().max(f64::MIN_POSITIVE));
    format!(
        "first {}, then {} (median of {}): {saving:.0} % less",
        printer::duration(first),
        printer::duration(median),
        later.len()
    )
}

/// What files are fetched with.
#[derive(Clone, Copy)]
struct Means<'a> {
    client: &'a Client,
    /// With `--fallback`.
    fallback: Option<&'a Fallback>,
    disruption: &'a Disruption,
    args: &'a Get,
    progress: &'a Progress,
}

/// Fetches all URLs, as often as is asked for.
async fn all(means: Means<'_>, uris: &[Uri], destinations: &[Destination]) -> Vec<Transfer> {
    let (args, mut transfers) = (means.args, Vec::new());
    for round in 1..=args.repeat {
        if round > 1 {
            means.client.hang_up();
        }
        let is_last = round == args.repeat;
        let destination = |wanted: &Destination| if is_last { wanted.clone() } else { Destination::Nowhere };
        // Collected, for a stream that borrows the closure would keep this future from being a task (`Send`).
        let jobs: Vec<_> = args
            .urls
            .iter()
            .zip(uris)
            .zip(destinations)
            .map(|((url, uri), wanted)| transfer(means, url, uri.clone(), destination(wanted)))
            .collect();
        let done = futures::stream::iter(jobs).buffered(usize::from(args.parallel));
        transfers.extend(done.collect::<Vec<_>>().await);
    }
    transfers
}

/// Fetches one URL, tells the user if that fails, and reports what was measured.
async fn transfer(means: Means<'_>, url: &str, uri: Uri, destination: Destination) -> Transfer {
    let started = Instant::now();
    let mut transfer = Transfer::new(url, &destination);
    let outcome = match (&means.args.upload, &destination) {
        (Some(file), _) => upload::send(means, &uri, file, destination, &mut transfer).await,
        (None, Destination::File(path)) if means.args.resume => {
            resume::fetch(means, &uri, path, &mut transfer).await
        }
        _ if means.args.connections.most() > 1 => parts::fetch(means, &uri, destination, &mut transfer).await,
        _ => fetch(means, &uri, destination, &mut transfer).await,
    };
    transfer.total = started.elapsed();
    if let Err(problem) = outcome {
        means.progress.suspend(|| {
            printer::error(format_args!("{url}: {problem}{}", problem.hint()));
        });
        transfer.error = Some(problem.to_string());
    }
    transfer
}

async fn fetch(
    means: Means<'_>,
    uri: &Uri,
    destination: Destination,
    transfer: &mut Transfer,
) -> Result<(), Problem> {
    // Before anything is asked for: what cannot be written need not be fetched.
    let output = Output::open(destination).await?;
    let mut reply = match means.fallback {
        Some(fallback) => fallback.get(means.client, uri).await?,
        None => means.client.get(uri).await?.into(),
    };
    match &reply {
        Reply::Quic(response) => transfer.begin(response),
        Reply::Tcp(response) => transfer.begin_over_tcp(response),
    }
    accept(reply.status())?;
    receive(&mut reply, output, means, uri, transfer).await
}

/// Takes the body to where it goes.
async fn receive(
    reply: &mut Reply,
    mut output: Output,
    means: Means<'_>,
    uri: &Uri,
    transfer: &mut Transfer,
) -> Result<(), Problem> {
    let bar = means.progress.bar(uri.path(), reply.content_length());
    while let Some(chunk) = reply.chunk().await? {
        transfer.bytes = reply.received();
        bar.advance(chunk.len() as u64);
        means.disruption.received(chunk.len() as u64);
        if output.write(chunk).await? == Wanted::No {
            return Ok(());
        }
    }
    output.finish().await?;
    Ok(())
}

/// Whether a whole file comes with this status.
fn accept(status: StatusCode) -> Result<(), Problem> {
    match status {
        // Nobody asked for a range (RFC 9110 section 15.3.7).
        StatusCode::PARTIAL_CONTENT => Err(Problem::Part),
        status if status.is_success() => Ok(()),
        status => Err(Problem::Status(status)),
    }
}

/// Why a transfer failed.
#[derive(Debug)]
pub(crate) enum Problem {
    Client(ClientError),
    /// Over TCP.
    Tcp(TcpError),
    /// Neither over HTTP/3 nor over TCP.
    Neither(Box<(ClientError, TcpError)>),
    Status(StatusCode),
    /// A part of the file, which nobody asked for.
    Part,
    Output(OutputError),
    Upload(UploadError),
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        Self::Upload(error)
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<OutputError> for Problem {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Tcp(error) => write!(f, "over TCP: {error}"),
            Self::Neither(errors) => write!(f, "{}; over TCP: {}", errors.0, errors.1),
            Self::Status(status) => write!(f, "the server answers {status}"),
            Self::Part => write!(f, "the server answers with a part of the file, which was not asked for"),
            Self::Output(error) => error.fmt(f),
            Self::Upload(error) => error.fmt(f),
        }
    }
}

impl Problem {
    /// What to do about it, where that is not said already.
    fn hint(&self) -> &'static str {
        match self {
            Self::Client(ClientError::Certificate { .. }) => {
                "\n  for your own server, give its certificate with --ca FILE; \
                 --insecure accepts any, for tests on a network that you trust"
            }
            _ => "",
        }
    }
}

fn options(
    args: &Get,
    transport: TransportConfig,
    tokens: &Arc<TokenCache>,
) -> Result<ClientOptions, Failure> {
    let tls = tls::client_with_early_data(&*tls_config(args)?);
    let version = match args.quic_version {
        QuicVersion::One => Version::V1,
        QuicVersion::Two => Version::V2,
    };
    let quic = ClientConfig::new(tls, transport).with_version(version).with_tokens(Arc::clone(tokens) as _);
    // The first connection begins as if it were alone; how many follow, the size of what is fetched decides.
    let quic = quic.with_group_size(usize::from(args.connections.most() > 1));
    let mut options = ClientOptions::new(quic);
    options.max_redirects = args.max_redirects;
    if let Some(timeout) = args.timeout {
        options.connect_timeout = timeout;
        options.first_byte_timeout = timeout;
        options.idle_timeout = timeout;
    }
    Ok(options)
}

/// Where uploads keep what they learn of their paths, with a profile that makes use of that: for later rounds, and in the
/// state directory for later runs.
type UploadsHistory = (Option<Arc<dyn PathStore>>, Option<Arc<HistoryStore>>);

fn uploads_history(args: &Get, transport: &TransportConfig) -> Result<UploadsHistory, Failure> {
    if args.upload.is_none() {
        return Ok((None, None));
    }
    let state = args.state.as_deref();
    Ok(match kept::path_memory(None, &transport.profile, state, state.is_some())? {
        (PathMemory::Store(store), history) => (Some(store), history),
        _ => (None, None),
    })
}

/// The guaranteed rate to state, with `auto` that of the interface that leads to the first server.
fn stated_rate(args: &Get, first: Option<&Uri>) -> Result<Option<Rate>, Failure> {
    match (args.guaranteed_rate, first.and_then(Uri::host)) {
        (Some(GuaranteedRate::Given(rate)), _) => Ok(Some(rate)),
        (Some(GuaranteedRate::Interface), Some(host)) => {
            let (interface, rate) = link_rate::towards(host)?;
            printer::note(format_args!("states a guaranteed rate of {rate}, the speed of {interface}"));
            Ok(Some(rate))
        }
        _ => Ok(None),
    }
}

/// TLS for HTTP/3.
fn tls_config(args: &Get) -> Result<Arc<rustls::ClientConfig>, Failure> {
    if args.insecure {
        printer::note("--insecure: the server's certificate is not checked");
    }
    tls::client_config_using(provider(args), trusted(args)?, &[ALPN]).map_err(|error| trust::unusable(&error))
}

/// The client for `--fallback`.
fn over_tcp(args: &Get) -> Result<Fallback, Failure> {
    // Whoever names a cipher gets that one only.
    let provider = args.cipher.map_or_else(fallback::provider_over_tcp, |_| provider(args));
    let tls = fallback::tls_config(provider, trusted(args)?).map_err(|error| trust::unusable(&error))?;
    Ok(Fallback::new(Reach { max_redirects: args.max_redirects, timeout: args.timeout }, tls))
}

fn provider(args: &Get) -> Arc<rustls::crypto::CryptoProvider> {
    args.cipher.map_or_else(tls::crypto_provider, |cipher| tls::crypto_provider_with(cipher.into()))
}

/// Whom to trust.
fn trusted(args: &Get) -> Result<Arc<dyn rustls::client::danger::ServerCertVerifier>, Failure> {
    if args.insecure { Ok(tls::trust_in_everyone()) } else { trust::in_file_or_system(args.ca.as_deref()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_not_taken_for_the_whole() {
        let accept = |status: u16| accept(StatusCode::from_u16(status).unwrap());
        assert!(accept(200).is_ok() && accept(204).is_ok());
        assert!(matches!(accept(206), Err(Problem::Part)));
        assert!(matches!(accept(404), Err(Problem::Status(StatusCode::NOT_FOUND))));
    }

    #[test]
    fn the_gain_is_that_of_the_usual_later_time() {
        let rounds = [400, 300, 100, 200].map(Duration::from_millis);
        assert_eq!(gain(&rounds), "first 400.0 ms, then 200.0 ms (median of 3): 50 % less");
        assert!(gain(&[Duration::ZERO; 2]).contains("median of 1"));
    }
}

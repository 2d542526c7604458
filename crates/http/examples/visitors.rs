//! Visitors that come and go, for `cargo xtask adverse --sockets`: connections of one file each, of which some read slowly, change their address, give a response up, or end an upload early.
//!
//! `visitors --ca FILE --url URL --bytes N --connections N --at-once N --seed N`. The URL's file has [`content_at`] its
//! offsets. It prints a line `failed HOW: WHY` for each visitor that did not get what it came for, and at the end
//! `visited N WHOLE MOVED RESET UPLOADS FAILED`.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Uri};
use posthaste_endpoint::rustls::RootCertStore;
use posthaste_endpoint::rustls::pki_types::{CertificateDer, pem::PemObject as _};
use posthaste_endpoint::{ClientConfig, default_transport, tls};
use posthaste_http::service::Body;
use posthaste_http::{ALPN, Client, ClientOptions};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// For all that one visitor does; whoever takes longer hangs. More than any of the client's own limits.
const PATIENCE: Duration = Duration::from_secs(75);
/// A slow reader's pause between two pieces, and how many it makes.
const PAUSE: (Duration, u32) = (Duration::from_millis(20), 20);
/// Attempts to move, one a pause: a client may not before the handshake is confirmed and the server has given it an ID.
const MOVES: u32 = 100;

/// What a visitor does with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conduct {
    Reads,
    ReadsSlowly,
    Moves,
    GivesUp,
    EndsUpload,
}

impl Conduct {
    fn drawn(number: u64) -> Self {
        match number % 8 {
            0..=2 => Self::Reads,
            3 => Self::ReadsSlowly,
            4 | 5 => Self::Moves,
            6 => Self::GivesUp,
            _ => Self::EndsUpload,
        }
    }
}

#[derive(Default)]
struct Options {
    ca: String,
    url: String,
    bytes: u64,
    connections: u64,
    at_once: usize,
    seed: u64,
}

fn options() -> Result<Options> {
    let mut options = Options::default();
    let mut words = std::env::args().skip(1);
    while let (Some(word), Some(value)) = (words.next(), words.next()) {
        match word.as_str() {
            "--ca" => options.ca = value,
            "--url" => options.url = value,
            "--bytes" => options.bytes = value.parse()?,
            "--connections" => options.connections = value.parse()?,
            "--at-once" => options.at_once = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            _ => return Err(format!("{word}: unknown").into()),
        }
    }
    Ok(options)
}

/// The file's byte at an offset, as `cargo xtask` writes it.
fn content_at(offset: u64) -> u8 {
    (offset ^ offset >> 8 ^ offset >> 16) as u8
}

/// Neighbouring numbers give unlike ones (splitmix64).
fn scatter(number: u64) -> u64 {
    let number = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Fetches the file, sees that each byte is right, and gives up after the first piece if that is what it does.
async fn fetch(client: &Client, uri: &Uri, bytes: u64, conduct: Conduct) -> Result<()> {
    let mut response = client.get(uri).await?;
    if !response.status().is_success() {
        return Err(response.status().to_string().into());
    }
    let (mut offset, mut pieces) = (0, 0);
    while let Some(piece) = response.chunk().await? {
        for byte in &piece {
            if *byte != content_at(offset) {
                return Err(format!("WRONG byte at {offset}").into());
            }
            offset += 1;
        }
        pieces += 1;
        match conduct {
            Conduct::GivesUp => return Ok(()),
            Conduct::Moves if pieces == 1 => change_address(client).await?,
            Conduct::ReadsSlowly if pieces <= PAUSE.1 => sleep(PAUSE.0).await,
            _ => {}
        }
    }
    if offset == bytes { Ok(()) } else { Err(format!("WRONG length: {offset} of {bytes}").into()) }
}

/// Goes on from another port.
async fn change_address(client: &Client) -> Result<()> {
    let mut moved = Ok(());
    for _ in 0..MOVES {
        moved = client.rebind((Ipv4Addr::LOCALHOST, 0).into());
        if moved.is_ok() {
            break;
        }
        sleep(PAUSE.0).await;
    }
    Ok(moved?)
}

/// Begins an upload, and ends before it does. What comes of it is the server's business; the connection must remain good.
async fn end_upload(client: &Client, uri: &Uri) -> Result<()> {
    let (sender, body) = Body::channel();
    let request = Request::post(uri.clone()).body(body)?;
    let (client, feed) = (client.clone(), async move {
        for _ in 0..3 {
            if sender.send(vec![7; 2_000]).await.is_err() {
                break;
            }
        }
    });
    let _ = tokio::join!(client.send(request), feed);
    Ok(())
}

async fn visit(config: ClientConfig, uri: &Uri, bytes: u64, conduct: Conduct) -> Result<()> {
    let client = Client::new(ClientOptions::new(config));
    let done = async {
        if conduct == Conduct::EndsUpload {
            end_upload(&client, uri).await?;
        }
        fetch(&client, uri, bytes, conduct).await
    };
    let done = timeout(PATIENCE, done).await.unwrap_or_else(|_| Err("HANGS".into()));
    client.close().await;
    done
}

/// An error and its causes.
fn whole(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = options()?;
    let uri: Uri = options.url.parse()?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&options.ca)?)?;
    let config = ClientConfig::new(tls::client_config_with_roots(roots, &[ALPN])?, default_transport());
    let places = Arc::new(Semaphore::new(options.at_once.max(1)));
    let mut visits = tokio::task::JoinSet::new();
    let mut counts = [0; 6];
    let mut ended = |outcome: std::result::Result<(Conduct, Result<()>), tokio::task::JoinError>| {
        let (conduct, outcome) = outcome?;
        counts[0] += 1;
        match outcome {
            Ok(()) => counts[1 + (conduct as usize).saturating_sub(1)] += 1,
            Err(error) => {
                counts[5] += 1;
                println!("failed {conduct:?}: {}", whole(&error));
            }
        }
        Ok::<(), Error>(())
    };
    for number in 0..options.connections {
        let place = Arc::clone(&places).acquire_owned().await?;
        let conduct = Conduct::drawn(scatter(options.seed.wrapping_add(number)));
        let (config, uri, bytes) = (config.clone(), uri.clone(), options.bytes);
        visits.spawn(async move {
            let outcome = visit(config, &uri, bytes, conduct).await;
            drop(place);
            (conduct, outcome)
        });
        while let Some(outcome) = visits.try_join_next() {
            ended(outcome)?;
        }
    }
    while let Some(outcome) = visits.join_next().await {
        ended(outcome)?;
    }
    let [all, whole, moved, reset, uploads, failed] = counts;
    println!("visited {all} {whole} {moved} {reset} {uploads} {failed}");
    Ok(())
}

//! A client that lives next to hostile ones, for `cargo xtask hostile`: it fetches a file ten times a second, in turn over
//! a connection that it keeps and over a new one, until stdin ends.
//!
//! `live --ca FILE --url URL --bytes N`. It prints `begun` after the first two fetches, and at the end `served FETCHES KEPT
//! NEW LATE`: the slowest fetch of each kind in seconds, and how many took longer than 100 ms. A fetch that fails ends it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Uri;
use posthaste_endpoint::rustls::RootCertStore;
use posthaste_endpoint::rustls::pki_types::{CertificateDer, pem::PemObject as _};
use posthaste_endpoint::{ClientConfig, default_transport, tls};
use posthaste_http::{ALPN, Client, ClientOptions};
use tokio::time::{Instant, sleep};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Between two fetches.
const PAUSE: Duration = Duration::from_millis(100);
/// What others are served within, on loopback.
const LATE: Duration = Duration::from_millis(100);

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Fetches the whole.
async fn fetch(client: &Client, uri: &Uri, bytes: u64) -> Result<Duration, Error> {
    let began = Instant::now();
    let mut response = client.get(uri).await?;
    while response.chunk().await?.is_some() {}
    if response.received() != bytes {
        return Err(format!("{} bytes of {bytes}", response.received()).into());
    }
    Ok(began.elapsed())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [_, ca, _, url, _, bytes] = words.as_slice() else {
        return Err("live --ca FILE --url URL --bytes N".into());
    };
    let (uri, bytes): (Uri, u64) = (url.parse()?, bytes.parse()?);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let quic = ClientConfig::new(tls::client_config_with_roots(roots, &[ALPN])?, default_transport());
    let (kept, new) = (Client::new(ClientOptions::new(quic.clone())), Client::new(ClientOptions::new(quic)));
    std::thread::spawn(|| {
        std::io::stdin().lines().for_each(drop);
        IS_OVER.store(true, Ordering::Relaxed);
    });
    let (mut slowest, mut late, mut fetches) = ([Duration::ZERO; 2], 0, 0);
    loop {
        for (client, slowest) in [&kept, &new].into_iter().zip(&mut slowest) {
            let took = fetch(client, &uri, bytes).await?;
            *slowest = took.max(*slowest);
            late += u64::from(took > LATE);
            fetches += 1;
        }
        new.hang_up();
        if fetches == 2 {
            println!("begun");
        }
        if IS_OVER.load(Ordering::Relaxed) {
            break;
        }
        sleep(PAUSE).await;
    }
    println!("served {fetches} {} {} {late}", slowest[0].as_secs_f64(), slowest[1].as_secs_f64());
    Ok(())
}

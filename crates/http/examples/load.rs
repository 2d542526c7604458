//! Requests for one path over many connections, and a server that answers from memory, for `cargo xtask bench files`.
//!
//! - `load client --ca FILE --url URL --connections N --streams N --requests N --bytes N`: N connections, each with N requests
//!   in progress, until N responses of the given length are read. Prints `done SECONDS P50 P99`: the time of all requests after the
//!   handshakes, and quantiles of the time of one. With `--pause-millis N` each of those that are in progress waits so long before
//!   the next. With `--hold true` and no requests it prints `READY` when each connection has made one, and ends with its stdin.
//! - `load server --cert FILE --key FILE --bytes N`: answers every request with N bytes. Prints `READY ADDRESS` and runs until
//!   it is killed.

use std::collections::BTreeMap;
use std::future::ready;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use posthaste_endpoint::rustls::RootCertStore;
use posthaste_endpoint::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use posthaste_endpoint::{ClientConfig, Endpoint, ServerConfig, default_transport, tls};
use posthaste_http::{ALPN, Body, Client, ClientOptions, Request, Response, serve, service_fn};
use tokio::time::Instant;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The values of the command line, by the names of the options.
struct Options(BTreeMap<String, String>);

impl Options {
    fn text(&self, name: &str) -> Result<&str, Error> {
        Ok(self.0.get(name).ok_or_else(|| format!("--{name} is missing"))?)
    }

    fn number(&self, name: &str) -> Result<i64, Error> {
        Ok(self.text(name)?.parse()?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let mode = words.next().unwrap_or_default();
    let mut options = Options(BTreeMap::new());
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        options.0.insert(name.trim_start_matches('-').to_owned(), value);
    }
    match mode.as_str() {
        "client" => client(&options).await,
        "server" => server(&options).await,
        _ => Err("load client|server, and see its first lines".into()),
    }
}

async fn server(options: &Options) -> Result<(), Error> {
    let chain = CertificateDer::pem_file_iter(options.text("cert")?)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(options.text("key")?)?;
    let content = Bytes::from(vec![b'x'; usize::try_from(options.number("bytes")?)?]);
    let config = ServerConfig::new(tls::server_config(chain, key, &[ALPN])?, default_transport());
    let endpoint = Endpoint::server((Ipv4Addr::LOCALHOST, 0).into(), config)?;
    let address: SocketAddr = endpoint.local_addr()?;
    println!("READY {address}");
    let answer = service_fn(move |_: Request| ready(Response::new(Body::from(content.clone()))));
    tokio::spawn(serve(endpoint, answer).run()).await?;
    Ok(())
}

async fn client(options: &Options) -> Result<(), Error> {
    let uri: Uri = options.text("url")?.parse()?;
    let length = u64::try_from(options.number("bytes")?)?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(options.text("ca")?)?)?;
    let quic = ClientConfig::new(tls::client_config_with_roots(roots, &[ALPN])?, default_transport());
    let mut clients = Vec::new();
    for _ in 0..options.number("connections")? {
        let client = Client::new(ClientOptions::new(quic.clone()));
        fetch(&client, &uri, length).await?;
        clients.push(client);
    }
    if options.0.get("hold").is_some_and(|hold| hold == "true") {
        println!("READY");
        let end = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        end.await??;
        return Ok(());
    }
    let pause =
        options.0.get("pause-millis").map(|text| text.parse().map(Duration::from_millis)).transpose()?;
    let began = Instant::now();
    let left = Arc::new(AtomicI64::new(options.number("requests")?));
    let mut tasks = tokio::task::JoinSet::new();
    for client in &clients {
        for _ in 0..options.number("streams")? {
            let (client, uri, left) = (client.clone(), uri.clone(), Arc::clone(&left));
            tasks.spawn(async move {
                let mut times = Vec::new();
                while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                    let began = Instant::now();
                    fetch(&client, &uri, length).await?;
                    times.push(began.elapsed());
                    if let Some(pause) = pause {
                        tokio::time::sleep(pause).await;
                    }
                }
                Ok::<_, Error>(times)
            });
        }
    }
    let mut times = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times.extend(ended??);
    }
    let all = began.elapsed();
    times.sort_unstable();
    let quantile = |share: usize| times[(times.len() * share).div_ceil(100).max(1) - 1].as_secs_f64();
    println!("done {} {} {}", all.as_secs_f64(), quantile(50), quantile(99));
    Ok(())
}

async fn fetch(client: &Client, uri: &Uri, length: u64) -> Result<(), Error> {
    let mut response = client.get(uri).await?;
    while response.chunk().await?.is_some() {}
    if response.received() != length {
        return Err(format!("{} bytes of {length}", response.received()).into());
    }
    Ok(())
}

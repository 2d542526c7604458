//! quinn on aws-lc, with h3 for HTTP/3.

mod library;
mod raw;

use std::path::Path;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use clap::Parser as _;
use futures::StreamExt as _;
use posthaste_interop_peers::contract::{
    Again, ClientArgs, DatagramClientArgs, DatagramServerArgs, Fetched, Mode, Result, ServerArgs, Target,
    print_ready, read_served,
};
use posthaste_interop_peers::datagrams::{self, Exchange};
use posthaste_interop_peers::tls;

use raw::{client_endpoint, server_endpoint, socket};

/// One thread, as all peers have: CPU per byte is compared, not parallelism.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Mode::parse() {
        Mode::Client(args) => client(args).await,
        Mode::Server(args) => server(args).await,
        Mode::DatagramServer(args) => datagram_server(args).await,
        Mode::DatagramClient(args) => datagram_client(args).await,
        mode => raw::run(mode).await,
    }
}

/// Of itself it updates its keys after 10 to 1,000 packets sent: a server's are, the acks of one download may not make
/// so many.
const KEY_UPDATE_AFTER: usize = 2_000_000;

async fn client(args: ClientArgs) -> Result<()> {
    if args.quic_version != 1 {
        return Err("quinn speaks version 1 only".into());
    }
    let target = Target::parse(&args.urls[0])?;
    let address = target.address()?;
    let mut tls = tls::client(&args.ca, b"h3")?;
    tls.enable_early_data = args.again == Some(Again::Early);
    let endpoint = client_endpoint(address, tls, quinn::TransportConfig::default())?;
    for number in 1..=args.connections() {
        let connecting = endpoint.connect(address, &target.host)?;
        let connection = if number > 1 && args.again == Some(Again::Early) {
            let early = connecting.into_0rtt().map_err(|_| "no session that permits early data")?;
            early.0
        } else {
            connecting.await?
        };
        fetch_all(&args, &endpoint, connection, &number.to_string()).await?;
    }
    endpoint.wait_idle().await;
    Ok(())
}

/// Fetches all URLs over `connection`, which ends then.
async fn fetch_all(
    args: &ClientArgs,
    endpoint: &quinn::Endpoint,
    connection: quinn::Connection,
    name: &str,
) -> Result<()> {
    let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection.clone())).await?;
    let drive = tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    let directory = &args.output_dir;
    let mut fetches = futures::stream::iter(&args.urls)
        .map(move |url| {
            let mut requests = requests.clone();
            let connection = connection.clone();
            async move {
                let mut stream = requests.send_request(http::Request::get(url.as_str()).body(())?).await?;
                stream.finish().await?;
                let status = stream.recv_response().await?.status().as_u16();
                let mut body = BytesMut::new();
                while let Some(mut chunk) = stream.recv_data().await? {
                    let before = body.len();
                    body.extend_from_slice(&chunk.copy_to_bytes(chunk.remaining()));
                    let is_passed = |mark: usize| before < mark && body.len() >= mark;
                    if args.update_keys && is_passed(KEY_UPDATE_AFTER) {
                        connection.force_key_update();
                    }
                    if args.move_after.is_some_and(is_passed) {
                        endpoint.rebind(socket((args.move_to, 0).into())?)?;
                    }
                }
                Fetched::store(directory, url, status, name, &body)
            }
        })
        .buffer_unordered(args.parallel);
    while let Some(fetched) = fetches.next().await {
        fetched?.report()?;
    }
    // With the last request handle the driver closes the connection.
    drop(fetches);
    drive.await?;
    Ok(())
}

async fn server(args: ServerArgs) -> Result<()> {
    let mut tls = tls::server(&args.cert, &args.key, b"h3")?;
    tls.max_early_data_size = u32::MAX;
    let endpoint = server_endpoint(args.listen, tls, quinn::TransportConfig::default())?;
    print_ready(endpoint.local_addr()?)?;
    let root: Arc<Path> = args.root.into();
    while let Some(incoming) = endpoint.accept().await {
        if args.retry && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        let root = Arc::clone(&root);
        tokio::spawn(async move {
            if let Err(error) = serve_connection(incoming, root).await {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

async fn serve_connection(incoming: quinn::Incoming, root: Arc<Path>) -> Result<()> {
    let quic = h3_quinn::Connection::new(incoming.await?);
    let mut connection = h3::server::Connection::<_, Bytes>::new(quic).await?;
    while let Some(resolver) = connection.accept().await? {
        let root = Arc::clone(&root);
        tokio::spawn(async move {
            if let Err(error) = serve_request(resolver, &root).await {
                eprintln!("request: {error}");
            }
        });
    }
    Ok(())
}

async fn serve_request(
    resolver: h3::server::RequestResolver<h3_quinn::Connection, Bytes>,
    root: &Path,
) -> Result<()> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let body = read_served(root, request.uri().path());
    let status = if body.is_some() { 200 } else { 404 };
    let body = Bytes::from(body.unwrap_or_default());
    let response = http::Response::builder().status(status).header("content-length", body.len()).body(())?;
    stream.send_response(response).await?;
    stream.send_data(body).await?;
    Ok(stream.finish().await?)
}

async fn datagram_server(args: DatagramServerArgs) -> Result<()> {
    let tls = tls::server(&args.cert, &args.key, datagrams::ALPN)?;
    let endpoint = server_endpoint(args.listen, tls, quinn::TransportConfig::default())?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        tokio::spawn(async move {
            while let Ok(message) = connection.read_datagram().await {
                connection.send_datagram(message)?;
            }
            Ok::<(), quinn::SendDatagramError>(())
        });
    }
    Ok(())
}

async fn datagram_client(args: DatagramClientArgs) -> Result<()> {
    let tls = tls::client(&args.ca, datagrams::ALPN)?;
    let endpoint = client_endpoint(args.connect, tls, quinn::TransportConfig::default())?;
    let connection = endpoint.connect(args.connect, "localhost")?.await?;
    let mut exchange = Exchange::new(args.messages);
    while !exchange.is_over() {
        while let Some(message) = exchange.next_message() {
            connection.send_datagram(message.into())?;
        }
        exchange.on_echo(&connection.read_datagram().await?)?;
    }
    exchange.report()?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

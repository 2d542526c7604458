//! Posthaste itself, for the benches, and for the case `datagrams` of the interop matrix. (In its other cases it is the
//! `posthaste` command.)

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser as _;
use posthaste_endpoint::{
    ByteCount, ClientConfig, Connection, EarlyData, Endpoint, QlogDirectory, ReceiveBudget, RecvStream,
    SendStream, ServerConfig, TransportConfig, default_profile, named,
};
use posthaste_interop_peers::bulk::{self, PATTERN, Receipt};
use posthaste_interop_peers::contract::{
    Again, BulkClientArgs, BulkServerArgs, DatagramClientArgs, DatagramServerArgs, HandshakeClientArgs,
    IdleClientArgs, Mode, Ours, RequestClientArgs, Result, print_ready,
};
use posthaste_interop_peers::datagrams::{self, Exchange};
use posthaste_interop_peers::{requests, tls};

/// The windows of [`bulk::WINDOW`], everything else as the default profile has it.
const PROFILE: &str = r#"
description = "CUBIC with the benches' windows"
[credit.stream.fixed]
window = "16 MiB"
[credit.connection.fixed]
window = "16 MiB"
"#;

/// One thread, as all peers have: CPU per byte is compared, not parallelism.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Mode::parse() {
        Mode::BulkServer(args) => args.form.run(bulk_server(args)).await,
        Mode::BulkClient(args) => args.form.run(bulk_client(args)).await,
        Mode::RequestServer(args) => args.form.run(request_server(args)).await,
        Mode::RequestClient(args) => args.form.run(request_client(args)).await,
        Mode::HandshakeClient(args) => tokio::spawn(handshake_client(args)).await?,
        Mode::IdleClient(args) => idle_client(args).await,
        Mode::DatagramServer(args) => datagram_server(args).await,
        Mode::DatagramClient(args) => datagram_client(args).await,
        Mode::Client(_) | Mode::Server(_) => Err("use `posthaste get` and `posthaste serve`".into()),
    }
}

fn transport(udp_payload: u16) -> Result<Arc<TransportConfig>> {
    Ok(Arc::new(TransportConfig {
        max_datagram_size: usize::from(udp_payload),
        mtu_discovery: false,
        max_idle_timeout: bulk::IDLE_TIMEOUT,
        max_concurrent_bidi_streams: bulk::STREAMS.into(),
        // Room for windows of this size on all connections, as the other libraries grant them: clients would take less
        // from the 17th on.
        receive_budget: ReceiveBudget::new(ByteCount::new(1 << 40)),
        ..TransportConfig::new(posthaste_schemes::from_toml("bench", PROFILE)?)
    }))
}

fn client(ca: &Path, udp_payload: u16) -> Result<(Endpoint, ClientConfig)> {
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let config = ClientConfig::new(tls::client(ca, bulk::ALPN)?.into(), transport(udp_payload)?);
    Ok((endpoint, config))
}

/// So many connections to a server.
async fn connections(
    endpoint: &Endpoint,
    config: &ClientConfig,
    server: SocketAddr,
    count: u64,
) -> Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(connect(endpoint, config, server).await?);
    }
    Ok(connections)
}

async fn close(endpoint: &Endpoint, connections: Vec<Connection>) {
    for connection in connections {
        connection.close(0, b"");
    }
    endpoint.wait_idle().await;
}

async fn connect(endpoint: &Endpoint, config: &ClientConfig, server: SocketAddr) -> Result<Connection> {
    Ok(endpoint.connect(config, server, "localhost").await?)
}

async fn bulk_server(args: BulkServerArgs) -> Result<()> {
    let tls = tls::server(&args.cert, &args.key, bulk::ALPN)?;
    let config = ServerConfig::new(tls.into(), transport(args.form.udp_payload)?);
    let endpoint = Endpoint::server(args.listen, config)?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(connection) = endpoint.accept().await {
        if args.form.block_on {
            serve_one(&connection).await?;
        } else {
            tokio::spawn(serve_all(connection));
        }
    }
    Ok(())
}

/// Serves the only stream of a connection, in this task.
async fn serve_one(connection: &Connection) -> Result<()> {
    let (send, receive) = connection.accept_bi().await?;
    bulk_stream(send, receive).await?;
    connection.closed().await;
    Ok(())
}

/// Serves each stream of a connection in a task of its own.
async fn serve_all(connection: Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(async move {
            if let Err(error) = bulk_stream(send, receive).await {
                eprintln!("stream: {error}");
            }
        });
    }
}

async fn bulk_stream(mut send: SendStream, mut receive: RecvStream) -> Result<()> {
    let request = receive.read_to_end(8).await?;
    let mut left = u64::from_be_bytes(request.as_slice().try_into()?);
    while left > 0 {
        let length = left.min(PATTERN.len() as u64) as usize;
        send.write_bytes(Bytes::from_static(&PATTERN[..length])).await?;
        left -= length as u64;
    }
    send.finish();
    Ok(())
}

async fn bulk_client(args: BulkClientArgs) -> Result<()> {
    let (endpoint, config) = client(&args.ca, args.form.udp_payload)?;
    let connections = connections(&endpoint, &config, args.connect, args.connections).await?;
    bulk::run(&args, &connections, fetch).await?;
    close(&endpoint, connections).await;
    Ok(())
}

async fn fetch(connection: Connection, mut receipt: Receipt) -> Result<u64> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&receipt.wanted().to_be_bytes()).await?;
    send.finish();
    while let Some(chunk) = receive.read_chunk(usize::MAX).await? {
        receipt.add(&chunk)?;
    }
    receipt.end()
}

/// The calls of the other libraries, not those that open, write and finish at once.
async fn request_server(args: BulkServerArgs) -> Result<()> {
    let mut tls = tls::server(&args.cert, &args.key, bulk::ALPN)?;
    tls.max_early_data_size = if args.early { u32::MAX } else { 0 };
    let config = ServerConfig::new(tls.into(), transport(args.form.udp_payload)?);
    let endpoint = Endpoint::server(args.listen, config)?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::spawn(answer(send, receive));
            }
        });
    }
    Ok(())
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<()> {
    requests::check_request(&receive.read_to_end(requests::REQUEST.len()).await?)?;
    send.write_bytes(Bytes::from_static(&requests::REPLY)).await?;
    send.finish();
    Ok(())
}

async fn request_client(args: RequestClientArgs) -> Result<()> {
    let (endpoint, config) = client(&args.ca, args.form.udp_payload)?;
    let connections = connections(&endpoint, &config, args.connect, args.connections).await?;
    requests::run(&args, connections.clone(), request).await?;
    close(&endpoint, connections).await;
    Ok(())
}

async fn request(connection: Connection) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_bytes(Bytes::from_static(&requests::REQUEST)).await?;
    send.finish();
    requests::check_reply(&receive.read_to_end(requests::REPLY.len()).await?)
}

async fn handshake_client(args: HandshakeClientArgs) -> Result<()> {
    let mut tls = tls::client(&args.ca, bulk::ALPN)?;
    tls::resume(&mut tls, args.again);
    let config = ClientConfig::new(tls.into(), transport(bulk::UDP_PAYLOAD)?);
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let (again, server, own) = (args.again, args.connect, endpoint.clone());
    requests::handshakes(&args, move || {
        let (endpoint, config) = (own.clone(), config.clone());
        async move {
            let connection = endpoint.connect_early(&config, server, "localhost").await?;
            let both = [request(connection.clone()), request(connection.clone())];
            futures::future::try_join_all(both).await?;
            let early = connection.handshake().await?;
            let is_meant = match again {
                None => !connection.is_resumed(),
                Some(Again::Resumed) => connection.is_resumed() && early == EarlyData::None,
                Some(Again::Early) => early == EarlyData::Accepted,
            };
            Ok((is_meant, connection))
        }
    })
    .await?;
    endpoint.wait_idle().await;
    Ok(())
}

async fn idle_client(args: IdleClientArgs) -> Result<()> {
    let (endpoint, config) = client(&args.ca, bulk::UDP_PAYLOAD)?;
    let connections = connections(&endpoint, &config, args.connect, args.connections as u64).await?;
    print_ready(endpoint.local_addr()?)?;
    bulk::until_stdin_ends().await;
    let lost = connections.iter().filter(|connection| connection.close_reason().is_some()).count();
    if lost == 0 { Ok(()) } else { Err(format!("{lost} connections were lost meanwhile").into()) }
}

fn datagram_transport(ours: Ours) -> Result<TransportConfig> {
    let profile = ours.profile.map_or_else(|| Ok(default_profile()), |name| named(&name))?;
    let qlog = ours.qlog.map(|folder| Arc::new(QlogDirectory::new(folder)) as _);
    let max_datagram_frame_size = datagrams::MAX_FRAME.into();
    Ok(TransportConfig { max_datagram_frame_size, qlog, ..TransportConfig::new(profile) })
}

async fn datagram_server(args: DatagramServerArgs) -> Result<()> {
    let tls = tls::server(&args.cert, &args.key, datagrams::ALPN)?;
    let config = ServerConfig::new(tls.into(), datagram_transport(args.ours)?);
    let endpoint = Endpoint::server(args.listen, config)?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(connection) = endpoint.accept().await {
        while let Ok(message) = connection.receive_datagram().await {
            connection.send_datagram_wait(message).await?;
        }
    }
    Ok(())
}

async fn datagram_client(args: DatagramClientArgs) -> Result<()> {
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let tls = tls::client(&args.ca, datagrams::ALPN)?;
    let config = ClientConfig::new(tls.into(), datagram_transport(args.ours)?);
    let connection = connect(&endpoint, &config, args.connect).await?;
    let mut exchange = Exchange::new(args.messages);
    while !exchange.is_over() {
        while let Some(message) = exchange.next_message() {
            connection.send_datagram_wait(message.into()).await?;
        }
        exchange.on_echo(&connection.receive_datagram().await?)?;
    }
    exchange.report()?;
    connection.close(0, b"");
    endpoint.wait_idle().await;
    Ok(())
}

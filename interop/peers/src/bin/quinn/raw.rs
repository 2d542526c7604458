//! Raw streams over quinn, and over what has its interface: `crate::library` is the one that a program is about.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_interop_peers::bulk::{self, PATTERN, Receipt};
use posthaste_interop_peers::contract::{
    Again, BulkClientArgs, BulkServerArgs, HandshakeClientArgs, IdleClientArgs, Mode, RequestClientArgs,
    Result, any_towards, print_ready,
};
use posthaste_interop_peers::{requests, tls};

use crate::library as quinn;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};

/// Runs the modes without HTTP.
pub(crate) async fn run(mode: Mode) -> Result<()> {
    match mode {
        Mode::BulkServer(args) => args.form.run(bulk_server(args)).await,
        Mode::BulkClient(args) => args.form.run(bulk_client(args)).await,
        Mode::RequestServer(args) => args.form.run(request_server(args)).await,
        Mode::RequestClient(args) => args.form.run(request_client(args)).await,
        Mode::HandshakeClient(args) => tokio::spawn(handshake_client(args)).await?,
        Mode::IdleClient(args) => idle_client(args).await,
        _ => Err("this peer has no such mode".into()),
    }
}

pub(crate) fn client_endpoint(
    remote: SocketAddr,
    tls: rustls::ClientConfig,
    transport: quinn::TransportConfig,
) -> Result<quinn::Endpoint> {
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    quinn::with_client_config(endpoint(any_towards(remote), None)?, config)
}

pub(crate) fn server_endpoint(
    listen: SocketAddr,
    tls: rustls::ServerConfig,
    transport: quinn::TransportConfig,
) -> Result<quinn::Endpoint> {
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    endpoint(listen, Some(config))
}

fn endpoint(address: SocketAddr, server: Option<quinn::ServerConfig>) -> Result<quinn::Endpoint> {
    let runtime = Arc::new(quinn::TokioRuntime);
    Ok(quinn::Endpoint::new(quinn::EndpointConfig::default(), server, socket(address)?, runtime)?)
}

pub(crate) fn socket(address: SocketAddr) -> Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    let reference = socket2::SockRef::from(&socket);
    reference.set_recv_buffer_size(bulk::SOCKET_BUFFER)?;
    reference.set_send_buffer_size(bulk::SOCKET_BUFFER)?;
    Ok(socket)
}

fn bulk_transport(udp_payload: u16) -> Result<quinn::TransportConfig> {
    let mut transport = quinn::TransportConfig::default();
    let window = quinn::VarInt::from_u64(bulk::WINDOW)?;
    transport
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(bulk::WINDOW)
        .max_concurrent_bidi_streams(bulk::STREAMS.into())
        .initial_mtu(udp_payload)
        .mtu_discovery_config(None)
        .max_idle_timeout(Some(bulk::IDLE_TIMEOUT.try_into()?));
    Ok(transport)
}

async fn bulk_server(args: BulkServerArgs) -> Result<()> {
    let tls = tls::server(&args.cert, &args.key, bulk::ALPN)?;
    let endpoint = server_endpoint(args.listen, tls, bulk_transport(args.form.udp_payload)?)?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        if args.form.block_on {
            serve_one(&connection).await?;
        } else {
            tokio::spawn(serve_all(connection));
        }
    }
    Ok(())
}

/// Serves the only stream of a connection, in this task.
async fn serve_one(connection: &quinn::Connection) -> Result<()> {
    let (send, receive) = connection.accept_bi().await?;
    bulk_stream(send, receive).await?;
    connection.closed().await;
    Ok(())
}

/// Serves each stream of a connection in a task of its own.
async fn serve_all(connection: quinn::Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(async move {
            if let Err(error) = bulk_stream(send, receive).await {
                eprintln!("stream: {error}");
            }
        });
    }
}

async fn bulk_stream(mut send: quinn::SendStream, mut receive: quinn::RecvStream) -> Result<()> {
    let mut request = [0; 8];
    receive.read_exact(&mut request).await?;
    let mut left = u64::from_be_bytes(request);
    while left > 0 {
        let length = left.min(PATTERN.len() as u64) as usize;
        send.write_chunk(Bytes::from_static(&PATTERN[..length])).await?;
        left -= length as u64;
    }
    Ok(send.finish()?)
}

/// A client, and so many connections of its to a server.
async fn connected(
    ca: &Path,
    server: SocketAddr,
    udp_payload: u16,
    count: u64,
) -> Result<(quinn::Endpoint, Vec<quinn::Connection>)> {
    let endpoint = client_endpoint(server, tls::client(ca, bulk::ALPN)?, bulk_transport(udp_payload)?)?;
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(endpoint.connect(server, "localhost")?.await?);
    }
    Ok((endpoint, connections))
}

async fn close(endpoint: &quinn::Endpoint, connections: Vec<quinn::Connection>) {
    for connection in connections {
        connection.close(0u32.into(), b"");
    }
    endpoint.wait_idle().await;
}

async fn bulk_client(args: BulkClientArgs) -> Result<()> {
    let (endpoint, connections) =
        connected(&args.ca, args.connect, args.form.udp_payload, args.connections).await?;
    bulk::run(&args, &connections, fetch).await?;
    close(&endpoint, connections).await;
    Ok(())
}

async fn fetch(connection: quinn::Connection, mut receipt: Receipt) -> Result<u64> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&receipt.wanted().to_be_bytes()).await?;
    send.finish()?;
    while let Some(chunk) = quinn::read_chunk(&mut receive).await? {
        receipt.add(&chunk)?;
    }
    receipt.end()
}

async fn idle_client(args: IdleClientArgs) -> Result<()> {
    let count = args.connections as u64;
    let (endpoint, connections) = connected(&args.ca, args.connect, bulk::UDP_PAYLOAD, count).await?;
    print_ready(endpoint.local_addr()?)?;
    bulk::until_stdin_ends().await;
    let lost = connections.iter().filter(|connection| connection.close_reason().is_some()).count();
    if lost == 0 { Ok(()) } else { Err(format!("{lost} connections were lost meanwhile").into()) }
}

async fn request_server(args: BulkServerArgs) -> Result<()> {
    let mut tls = tls::server(&args.cert, &args.key, bulk::ALPN)?;
    tls.max_early_data_size = if args.early { u32::MAX } else { 0 };
    let endpoint = server_endpoint(args.listen, tls, bulk_transport(args.form.udp_payload)?)?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::spawn(answer(send, receive));
            }
        });
    }
    Ok(())
}

async fn answer(mut send: quinn::SendStream, mut receive: quinn::RecvStream) -> Result<()> {
    requests::check_request(&receive.read_to_end(requests::REQUEST.len()).await?)?;
    send.write_chunk(Bytes::from_static(&requests::REPLY)).await?;
    Ok(send.finish()?)
}

async fn request_client(args: RequestClientArgs) -> Result<()> {
    let (endpoint, connections) =
        connected(&args.ca, args.connect, args.form.udp_payload, args.connections).await?;
    requests::run(&args, connections.clone(), request).await?;
    close(&endpoint, connections).await;
    Ok(())
}

async fn request(connection: quinn::Connection) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_chunk(Bytes::from_static(&requests::REQUEST)).await?;
    send.finish()?;
    requests::check_reply(&receive.read_to_end(requests::REPLY.len()).await?)
}

/// The library tells of early data whether they were taken, and of other handshakes nothing.
async fn handshake_client(args: HandshakeClientArgs) -> Result<()> {
    let mut tls = tls::client(&args.ca, bulk::ALPN)?;
    tls::resume(&mut tls, args.again);
    let endpoint = client_endpoint(args.connect, tls, bulk_transport(bulk::UDP_PAYLOAD)?)?;
    let (again, server, own) = (args.again, args.connect, endpoint.clone());
    requests::handshakes(&args, move || {
        let connecting = own.connect(server, "localhost");
        async move {
            let connecting = connecting?;
            let (connection, accepted) = match again {
                Some(Again::Early) => match connecting.into_0rtt() {
                    Ok((connection, accepted)) => (connection, Some(accepted)),
                    Err(connecting) => (connecting.await?, None),
                },
                _ => (connecting.await?, None),
            };
            let both = [request(connection.clone()), request(connection.clone())];
            futures::future::try_join_all(both).await?;
            let is_early = match accepted {
                Some(accepted) => quinn::is_early(accepted).await,
                None => false,
            };
            Ok((is_early == (again == Some(Again::Early)), connection))
        }
    })
    .await?;
    endpoint.wait_idle().await;
    Ok(())
}

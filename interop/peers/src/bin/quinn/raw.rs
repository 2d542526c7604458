//! Raw streams over quinn, and over what has its interface: `crate::library` is the one that a program is about.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_interop_peers::bulk::{self, PATTERN, Receipt};
use posthaste_interop_peers::contract::{
    BulkClientArgs, BulkServerArgs, IdleClientArgs, Mode, RequestClientArgs, Result, any_towards, print_ready,
};
use posthaste_interop_peers::{requests, tls};

use crate::library as quinn;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};

/// Runs the modes without HTTP.
pub(crate) async fn run(mode: Mode) -> Result<()> {
    match mode {
        // In tasks: the runtime polls the future of `block_on` itself less often.
        Mode::BulkServer(args) => tokio::spawn(bulk_server(args)).await?,
        Mode::BulkClient(args) => tokio::spawn(bulk_client(args)).await?,
        Mode::RequestServer(args) => tokio::spawn(request_server(args)).await?,
        Mode::RequestClient(args) => tokio::spawn(request_client(args)).await?,
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

fn bulk_transport() -> Result<quinn::TransportConfig> {
    let mut transport = quinn::TransportConfig::default();
    let window = quinn::VarInt::from_u64(bulk::WINDOW)?;
    transport
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(bulk::WINDOW)
        .max_concurrent_bidi_streams(bulk::STREAMS.into())
        .initial_mtu(bulk::UDP_PAYLOAD)
        .mtu_discovery_config(None)
        .max_idle_timeout(Some(bulk::IDLE_TIMEOUT.try_into()?));
    Ok(transport)
}

async fn bulk_server(args: BulkServerArgs) -> Result<()> {
    let tls = tls::server(&args.cert, &args.key, bulk::ALPN)?;
    let endpoint = server_endpoint(args.listen, tls, bulk_transport()?)?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Err(error) = bulk_connection(incoming).await {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

async fn bulk_connection(incoming: quinn::Incoming) -> Result<()> {
    let connection = incoming.await?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let mut request = [0; 8];
        receive.read_exact(&mut request).await?;
        let mut left = u64::from_be_bytes(request);
        while left > 0 {
            let length = left.min(PATTERN.len() as u64) as usize;
            send.write_chunk(Bytes::from_static(&PATTERN[..length])).await?;
            left -= length as u64;
        }
        send.finish()?;
    }
    Ok(())
}

async fn bulk_client(args: BulkClientArgs) -> Result<()> {
    let endpoint = client_endpoint(args.connect, tls::client(&args.ca, bulk::ALPN)?, bulk_transport()?)?;
    let connection = endpoint.connect(args.connect, "localhost")?.await?;
    let mut receipt = Receipt::new(args.bytes);
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&args.bytes.to_be_bytes()).await?;
    send.finish()?;
    while let Some(chunk) = quinn::read_chunk(&mut receive).await? {
        receipt.add(&chunk)?;
    }
    receipt.finish()?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn idle_client(args: IdleClientArgs) -> Result<()> {
    let endpoint = client_endpoint(args.connect, tls::client(&args.ca, bulk::ALPN)?, bulk_transport()?)?;
    let mut connections = Vec::new();
    for _ in 0..args.connections {
        connections.push(endpoint.connect(args.connect, "localhost")?.await?);
    }
    print_ready(endpoint.local_addr()?)?;
    bulk::until_stdin_ends().await;
    let lost = connections.iter().filter(|connection| connection.close_reason().is_some()).count();
    if lost == 0 { Ok(()) } else { Err(format!("{lost} connections were lost meanwhile").into()) }
}

async fn request_server(args: BulkServerArgs) -> Result<()> {
    let tls = tls::server(&args.cert, &args.key, bulk::ALPN)?;
    let endpoint = server_endpoint(args.listen, tls, bulk_transport()?)?;
    print_ready(endpoint.local_addr()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        tokio::spawn(async move {
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
    let endpoint = client_endpoint(args.connect, tls::client(&args.ca, bulk::ALPN)?, bulk_transport()?)?;
    let connection = endpoint.connect(args.connect, "localhost")?.await?;
    let own = connection.clone();
    requests::run(&args, move || {
        let connection = own.clone();
        async move {
            let (mut send, mut receive) = connection.open_bi().await?;
            send.write_chunk(Bytes::from_static(&requests::REQUEST)).await?;
            send.finish()?;
            requests::check_reply(&receive.read_to_end(requests::REPLY.len()).await?)
        }
    })
    .await?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

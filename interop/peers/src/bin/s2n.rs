//! s2n-quic on s2n-tls, as its users get it on Linux: for the benches.
//!
//! Its endpoint runs in a task of its own, whatever `--block-on` says; its API has no early data.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use clap::Parser as _;
use posthaste_interop_peers::bulk::{self, PATTERN, Receipt};
use posthaste_interop_peers::contract::{
    BulkClientArgs, BulkServerArgs, Form, Mode, RequestClientArgs, Result, print_ready,
};
use posthaste_interop_peers::requests;
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::congestion_controller::Cubic;
use s2n_quic::provider::io::tokio::Provider as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::default as tls;
use s2n_quic::stream::{BidirectionalStream, ReceiveStream};
use s2n_quic::{Client, Connection, Server};

/// Bytes of the headers of IPv4 and UDP, which this library counts in the MTU.
const HEADERS: u16 = 28;

/// One thread, as all peers have: CPU per byte is compared, not parallelism.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Mode::parse() {
        Mode::BulkServer(args) => args.form.run(bulk_server(args)).await,
        Mode::BulkClient(args) => args.form.run(bulk_client(args)).await,
        Mode::RequestServer(args) => args.form.run(request_server(args)).await,
        Mode::RequestClient(args) => args.form.run(request_client(args)).await,
        _ => Err("this peer has no such mode".into()),
    }
}

fn limits() -> Result<Limits> {
    Ok(Limits::new()
        .with_data_window(bulk::WINDOW)?
        .with_bidirectional_local_data_window(bulk::WINDOW)?
        .with_bidirectional_remote_data_window(bulk::WINDOW)?
        .with_max_send_buffer_size(u32::try_from(bulk::WINDOW)?)?
        .with_max_open_local_bidirectional_streams(bulk::STREAMS.into())?
        .with_max_open_remote_bidirectional_streams(bulk::STREAMS.into())?
        .with_max_idle_timeout(bulk::IDLE_TIMEOUT)?)
}

fn io(address: SocketAddr, udp_payload: u16) -> Result<Io> {
    let mtu = udp_payload.saturating_add(HEADERS);
    Ok(Io::builder()
        .with_receive_address(address)?
        .with_recv_buffer_size(bulk::SOCKET_BUFFER)?
        .with_send_buffer_size(bulk::SOCKET_BUFFER)?
        .with_max_mtu(mtu)?
        .with_initial_mtu(mtu)?
        .build()?)
}

fn server(args: &BulkServerArgs) -> Result<Server> {
    let tls = tls::Server::builder()
        .with_application_protocols([bulk::ALPN].iter())?
        .with_certificate(args.cert.as_path(), args.key.as_path())?
        .build()?;
    let server = Server::builder()
        .with_tls(tls)?
        .with_io(io(args.listen, args.form.udp_payload)?)?
        .with_limits(limits()?)?
        .with_congestion_controller(Cubic::default())?
        .start()?;
    print_ready(server.local_addr()?)?;
    Ok(server)
}

/// A client, and so many connections of its to a server.
async fn connected(
    ca: &std::path::Path,
    remote: SocketAddr,
    form: Form,
    count: u64,
) -> Result<(Client, Vec<Handle>)> {
    let tls = tls::Client::builder()
        .with_application_protocols([bulk::ALPN].iter())?
        .with_certificate(ca)?
        .build()?;
    let client = Client::builder()
        .with_tls(tls)?
        .with_io(io((Ipv4Addr::UNSPECIFIED, 0).into(), form.udp_payload)?)?
        .with_limits(limits()?)?
        .with_congestion_controller(Cubic::default())?
        .start()?;
    let mut connections = Vec::new();
    for _ in 0..count {
        let connection = client.connect(Connect::new(remote).with_server_name("localhost")).await?;
        let (handle, _) = connection.split();
        connections.push(handle);
    }
    Ok((client, connections))
}

async fn close(mut client: Client, connections: Vec<Handle>) -> Result<()> {
    for connection in connections {
        connection.close(0u32.into());
    }
    Ok(client.wait_idle().await?)
}

/// Serves each stream of each connection in a task of its own.
async fn serve<F>(mut server: Server, answer: fn(BidirectionalStream) -> F)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    while let Some(connection) = server.accept().await {
        tokio::spawn(serve_all(connection, answer));
    }
}

async fn serve_all<F>(mut connection: Connection, answer: fn(BidirectionalStream) -> F)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(answer(stream));
    }
}

async fn bulk_server(args: BulkServerArgs) -> Result<()> {
    serve(server(&args)?, bulk_stream).await;
    Ok(())
}

async fn bulk_stream(stream: BidirectionalStream) -> Result<()> {
    let (receive, mut send) = stream.split();
    let request = read_to_end(receive, 8).await?;
    let mut left = u64::from_be_bytes(request.as_slice().try_into()?);
    while left > 0 {
        let length = left.min(PATTERN.len() as u64) as usize;
        send.send(Bytes::from_static(&PATTERN[..length])).await?;
        left -= length as u64;
    }
    Ok(send.finish()?)
}

async fn bulk_client(args: BulkClientArgs) -> Result<()> {
    let (client, connections) = connected(&args.ca, args.connect, args.form, args.connections).await?;
    bulk::run(&args, &connections, fetch).await?;
    close(client, connections).await
}

async fn fetch(mut connection: Handle, mut receipt: Receipt) -> Result<u64> {
    let (mut receive, mut send) = connection.open_bidirectional_stream().await?.split();
    send.send(Bytes::copy_from_slice(&receipt.wanted().to_be_bytes())).await?;
    send.finish()?;
    while let Some(chunk) = receive.receive().await? {
        receipt.add(&chunk)?;
    }
    receipt.end()
}

/// All of a stream, which has at most so many bytes.
async fn read_to_end(mut receive: ReceiveStream, most: usize) -> Result<Vec<u8>> {
    let mut all = Vec::with_capacity(most);
    while let Some(chunk) = receive.receive().await? {
        if all.len() + chunk.len() > most {
            return Err(format!("more than {most} bytes").into());
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

async fn request_server(args: BulkServerArgs) -> Result<()> {
    serve(server(&args)?, answer).await;
    Ok(())
}

async fn answer(stream: BidirectionalStream) -> Result<()> {
    let (receive, mut send) = stream.split();
    requests::check_request(&read_to_end(receive, requests::REQUEST.len()).await?)?;
    send.send(Bytes::from_static(&requests::REPLY)).await?;
    Ok(send.finish()?)
}

async fn request_client(args: RequestClientArgs) -> Result<()> {
    let (client, connections) = connected(&args.ca, args.connect, args.form, args.connections).await?;
    requests::run(&args, connections.clone(), request).await?;
    close(client, connections).await
}

async fn request(mut connection: Handle) -> Result<()> {
    let (receive, mut send) = connection.open_bidirectional_stream().await?.split();
    send.send(Bytes::from_static(&requests::REQUEST)).await?;
    send.finish()?;
    requests::check_reply(&read_to_end(receive, requests::REPLY.len()).await?)
}

//! A server that does what clients must not be harmed by, for `cargo xtask hostile`: it answers `/part` with a 206 that
//! nobody has asked for, and opens as many unidirectional streams of unknown types as the client permits.
//!
//! `careless IDENTITY`, a PEM file with a certificate and its key. It prints `ready ADDRESS`, and for each connection `streams N`.

use std::net::Ipv4Addr;

use futures::FutureExt as _;
use http::{StatusCode, header};
use posthaste_endpoint::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use posthaste_endpoint::{
    Connection, Endpoint, RecvStream, SendStream, ServerConfig, default_transport, tls,
};
use posthaste_http::ALPN;
use posthaste_http3::{MessageKind, MessageReader, Part, Settings, encode};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// A type that means nothing (RFC 9114 section 6.2.3).
const RESERVED: &[u8] = &[0x21];
/// What each response has in it.
const CONTENT: &[u8] = b"0123456789";
/// Bytes of a request, at most.
const MOST: usize = 100_000;

/// Answers one request.
async fn answer(mut send: SendStream, mut recv: RecvStream) -> Result<()> {
    let mut asked = recv.read_to_end(MOST).await?.into();
    let mut reader = MessageReader::new(MessageKind::Request, MOST as u64);
    let Some(Part::Request(head)) = reader.next(&mut asked)? else { return Err("no request".into()) };
    let is_part = head.uri().path() == "/part";
    let response = if is_part {
        let response = http::Response::builder().status(StatusCode::PARTIAL_CONTENT);
        response.header(header::CONTENT_RANGE, "bytes 0-9/1000").body(())?
    } else {
        http::Response::new(())
    };
    let mut message = encode::response(&response);
    encode::data_header(&mut message, CONTENT.len() as u64);
    message.extend_from_slice(CONTENT);
    send.write_bytes(message.into()).await?;
    send.finish();
    Ok(())
}

async fn serve(connection: Connection) -> Result<()> {
    let mut streams = vec![connection.open_uni().await?];
    for control in &mut streams {
        control.write_all(encode::control_stream(&Settings::default(), None).as_ref()).await?;
    }
    while let Some(opened) = connection.open_uni().now_or_never() {
        let mut stream = opened?;
        stream.write_all(RESERVED).await?;
        streams.push(stream);
    }
    println!("streams {}", streams.len() - 1);
    loop {
        let (send, recv) = connection.accept_bi().await?;
        answer(send, recv).await?;
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let identity = std::env::args().nth(1).ok_or("careless IDENTITY")?;
    let chain = vec![CertificateDer::from_pem_file(&identity)?];
    let tls = tls::server_config(chain, PrivateKeyDer::from_pem_file(&identity)?, &[ALPN])?;
    let config = ServerConfig::new(tls, default_transport());
    let endpoint = Endpoint::server((Ipv4Addr::LOCALHOST, 0).into(), config)?;
    println!("ready {}", endpoint.local_addr()?);
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(serve(connection));
    }
    Ok(())
}

//! Messages that may be lost: a player sends its position 50 times a second, and old positions are of no use.
//!
//! `cargo run -p posthaste-examples --example datagrams`

use std::time::Duration;

use posthaste_endpoint::{
    Bytes, ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, default_transport, rustls, tls,
};
use tokio::time::{interval, timeout};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const PROTOCOL: &[u8] = b"positions";
const COUNT: u32 = 50;

/// Takes messages of any size that fits into a packet. Without this setting an end takes none.
fn transport() -> TransportConfig {
    TransportConfig { max_datagram_frame_size: 65_535, ..default_transport() }
}

#[tokio::main]
async fn main() -> Result<()> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;
    let tls = tls::server_config(vec![identity.cert.into()], key, &[PROTOCOL])?;
    let server = Endpoint::server("127.0.0.1:0".parse()?, ServerConfig::new(tls, transport()))?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(answer(connection));
        }
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::new(tls::client_config_with_roots(roots, &[PROTOCOL])?, transport());
    let connection = client.connect(&config, address, "localhost").await?;
    // Depends on the path: one message is one packet.
    println!("messages of {} bytes fit", connection.max_datagram_size().ok_or("the server takes none")?);

    let listening = tokio::spawn(listen(connection.clone()));
    let mut ticks = interval(Duration::from_millis(20));
    for number in 0..COUNT {
        ticks.tick().await;
        // Never waits: if the path is slow, the oldest messages that wait are dropped for this one. A sender that must not
        // lose messages here uses `send_datagram_wait`.
        connection.send_datagram(Bytes::copy_from_slice(&number.to_be_bytes()))?;
    }
    let answers = listening.await??;

    let stats = connection.stats().datagrams;
    println!("{} sent, {} dropped before that, {answers} answered", stats.sent, stats.dropped_unsent);
    connection.close(0, b"done");
    client.wait_idle().await;
    Ok(())
}

/// Counts answers to the last position, or until none has come for a second: whether messages arrive is not promised.
async fn listen(connection: Connection) -> Result<u32> {
    let mut answers = 0;
    while let Ok(message) = timeout(Duration::from_secs(1), connection.receive_datagram()).await {
        answers += 1;
        if message?.as_ref() == (COUNT - 1).to_be_bytes().as_slice() {
            break;
        }
    }
    Ok(answers)
}

/// Sends each message back.
async fn answer(connection: Connection) {
    while let Ok(message) = connection.receive_datagram().await {
        if let Err(error) = connection.send_datagram(message) {
            println!("no answer: {error}");
        }
    }
}

#[test]
fn it_runs_to_its_end() {
    main().unwrap();
}

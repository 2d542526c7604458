//! A server that sends back what it receives, and its client, in one process.
//!
//! `cargo run -p posthaste-examples --example echo`

use std::time::Duration;

use posthaste_endpoint::{
    ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, default_transport, named, rustls, tls,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The application protocol (ALPN) that both ends name.
const PROTOCOL: &[u8] = b"echo";

#[tokio::main]
async fn main() -> Result<()> {
    // A certificate that both ends know.
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;

    let tls = tls::server_config(vec![identity.cert.into()], key, &[PROTOCOL])?;
    let server = Endpoint::server("127.0.0.1:0".parse()?, ServerConfig::new(tls, default_transport()))?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(serve(connection));
        }
    });

    // A client with another congestion control, which keeps its connection alive while it is idle.
    let transport =
        TransportConfig { keep_alive: Some(Duration::from_secs(10)), ..TransportConfig::new(named("bbr")?) };
    let tls = tls::client_config_with_roots(roots, &[PROTOCOL])?;
    let config = ClientConfig::new(tls, transport);
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = client.connect(&config, address, "localhost").await?;

    // Streams are cheap: one per message.
    for message in ["hello", "how are you", "goodbye"] {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(message.as_bytes()).await?;
        send.finish();
        let answer = recv.read_to_end(1024).await?;
        assert_eq!(answer, message.as_bytes());
        println!("{}", String::from_utf8_lossy(&answer));
    }

    connection.close(0, b"done");
    client.wait_idle().await;
    Ok(())
}

/// Answers each stream until the client closes the connection.
async fn serve(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            // Data goes back as it comes; a client that does not read slows itself.
            while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
                if send.write_bytes(chunk).await.is_err() {
                    return;
                }
            }
            send.finish();
        });
    }
    println!("the connection is over: {}", connection.closed().await);
}

#[test]
fn it_runs_to_its_end() {
    main().unwrap();
}

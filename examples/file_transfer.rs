//! Sends a file over QUIC, with a progress line and the connection's figures.
//!
//! `cargo run -p posthaste-examples --example file_transfer -- [FILE]`; without a file it makes one of 10 MB.

use std::path::{Path, PathBuf};

use posthaste_endpoint::{ClientConfig, Endpoint, ServerConfig, bytes, default_transport, rustls, tls};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const PROTOCOL: &[u8] = b"file";

/// Bytes read from the disk at once.
const CHUNK: usize = 64 * 1024;

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let given = std::env::args_os().nth(1).map(PathBuf::from).filter(|path| path.is_file());
    let source = if let Some(file) = given {
        file
    } else {
        let made = folder.path().join("source");
        let content: Vec<u8> = (0..10_000_000_u32).map(|index| (index >> 9) as u8).collect();
        std::fs::write(&made, content)?;
        made
    };
    let copy = folder.path().join("copy");

    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;
    let tls = tls::server_config(vec![identity.cert.into()], key, &[PROTOCOL])?;
    let server = Endpoint::server("127.0.0.1:0".parse()?, ServerConfig::new(tls, default_transport()))?;
    let address = server.local_addr()?;
    let receiving = tokio::spawn({
        let copy = copy.clone();
        async move { receive(&server, &copy).await }
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::new(tls::client_config_with_roots(roots, &[PROTOCOL])?, default_transport());
    let connection = client.connect(&config, address, "localhost").await?;
    let mut stream = connection.open_uni().await?;
    let mut file = File::open(&source).await?;
    loop {
        // The buffer goes to the transport as it is, so each chunk has its own.
        let mut buffer = bytes::BytesMut::with_capacity(CHUNK);
        if file.read_buf(&mut buffer).await? == 0 {
            break;
        }
        stream.write_bytes(buffer.freeze()).await?;
    }
    stream.finish();
    // The receiver's transport has everything; closing earlier could cut the end off.
    stream.acknowledged().await?;

    let stats = connection.stats();
    connection.close(0, b"done");
    client.wait_idle().await;
    let received = receiving.await??;
    println!("{received} bytes in {} datagrams, {} packets lost", stats.sent.datagrams, stats.packets_lost);
    assert!(std::fs::read(&source)? == std::fs::read(&copy)?, "the copy differs");
    Ok(())
}

/// Writes the first stream of the first connection into `copy`.
async fn receive(server: &Endpoint, copy: &Path) -> Result<u64> {
    let connection = server.accept().await.ok_or("the endpoint has stopped")?;
    let mut stream = connection.accept_uni().await?;
    // Data comes in pieces of a datagram; the disk gets larger ones.
    let mut file = BufWriter::with_capacity(CHUNK, File::create(copy).await?);
    let mut received = 0;
    // An error here means that the file is not whole: only `None` is the end.
    let mut chunks = [const { bytes::Bytes::new() }; 32];
    while let Some(filled) = stream.read_chunks(&mut chunks).await? {
        for chunk in &chunks[..filled] {
            file.write_all(chunk).await?;
            received += chunk.len() as u64;
        }
    }
    file.flush().await?;
    // The sender closes, once it knows that everything has arrived.
    connection.closed().await;
    Ok(received)
}

#[test]
fn it_runs_to_its_end() {
    main().unwrap();
}

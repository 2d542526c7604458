//! An HTTP/3 client: a GET, a HEAD, an upload that streams, and requests side by side on one connection.
//!
//! `cargo run -p posthaste-examples --example http3_client`; it starts the server that it asks.

use std::time::Duration;

use posthaste_http::endpoint::{ClientConfig, Endpoint, ServerConfig, default_transport, rustls, tls};
use posthaste_http::http::{Method, Request, StatusCode};
use posthaste_http::{ALPN, Body, Client, ClientOptions, serve, service_fn, text};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;
    let tls = tls::server_config(vec![identity.cert.into()], key, &[ALPN])?;
    let endpoint = Endpoint::server("127.0.0.1:0".parse()?, ServerConfig::new(tls, default_transport()))?;
    let origin = format!("https://localhost:{}", endpoint.local_addr()?.port());
    tokio::spawn(serve(endpoint, service_fn(answer)).run());

    // `rustls-platform-verifier` in place of `roots` trusts what the system trusts.
    let quic = ClientConfig::new(tls::client_config_with_roots(roots, &[ALPN])?, default_transport());
    let options = ClientOptions { idle_timeout: Duration::from_secs(10), ..ClientOptions::new(quic) };
    let client = Client::new(options);

    let mut response = client.get(&format!("{origin}/hello").parse()?).await?;
    println!("{} after {:?}", response.status(), response.first_byte());
    while let Some(chunk) = response.chunk().await? {
        print!("{}", String::from_utf8_lossy(&chunk));
    }
    let response = client.head(&format!("{origin}/hello").parse()?).await?;
    println!("a GET would bring {:?} bytes", response.content_length());

    // The body is made while it is sent, and waits for a server that is slow.
    let (feed, body) = Body::channel();
    tokio::spawn(async move {
        for line in 0..1000 {
            feed.send(format!("line {line}\n")).await?;
        }
        feed.finish().await
    });
    let mut response = client.send(Request::put(format!("{origin}/lines")).body(body)?).await?;
    assert_eq!(response.status(), StatusCode::OK);
    let answer = response.chunk().await?.unwrap_or_default();
    print!("{}", String::from_utf8_lossy(&answer));

    // Requests share the connection of their origin.
    let requests = (0..20).map(|number| {
        let (client, uri) = (client.clone(), format!("{origin}/{number}").parse());
        tokio::spawn(
            async move { client.get(&uri?).await.map(|response| response.status()).map_err(Box::from) },
        )
    });
    for request in requests.collect::<Vec<_>>() {
        let status: Result<StatusCode> = request.await?;
        assert_eq!(status?, StatusCode::OK);
    }
    for connection in client.connections() {
        println!("{}: handshake {:?}", connection.origin, connection.handshake);
    }
    client.close().await;
    Ok(())
}

/// Counts the lines of an upload, and greets otherwise.
async fn answer(request: posthaste_http::Request) -> posthaste_http::Response {
    if request.method() != Method::PUT {
        return text(StatusCode::OK, request.uri().path());
    }
    let mut lines = 0;
    let mut body = request.into_body();
    loop {
        match body.chunk().await {
            Ok(Some(chunk)) => lines += chunk.split(|byte| *byte == b'\n').count() - 1,
            Ok(None) => return text(StatusCode::OK, &format!("{lines} lines")),
            // What came is not the whole.
            Err(error) => return text(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

#[test]
fn it_runs_to_its_end() {
    main().unwrap();
}

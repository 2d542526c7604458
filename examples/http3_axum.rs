//! An axum application over HTTP/3.
//!
//! `cargo run -p posthaste-examples --example http3_axum` asks the server a few things and ends; with
//! `-- 127.0.0.1:4433` it serves there until Ctrl-C, with a certificate that clients must be told to trust.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path};
use axum::routing::{get, post};
use posthaste_http::endpoint::{ClientConfig, Endpoint, ServerConfig, default_transport, rustls, tls};
use posthaste_http::http::{self, StatusCode};
use posthaste_http::{ALPN, Client, ClientOptions, Peer, StaticFiles, serve};
use tokio::sync::oneshot;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let listen: Option<SocketAddr> = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;
    let tls = tls::server_config(vec![identity.cert.into()], key, &[ALPN])?;

    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("hello.txt"), "a file\n")?;
    let application = Router::new()
        .route("/", get(async || "an axum application over HTTP/3\n"))
        .route("/hello/{name}", get(async |Path(name): Path<String>| format!("hello, {name}\n")))
        .route("/you", get(async |Extension(peer): Extension<Peer>| format!("{}\n", peer.address)))
        // Bodies stream both ways: this answers before the upload has ended.
        .route("/echo", post(async |body: Body| body))
        .nest_service("/files", StaticFiles::new(folder.path(), false)?);

    let config = ServerConfig::new(tls, default_transport());
    let endpoint = Endpoint::server(listen.unwrap_or_else(|| ([127, 0, 0, 1], 0).into()), config)?;
    let origin = format!("https://localhost:{}", endpoint.local_addr()?.port());
    println!("listening on {origin}");
    let (stop, stopped) = oneshot::channel::<()>();
    let server = serve(endpoint, application.into_service()).until(async move {
        stopped.await.ok();
    });
    let server = tokio::spawn(server.run());

    if listen.is_some() {
        tokio::signal::ctrl_c().await?;
    } else {
        let quic = ClientConfig::new(tls::client_config_with_roots(roots, &[ALPN])?, default_transport());
        ask(&Client::new(ClientOptions::new(quic)), &origin).await?;
    }
    // GOAWAY, and the requests in progress finish.
    stop.send(()).ok();
    server.await?;
    Ok(())
}

async fn ask(client: &Client, origin: &str) -> Result<()> {
    for path in ["/", "/hello/world", "/you", "/files/hello.txt"] {
        let mut response = client.get(&format!("{origin}{path}").parse()?).await?;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        while let Some(chunk) = response.chunk().await? {
            print!("{path}: {}", String::from_utf8_lossy(&chunk));
        }
    }
    let upload = http::Request::post(format!("{origin}/echo")).body("there and back".into())?;
    let mut response = client.send(upload).await?;
    assert_eq!(response.chunk().await?.as_deref(), Some(b"there and back".as_slice()));
    let missing = client.get(&format!("{origin}/missing").parse()?).await?;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    client.close().await;
    Ok(())
}

#[test]
fn it_runs_to_its_end() {
    main().unwrap();
}

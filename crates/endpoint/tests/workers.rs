//! Several endpoints on one port, each in a thread of its own.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use posthaste_endpoint::{ClientConfig, Endpoint, ServerConfig, Worker, default_transport, tls};

use crate::common::{ALPN, bounded, identity};

/// Echoes every stream of every connection in a thread of its own, until the endpoint is stopped.
fn run(worker: Worker, started: mpsc::Sender<Endpoint>) -> JoinHandle<()> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = worker.start().unwrap();
            started.send(endpoint.clone()).unwrap();
            while let Some(connection) = endpoint.accept().await {
                tokio::spawn(async move {
                    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                        let said = recv.read_to_end(1000).await.unwrap();
                        send.write_all(&said).await.unwrap();
                        send.finish();
                    }
                });
            }
            endpoint.wait_idle().await;
        });
    })
}

async fn echo(connection: &posthaste_endpoint::Connection, word: &[u8]) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(word).await.unwrap();
    send.finish();
    assert_eq!(recv.read_to_end(1000).await.unwrap(), word);
}

/// Connections from many addresses meet both, stay with their endpoint as their clients move, and find the sessions of
/// whichever they met before.
#[tokio::test(flavor = "multi_thread")]
async fn connections_spread_and_keep_their_endpoint_when_clients_move() {
    let (server_tls, roots) = identity();
    let config = ServerConfig::new(server_tls, default_transport());
    let local = "127.0.0.1:0".parse().unwrap();
    let workers = Endpoint::workers(local, 2.try_into().unwrap(), config).unwrap();
    let address = workers[0].local_addr().unwrap();
    let (started, endpoints) = mpsc::channel();
    let threads: Vec<_> = workers.into_iter().map(|worker| run(worker, started.clone())).collect();
    let endpoints = [endpoints.recv().unwrap(), endpoints.recv().unwrap()];
    let client_tls = tls::client_config_with_roots(roots, ALPN).unwrap();
    let config = ClientConfig::new(client_tls, default_transport());
    let mut held = Vec::new();
    for _ in 0..24 {
        let client = Endpoint::client(local).unwrap();
        let connection = bounded(client.connect(&config, address, "localhost")).await.unwrap();
        bounded(echo(&connection, b"here")).await;
        client.rebind(local).unwrap();
        bounded(echo(&connection, b"and elsewhere")).await;
        held.push((client, connection));
    }
    let stats = endpoints.each_ref().map(Endpoint::stats);
    assert!(stats.iter().all(|stats| stats.accepted > 0), "{stats:?}");
    assert_eq!(stats[0].accepted + stats[1].accepted, 24, "no connection was begun twice");
    assert_eq!(stats[0].resets_sent + stats[1].resets_sent, 0);
    drop(held);
    for endpoint in endpoints {
        endpoint.close(0, b"over");
    }
    let ended = tokio::task::spawn_blocking(|| threads.into_iter().all(|thread| thread.join().is_ok()));
    assert!(bounded(ended).await.unwrap());
}

#[tokio::test]
async fn a_ready_socket_serves_and_one_that_is_none_is_refused() {
    let (server_tls, roots) = identity();
    let config = ServerConfig::new(server_tls, default_transport());
    let local: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    let socket = std::net::UdpSocket::bind(local).unwrap();
    let address = socket.local_addr().unwrap();
    let server = Endpoint::server_on(socket, config.clone()).unwrap();
    assert_eq!(server.local_addr().unwrap(), address);
    let client = Endpoint::client(local).unwrap();
    let client_tls = tls::client_config_with_roots(roots, ALPN).unwrap();
    let client_config = ClientConfig::new(client_tls, default_transport());
    let (connected, _accepted) = bounded(async {
        tokio::join!(client.connect(&client_config, address, "localhost"), server.accept())
    })
    .await;
    connected.unwrap();
    #[cfg(unix)]
    {
        let listener = std::net::TcpListener::bind(local).unwrap();
        let stream = std::net::UdpSocket::from(std::os::fd::OwnedFd::from(listener));
        let error = Endpoint::server_on(stream, config).unwrap_err();
        assert!(error.to_string().contains("UDP"), "{error}");
    }
}

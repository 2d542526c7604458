//! Several endpoints on one port, each in a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use posthaste_endpoint::{
    ClientConfig, CloseReason, Connection, Endpoint, ServerConfig, TransportConfig, Worker,
    default_transport, tls,
};

use crate::common::{ALPN, bounded, identity};

/// What has the thread of the worker that reads it stall.
const STALL: &[u8] = b"stall";

/// How far a stall is.
#[derive(Default)]
struct Stall {
    is_reached: AtomicBool,
    is_over: Mutex<bool>,
    over: Condvar,
}

/// Runs both workers.
fn start(workers: Vec<Worker>, stall: &Arc<Stall>) -> ([Endpoint; 2], Vec<JoinHandle<()>>) {
    let (started, endpoints) = mpsc::channel();
    let threads = workers.into_iter().map(|worker| run(worker, started.clone(), Arc::clone(stall))).collect();
    ([endpoints.recv().unwrap(), endpoints.recv().unwrap()], threads)
}

/// Stops them.
async fn end(endpoints: [Endpoint; 2], threads: Vec<JoinHandle<()>>) {
    for endpoint in endpoints {
        endpoint.close(0, b"over");
    }
    let ended = tokio::task::spawn_blocking(|| threads.into_iter().all(|thread| thread.join().is_ok()));
    assert!(bounded(ended).await.unwrap());
}

/// Echoes every stream of every connection in a thread of its own, until the endpoint is stopped.
fn run(worker: Worker, started: mpsc::Sender<Endpoint>, stall: Arc<Stall>) -> JoinHandle<()> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = worker.start().unwrap();
            started.send(endpoint.clone()).unwrap();
            while let Some(connection) = endpoint.accept().await {
                let stall = Arc::clone(&stall);
                tokio::spawn(async move {
                    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                        let said = recv.read_to_end(1000).await.unwrap();
                        if said == STALL {
                            stall.is_reached.store(true, Ordering::Relaxed);
                            let is_over = stall.is_over.lock().unwrap();
                            drop(stall.over.wait_while(is_over, |is_over| !*is_over).unwrap());
                        }
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
    let (endpoints, threads) = start(workers, &Arc::default());
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
    end(endpoints, threads).await;
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
    for (socket, reason) in sockets_of_other_kinds() {
        let error = Endpoint::server_on(std::net::UdpSocket::from(socket), config.clone()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// With a word of what is said about them.
#[cfg(unix)]
fn sockets_of_other_kinds() -> Vec<(std::os::fd::OwnedFd, &'static str)> {
    let local = "127.0.0.1:0";
    let connected = std::net::UdpSocket::bind(local).unwrap();
    connected.connect(connected.local_addr().unwrap()).unwrap();
    vec![
        (std::net::TcpListener::bind(local).unwrap().into(), "stream"),
        (std::os::unix::net::UnixDatagram::unbound().unwrap().into(), "over IP"),
        (connected.into(), "connected"),
    ]
}

/// One worker's thread does nothing any more: clients of the other are served as before, and those of the stalled one end
/// with an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stalls_holds_up_nobody_else() {
    const CLIENTS: usize = 24;
    let (server_tls, roots) = identity();
    let config = ServerConfig::new(server_tls, default_transport());
    let local = "127.0.0.1:0".parse().unwrap();
    let workers = Endpoint::workers(local, 2.try_into().unwrap(), config).unwrap();
    let address = workers[0].local_addr().unwrap();
    let stall = Arc::new(Stall::default());
    let (endpoints, threads) = start(workers, &stall);
    let client_tls = tls::client_config_with_roots(roots, ALPN).unwrap();
    let transport = TransportConfig { max_idle_timeout: Duration::from_secs(2), ..default_transport() };
    let config = ClientConfig::new(client_tls, transport);
    let mut held = Vec::new();
    for _ in 0..CLIENTS {
        let client = Endpoint::client(local).unwrap();
        held.push(bounded(client.connect(&config, address, "localhost")).await.unwrap());
    }
    let _unanswered = held[0].open_bi_with(STALL.into()).await.unwrap();
    while !stall.is_reached.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let visits: Vec<_> = held.into_iter().map(|connection| tokio::spawn(visit(connection))).collect();
    let mut served = 0;
    for visit in visits {
        served += u64::from(bounded(visit).await.unwrap());
    }
    let mut accepted = endpoints.each_ref().map(|endpoint| endpoint.stats().accepted);
    let mut fates = [served, CLIENTS as u64 - served];
    accepted.sort_unstable();
    fates.sort_unstable();
    assert_eq!(fates, accepted, "all clients of one worker were served, and none of the other's");
    assert!(fates[0] > 0, "{fates:?}");
    *stall.is_over.lock().unwrap() = true;
    stall.over.notify_all();
    end(endpoints, threads).await;
}

/// Whether the server answers; if not, the connection has ended for want of a sign of it.
async fn visit(connection: Connection) -> bool {
    let is_served = match connection.open_bi_with(b"are you there"[..].into()).await {
        Ok((_, mut recv)) => recv.read_to_end(1000).await.is_ok_and(|said| said == b"are you there"),
        Err(_) => false,
    };
    assert!(is_served || matches!(connection.closed().await, CloseReason::IdleTimeout));
    is_served
}

//! What outlives a connection, over real sockets: sessions, early data, address tokens, the server's secret.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{ALPN, bounded, identity};
use posthaste_endpoint::{
    ClientConfig, CloseReason, EarlyData, Endpoint, RetryPolicy, Secret, ServerConfig, SessionStore,
    TokenCache, tls,
};
use rustls::RootCertStore;

/// A server that takes early data, answers each stream with its own bytes, and tells with each answer whether the
/// handshake was still under way when it had read the question.
struct Server {
    endpoint: Endpoint,
    sessions: Arc<SessionStore>,
    config: ServerConfig,
    roots: RootCertStore,
}

impl Server {
    fn start(retry: RetryPolicy) -> Self {
        let (tls, roots) = identity();
        let sessions = Arc::new(SessionStore::new());
        let tls = tls::server_with_early_data(&tls, Arc::clone(&sessions) as _);
        let config = ServerConfig {
            retry,
            secret: Some(Secret([7; 32])),
            ..ServerConfig::new(tls, posthaste_endpoint::default_transport())
        };
        let endpoint = serve("127.0.0.1:0".parse().unwrap(), &config);
        Self { endpoint, sessions, config, roots }
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.local_addr().unwrap()
    }

    /// Ends the server without a word to anybody, and starts another at its address with these sessions.
    async fn restart(self, sessions: Arc<SessionStore>) -> Self {
        let address = self.address();
        self.endpoint.close(0, b"restart");
        self.endpoint.wait_idle().await;
        drop(self.endpoint);
        let tls = tls::server_with_early_data(&self.config.tls, Arc::clone(&sessions) as _);
        let config = ServerConfig { tls, ..self.config };
        // The system frees the port when the task of the endpoint has ended.
        let mut endpoint = None;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if let Ok(bound) = Endpoint::server(address, config.clone()) {
                endpoint = Some(bound);
                break;
            }
        }
        let endpoint = endpoint.expect("the port is free again");
        answer(endpoint.clone());
        Self { endpoint, sessions, config, roots: self.roots }
    }
}

fn serve(address: SocketAddr, config: &ServerConfig) -> Endpoint {
    let endpoint = Endpoint::server(address, config.clone()).unwrap();
    answer(endpoint.clone());
    endpoint
}

fn answer(endpoint: Endpoint) {
    tokio::spawn(async move {
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(async move {
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    let Ok(mut data) = recv.read_to_end(1 << 20).await else { continue };
                    data.push(u8::from(connection.is_handshaking()));
                    let _ = send.write_bytes(data.into()).await;
                    send.finish();
                }
            });
        }
    });
}

struct Visitor {
    endpoint: Endpoint,
    config: ClientConfig,
}

impl Visitor {
    fn new(server: &Server, tokens: &Arc<TokenCache>) -> Self {
        let tls = tls::client_config_with_roots(server.roots.clone(), ALPN).unwrap();
        let config =
            ClientConfig::new(tls::client_with_early_data(&tls), posthaste_endpoint::default_transport())
                .with_tokens(Arc::clone(tokens) as _);
        Self { endpoint: Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap(), config }
    }

    /// Asks one question as early as possible; what became of that, and whether the server had it before the handshake
    /// was complete.
    async fn ask(&self, address: SocketAddr, question: &[u8]) -> (EarlyData, bool) {
        let connection = self.endpoint.connect_early(&self.config, address, "localhost").await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(question).await.unwrap();
        send.finish();
        let mut answer = recv.read_to_end(1 << 20).await.unwrap();
        let was_handshaking = answer.pop() == Some(1);
        assert_eq!(answer, question);
        let early = connection.handshake().await.unwrap();
        assert!(!connection.is_handshaking());
        // Sessions and tokens come after the handshake.
        tokio::time::sleep(Duration::from_millis(100)).await;
        connection.close(0, b"");
        (early, was_handshaking)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_comes_back_is_answered_before_the_handshake_is_over() {
    bounded(async {
        let server = Server::start(RetryPolicy::default());
        let visitor = Visitor::new(&server, &Arc::default());
        let (early, _) = visitor.ask(server.address(), b"first").await;
        assert_eq!(early, EarlyData::None);
        for _ in 0..3 {
            // More than the first window: the rest follows in 1-RTT packets.
            let (early, _) = visitor.ask(server.address(), &vec![7; 20_000]).await;
            assert_eq!(early, EarlyData::Accepted);
        }
        // Whether the server has it before the handshake is complete depends on the machine's load here; the
        // transport's tests show that it can.
        let (early, _) = visitor.ask(server.address(), b"short").await;
        assert_eq!(early, EarlyData::Accepted);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_takes_early_data_if_it_has_its_sessions_and_otherwise_gets_all_again() {
    bounded(async {
        let server = Server::start(RetryPolicy::default());
        let visitor = Visitor::new(&server, &Arc::default());
        visitor.ask(server.address(), b"first").await;
        let kept = Arc::new(SessionStore::new());
        assert!(kept.import(&server.sessions.export()) > 0);
        let server = server.restart(kept).await;
        let (early, _) = visitor.ask(server.address(), b"second").await;
        assert_eq!(early, EarlyData::Accepted);
        let server = server.restart(Arc::new(SessionStore::new())).await;
        let (early, was_handshaking) = visitor.ask(server.address(), &vec![3; 50_000]).await;
        assert_eq!((early, was_handshaking), (EarlyData::Rejected, false));
        let (early, _) = visitor.ask(server.address(), b"fourth").await;
        assert_eq!(early, EarlyData::Accepted);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_kept_as_text_spares_the_next_process_the_retry() {
    bounded(async {
        let server = Server::start(RetryPolicy::Always);
        let tokens = Arc::new(TokenCache::new());
        Visitor::new(&server, &tokens).ask(server.address(), b"first").await;
        assert!(server.endpoint.stats().retries_sent > 0);
        let text = tokens.export();
        let server = server.restart(Arc::new(SessionStore::new())).await;
        let tokens = Arc::new(TokenCache::new());
        assert_eq!(tokens.import(&text), 1);
        Visitor::new(&server, &tokens).ask(server.address(), b"second").await;
        let stats = server.endpoint.stats();
        assert_eq!((stats.retries_sent, stats.validated_by_token), (0, 1));
        // The token was used up; the server has given another.
        assert_eq!(tokens.len(), 1);
        assert_ne!(tokens.export(), text);
    })
    .await;
}

/// A server that can be ended at a blow.
struct Mortal {
    end: tokio::sync::oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Mortal {
    /// Starts it in a runtime of one thread: what is dropped with that runs no more, so that nobody says goodbye.
    fn start(address: SocketAddr, config: ServerConfig) -> (Self, SocketAddr) {
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                tell.send(serve(address, &config).local_addr().unwrap()).unwrap();
                let _ = ended.await;
            });
        });
        (Self { end, thread }, told.recv().unwrap())
    }

    fn kill(self) {
        drop(self.end);
        self.thread.join().unwrap();
    }
}

#[test]
fn a_restarted_server_with_its_secret_resets_the_connections_of_before() {
    let (tls, roots) = identity();
    for (secret, is_reset) in [(Some(Secret([7; 32])), true), (None, false)] {
        let config = ServerConfig {
            secret,
            ..ServerConfig::new(Arc::clone(&tls), posthaste_endpoint::default_transport())
        };
        let (first, address) = Mortal::start("127.0.0.1:0".parse().unwrap(), config.clone());
        let here = tokio::runtime::Runtime::new().unwrap();
        let tls = tls::client_config_with_roots(roots.clone(), ALPN).unwrap();
        let connection = here.block_on(bounded(async {
            let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let connection = client
                .connect(
                    &ClientConfig::new(tls, posthaste_endpoint::default_transport()),
                    address,
                    "localhost",
                )
                .await
                .unwrap();
            // An answer comes after the handshake is confirmed: before that, long headers lead each datagram, and
            // nobody resets those.
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(b"there?").await.unwrap();
            send.finish();
            recv.read_to_end(100).await.unwrap();
            connection
        }));
        // The process of the server dies: nobody says goodbye.
        first.kill();
        let (second, _) = Mortal::start(address, config);
        let reason = here.block_on(bounded(async {
            let (mut send, _recv) = connection.open_bi().await.unwrap();
            send.write_all(&[1; 100]).await.unwrap();
            tokio::time::timeout(
                Duration::from_millis(if is_reset { 10_000 } else { 500 }),
                connection.closed(),
            )
            .await
        }));
        assert_eq!(reason.ok(), is_reset.then_some(CloseReason::StatelessReset));
        second.kill();
    }
}

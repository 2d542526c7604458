//! A socket that reports nothing but errors, under an endpoint at work.

use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;

use crate::{ClientConfig, Endpoint, ServerConfig, default_transport, tls};

/// A server and a client with a connection between them, and the word that the server echoes.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_reports_nothing_but_errors_is_replaced_and_its_connections_go_on() {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key: PrivateKeyDer<'static> = identity.signing_key.serialize_der().try_into().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone()).unwrap();
    let server_tls = tls::server_config(vec![identity.cert.into()], key, &[b"test"]).unwrap();
    let local = "127.0.0.1:0".parse().unwrap();
    let server = Endpoint::server(local, ServerConfig::new(server_tls, default_transport())).unwrap();
    let address = server.local_addr().unwrap();
    let client = Endpoint::client(local).unwrap();
    let client_tls = tls::client_config_with_roots(roots, &[b"test"]).unwrap();
    let config = ClientConfig::new(client_tls, default_transport());
    let echo = async {
        let connection = server.accept().await.unwrap();
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        while let Ok(Some(data)) = recv.read_chunk(100).await {
            send.write_all(&data).await.unwrap();
        }
        connection
    };
    let ask = async {
        let connection = client.connect(&config, address, "localhost").await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        for turn in 0..2_u8 {
            if turn > 0 {
                for end in [&server, &client] {
                    end.0.shared.socket().break_down();
                }
            }
            send.write_all(&[turn]).await.unwrap();
            assert_eq!(recv.read_chunk(100).await.unwrap().unwrap()[..], [turn]);
        }
        send.finish();
        connection
    };
    let both = async { tokio::join!(echo, ask) };
    tokio::time::timeout(Duration::from_secs(25), both).await.expect("a connection is stuck");
    assert_eq!(server.local_addr().unwrap(), address);
    for end in [&server, &client] {
        let stats = end.socket_stats();
        assert_eq!(stats.replacements, 1);
        assert!((65..1000).contains(&(stats.receive_errors + stats.send_errors)), "{stats:?}");
    }
}

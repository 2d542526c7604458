//! Groups over real sockets: who knows a group's name may join it, and what is wrong with a name harms nobody.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Pair, bounded, pattern};
use posthaste_endpoint::{
    ClientConfig, Connection, ConnectionError, Endpoint, GroupToken, ServerConfig, TransportConfig, tls,
};

fn profile(name: &str) -> TransportConfig {
    TransportConfig {
        profile: posthaste_schemes::named(name).unwrap(),
        ..posthaste_endpoint::default_transport()
    }
}

fn pair(server: &str, group_size: usize) -> Pair {
    let mut pair = Pair::with(profile(server), posthaste_endpoint::default_transport());
    pair.config.group_size = group_size;
    pair
}

/// Waits until the server coordinates so many connections with this one.
async fn members(server: &Connection, count: usize) {
    while server.group_members() != count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Data goes both ways: the connection is as good as ever.
async fn check_works(client: &Connection, server: &Connection) {
    let data = pattern(50_000, 7);
    let (mut send, mut recv) = client.open_bi().await.unwrap();
    let echo = async {
        let (mut send, mut recv) = server.accept_bi().await.unwrap();
        tokio::io::copy(&mut recv, &mut send).await.unwrap();
        send.finish();
        assert!(send.acknowledged().await.is_ok());
    };
    let ask = async {
        send.write_all(&data).await.unwrap();
        send.finish();
        recv.read_to_end(100_000).await.unwrap()
    };
    let (answer, ()) = tokio::join!(ask, echo);
    assert!(answer == data);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_with_the_name_become_one_group() {
    bounded(async {
        let pair = pair("mquic-cubic", 1);
        let (first, first_server) = pair.connect().await;
        assert_eq!(first.group_limit(), Some(8));
        let token = first.group_token().await.unwrap().expect("the server forms groups");
        let (second, second_server) = pair.connect().await;
        second.join_group(token).unwrap();
        members(&first_server, 2).await;
        members(&second_server, 2).await;
        check_works(&second, &second_server).await;
        second.close(0, b"");
        members(&first_server, 1).await;
        check_works(&first, &first_server).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_groups_says_so() {
    bounded(async {
        let pair = pair("cubic", 3);
        let (client, server) = pair.connect().await;
        assert_eq!((client.group_limit(), client.group_token().await.unwrap()), (None, None));
        assert!(matches!(client.join_group(GroupToken::default()), Err(ConnectionError::NotNow)));
        assert_eq!(server.group_members(), 1);
        check_works(&client, &server).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_ask_is_not_grouped() {
    bounded(async {
        let pair = pair("mquic-cubic", 0);
        let (client, server) = pair.connect().await;
        assert_eq!((client.group_limit(), client.group_token().await.unwrap()), (None, None));
        check_works(&client, &server).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_name_is_told_of_the_end() {
    bounded(async {
        let pair = pair("mquic-cubic", 1);
        let (client, _server) = pair.connect().await;
        client.close(3, b"");
        assert!(matches!(client.group_token().await, Err(ConnectionError::Closed(_))));
        assert!(matches!(client.join_group(GroupToken::default()), Err(ConnectionError::Closed(_))));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_foreign_and_replayed_names_are_passed_over() {
    bounded(async {
        let pair = pair("mquic-cubic", 3);
        let (victim, victim_server) = pair.connect().await;
        let good = victim.group_token().await.unwrap().unwrap();

        // Of a group that has ended.
        let (gone, gone_server) = pair.connect().await;
        let replayed = gone.group_token().await.unwrap().unwrap();
        gone.close(0, b"");
        gone_server.closed().await;
        // Of another server.
        let elsewhere = self::pair("mquic-cubic", 3);
        let (other, _other_server) = elsewhere.connect().await;
        let foreign = other.group_token().await.unwrap().unwrap();
        // Nearly right.
        let mut forged = good;
        forged[15] ^= 1;

        for token in [replayed, foreign, forged, GroupToken::default(), [0xff; 16]] {
            let (client, server) = pair.connect().await;
            client.join_group(token).unwrap();
            // What came with the name is served, so the server has seen it.
            check_works(&client, &server).await;
            assert_eq!((server.group_members(), victim_server.group_members()), (1, 1));
        }
        check_works(&victim, &victim_server).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_name_is_worth_nothing_at_another_address() {
    bounded(async {
        let pair = pair("mquic-cubic", 2);
        let (victim, victim_server) = pair.connect().await;
        let token = victim.group_token().await.unwrap().unwrap();
        let Ok(thief) = Endpoint::client("127.0.0.2:0".parse().unwrap()) else {
            // Not every system has more than one loopback address.
            return;
        };
        let (connection, server) =
            tokio::join!(thief.connect(&pair.config, pair.address, "localhost"), pair.server.accept());
        let (connection, server) = (connection.unwrap(), server.unwrap());
        connection.join_group(token).unwrap();
        check_works(&connection, &server).await;
        assert_eq!((server.group_members(), victim_server.group_members()), (1, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_has_eight_members_at_most() {
    bounded(async {
        let pair = pair("mquic-cubic", 16);
        let (first, first_server) = pair.connect().await;
        let token = first.group_token().await.unwrap().unwrap();
        let mut ends = Vec::new();
        for place in 1..10_usize {
            let (client, server) = pair.connect().await;
            client.join_group(token).unwrap();
            check_works(&client, &server).await;
            assert_eq!(first_server.group_members(), (place + 1).min(8));
            ends.push((client, server));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_a_restarted_server_is_worth_nothing() {
    bounded(async {
        let (server_tls, roots) = crate::common::identity();
        let start = |at: &str| {
            let config = ServerConfig::new(Arc::clone(&server_tls), profile("mquic-cubic"));
            Endpoint::server(at.parse().unwrap(), config).unwrap()
        };
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let tls = tls::client_config_with_roots(roots, crate::common::ALPN).unwrap();
        let config = ClientConfig::new(tls, posthaste_endpoint::default_transport()).with_group_size(2);
        let mut token = None;
        for _ in 0..2 {
            let server = start("127.0.0.1:0");
            let address = server.local_addr().unwrap();
            let (mine, its) = tokio::join!(client.connect(&config, address, "localhost"), server.accept());
            let (mine, its) = (mine.unwrap(), its.unwrap());
            if let Some(old) = token {
                mine.join_group(old).unwrap();
                check_works(&mine, &its).await;
                assert_eq!(its.group_members(), 1);
            }
            token = mine.group_token().await.unwrap();
        }
    })
    .await;
}

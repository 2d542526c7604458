//! The first act after everything has come to rest: both drivers sleep, and nothing but the act's own wake can go on.

use posthaste_transport::CloseReason;
use shuttle::future::{spawn, yield_now};

use crate::connection::Connection;
use crate::error::ReadError;
use crate::quiet::{hear, one_way};
use crate::scenes::{MESSAGE, Pair, explore, message};

/// Turns after which drivers that have nothing to do sleep: other tasks get two or three times as many meanwhile.
const TURNS: usize = 400;

async fn rest() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

/// Both ends of a connection, at rest.
async fn rested() -> (Pair, Connection, Connection) {
    let pair = Pair::new();
    let (client, server) = pair.both().await;
    rest().await;
    (pair, client, server)
}

async fn end(pair: Pair, client: &Connection) {
    client.close(0, b"");
    pair.rest().await;
}

#[test]
fn a_stop_at_rest_reaches_the_sender() {
    explore(21, || async {
        let (pair, client, server) = rested().await;
        let (send, mut recv) = one_way(&client, &server).await;
        rest().await;
        let stopped = send.stopped();
        recv.stop(5);
        assert_eq!(stopped.await.unwrap(), Some(5));
        end(pair, &client).await;
    });
}

#[test]
fn a_reset_at_rest_reaches_the_reader() {
    explore(22, || async {
        let (pair, client, server) = rested().await;
        let (mut send, mut recv) = one_way(&client, &server).await;
        rest().await;
        send.reset(6);
        let outcome = recv.read_chunk(1).await;
        assert!(matches!(outcome, Err(ReadError::Reset(6))), "{outcome:?}");
        end(pair, &client).await;
    });
}

#[test]
fn a_read_at_rest_tells_a_blocked_writer_of_the_credit() {
    explore(23, || async {
        let (pair, client, server) = rested().await;
        let (mut send, mut recv) = one_way(&client, &server).await;
        let writing = spawn(async move {
            send.write_all(&message(1)).await.unwrap();
            send
        });
        rest().await;
        hear(&mut recv, MESSAGE).await;
        let _send = writing.await.unwrap();
        end(pair, &client).await;
    });
}

#[test]
fn the_last_handle_of_a_connection_or_an_endpoint_that_goes_at_rest_ends_the_peers_connection() {
    explore(25, || async {
        let (pair, client, server) = rested().await;
        drop(server);
        let reason = client.closed().await;
        assert!(matches!(reason, CloseReason::PeerApplication { error_code: 0, .. }), "{reason:?}");
        drop(client);
        // A connection that nobody has accepted.
        let client = pair.connect().await;
        rest().await;
        let Pair { server, client: endpoint, .. } = pair;
        drop(server);
        let reason = client.closed().await;
        assert!(matches!(reason, CloseReason::PeerApplication { error_code: 0, .. }), "{reason:?}");
        endpoint.wait_idle().await;
    });
}

//! Single acts while everything else is at rest: the driver sleeps, so that only the wake that belongs to the act goes on.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use posthaste_transport::CloseReason;
use shuttle::future::{JoinHandle, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};

use crate::connection::Connection;
use crate::error::{ConnectionError, ReadError, WriteError};
use crate::network;
use crate::scenes::{MESSAGE, Pair, SERVER, explore, join, message};
use crate::stream::{RecvStream, SendStream};

const WORD: &[u8] = b"a word";

/// A word there and back: then both ends have nothing to do.
async fn talk(send: &mut SendStream, recv: &mut RecvStream) {
    send.write_all(WORD).await.unwrap();
    hear(recv, WORD.len()).await;
}

/// Reads this many bytes.
pub(crate) async fn hear(recv: &mut RecvStream, bytes: usize) {
    let mut heard = 0;
    while heard < bytes {
        heard += recv.read_chunk(usize::MAX).await.unwrap().unwrap().len();
    }
}

/// A stream from the client, of which the server has read what was sent.
pub(crate) async fn one_way(client: &Connection, server: &Connection) -> (SendStream, RecvStream) {
    let mut send = client.open_uni().await.unwrap();
    send.write_all(&[1]).await.unwrap();
    let mut recv = server.accept_uni().await.unwrap();
    recv.read_chunk(1).await.unwrap();
    (send, recv)
}

/// Answers every stream with what comes, until the connection is over.
fn answer(server: &Connection) -> JoinHandle<()> {
    let server = server.clone();
    spawn(async move {
        let mut echoes = Vec::new();
        while let Ok((mut send, mut recv)) = server.accept_bi().await {
            echoes.push(spawn(async move {
                while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
                    if send.write_bytes(chunk).await.is_err() {
                        break;
                    }
                }
            }));
        }
        join(echoes).await;
    })
}

/// A connection over which a word went there and back.
struct Rested {
    pair: Pair,
    client: Connection,
    server: Connection,
    send: SendStream,
    recv: RecvStream,
    answering: JoinHandle<()>,
}

impl Rested {
    async fn new() -> Self {
        let pair = Pair::new();
        let (client, server) = pair.both().await;
        let answering = answer(&server);
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        talk(&mut send, &mut recv).await;
        Self { pair, client, server, send, recv, answering }
    }

    /// Closes it. No task is at work afterwards: shuttle can drop none that holds a lock.
    async fn end(self) {
        self.client.close(0, b"");
        self.answering.await.unwrap();
        self.pair.rest().await;
    }
}

#[test]
fn each_word_goes_out_by_itself() {
    explore(11, || async {
        let mut rested = Rested::new().await;
        let Rested { client, server, send, recv, .. } = &mut rested;
        for _ in 0..3 {
            talk(send, recv).await;
            send.write_all_chunks(&mut [Bytes::from_static(b"a "), Bytes::from_static(b"word")])
                .await
                .unwrap();
            hear(recv, WORD.len()).await;
            client.send_datagram_wait(Bytes::from_static(b"there")).await.unwrap();
            assert_eq!(server.receive_datagram().await.unwrap(), "there");
            server.send_datagram_wait(Bytes::from_static(b"back")).await.unwrap();
            assert_eq!(client.receive_datagram().await.unwrap(), "back");
        }
        rested.end().await;
    });
}

#[test]
fn a_stream_that_is_stopped_reset_or_ended_without_data_says_so_at_once() {
    explore(12, || async {
        let rested = Rested::new().await;
        let (client, server) = (&rested.client, &rested.server);
        let (send, mut recv) = one_way(client, server).await;
        let stopped = send.stopped();
        recv.stop(5);
        assert_eq!(stopped.await.unwrap(), Some(5));
        let (mut send, mut recv) = one_way(client, server).await;
        send.reset(6);
        let outcome = recv.read_chunk(1).await;
        assert!(matches!(outcome, Err(ReadError::Reset(6))), "{outcome:?}");
        // More than may be open at once: each end that is read makes room for another. Dropped, a half would tell the peer
        // by itself.
        let mut held = Vec::new();
        for _ in 0..5 {
            let mut send = client.open_uni().await.unwrap();
            send.finish();
            let mut recv = server.accept_uni().await.unwrap();
            assert_eq!(recv.read_chunk(1).await.unwrap(), None);
            held.push(recv);
        }
        rested.end().await;
    });
}

#[test]
fn whoever_waits_for_a_streams_end_is_told_when_its_handle_or_its_connection_goes() {
    explore(13, || async {
        let rested = Rested::new().await;
        let (client, send) = (&rested.client, &rested.send);
        let dropped = client.open_uni().await.unwrap();
        let mut waits = Vec::new();
        let waiting = dropped.stopped();
        waits.push(spawn(async move { assert!(waiting.await.is_err()) }));
        talk_and_drop(client, dropped).await;
        join(waits.drain(..)).await;
        let (kept, acknowledged) = (send.stopped(), send.acknowledged());
        waits.push(spawn(async move { assert!(kept.await.is_err()) }));
        waits.push(spawn(async move { assert!(acknowledged.await.is_err()) }));
        client.close(7, b"");
        join(waits).await;
        rested.end().await;
    });
}

/// Drops a stream when those who wait for its end do so, more or less.
async fn talk_and_drop(client: &Connection, dropped: SendStream) {
    let (mut send, mut recv) = client.open_bi().await.unwrap();
    talk(&mut send, &mut recv).await;
    drop(dropped);
}

#[test]
fn a_close_reaches_the_peer_while_all_handles_are_held() {
    explore(14, || async {
        let rested = Rested::new().await;
        let Rested { pair, client, server, .. } = &rested;
        let (closing, told) = if thread_rng().r#gen() { (client, server) } else { (server, client) };
        let code = if thread_rng().r#gen() {
            closing.close(7, b"");
            7
        } else {
            let is_client = std::ptr::eq(closing, client);
            (if is_client { &pair.client } else { &pair.server }).close(8, b"");
            8
        };
        let reason = told.closed().await;
        assert!(
            matches!(reason, CloseReason::PeerApplication { error_code, .. } if error_code == code),
            "{reason:?}"
        );
        rested.end().await;
    });
}

#[test]
fn an_end_of_accepting_is_told_to_those_who_wait() {
    explore(16, || async {
        let pair = Pair::new();
        let server = pair.server.clone();
        let accepting = spawn(async move { server.accept().await.is_none() });
        if thread_rng().r#gen() {
            pair.server.stop_accepting();
        } else {
            pair.server.close(0, b"");
        }
        assert!(accepting.await.unwrap());
        pair.rest().await;
    });
}

#[test]
fn a_handshake_that_fails_does_not_keep_those_who_accept() {
    explore(15, || async {
        let pair = Pair::new();
        let server = pair.server.clone();
        let accepting = spawn(async move { server.accept().await.is_none() });
        // The certificate is for another name: the client says so, and the server's connection ends before anybody accepts it.
        let (client, config) = (pair.client.clone(), pair.config.clone());
        let has_failed = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&has_failed);
        let connecting = spawn(async move {
            assert!(client.connect(&config, SERVER.into(), "elsewhere").await.is_err());
            told.store(true, Ordering::SeqCst);
        });
        // Not before the handshake has begun: a server that accepts nothing does not answer, and the client would wait for its
        // timer, which never fires here.
        while pair.server.open_connections() == 0 && !has_failed.load(Ordering::SeqCst) {
            yield_now().await;
        }
        pair.server.stop_accepting();
        connecting.await.unwrap();
        assert!(accepting.await.unwrap());
        pair.rest().await;
    });
}

/// Polls a future once, on this task, which then has nothing more to do with it.
async fn begin<T>(
    mut future: Pin<Box<dyn Future<Output = T> + Send>>,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending(), "it must wait");
        Poll::Ready(())
    })
    .await;
    future
}

#[test]
fn a_wait_that_moves_to_another_task_wakes_that_one() {
    explore(17, || async {
        let pair = Pair::new();
        let (client, server) = pair.both().await;
        let (mut send, mut reader) = client.open_bi().await.unwrap();
        // The first poll of each is this task's, the others are theirs.
        let reading = begin(Box::pin(async move { hear(&mut reader, MESSAGE).await })).await;
        let writing = begin(Box::pin(async move {
            send.write_all(&message(1)).await.unwrap();
            send
        }))
        .await;
        let (accepts, closes) = (server.clone(), client.clone());
        let accepting = begin(Box::pin(async move { accepts.accept_uni().await.map(drop) })).await;
        let closing = begin(Box::pin(async move { drop(closes.closed().await) })).await;
        let tasks = [spawn(reading), spawn(async move { drop(accepting.await) })];
        let (writing, closing) = (spawn(writing), spawn(closing));
        let answering = answer(&server);
        client.open_uni().await.unwrap().finish();
        join(tasks).await;
        let _send = writing.await.unwrap();
        server.close(0, b"");
        closing.await.unwrap();
        answering.await.unwrap();
        pair.rest().await;
    });
}

#[test]
fn a_broken_socket_ends_every_wait() {
    explore(18, || async {
        let Rested { pair, client, server, mut send, mut recv, answering } = Rested::new().await;
        let mut waits = Vec::new();
        let (accepting, idle, closing) = (pair.server.clone(), pair.server.clone(), server.clone());
        waits.push(spawn(async move { assert!(accepting.accept().await.is_none()) }));
        waits.push(spawn(async move { idle.wait_idle().await }));
        waits.push(spawn(async move { drop(closing.closed().await) }));
        waits.push(spawn(async move {
            let outcome = server.accept_uni().await.map(drop);
            assert!(matches!(outcome, Err(ConnectionError::Socket(_))), "{outcome:?}");
        }));
        network::break_down(SERVER.into());
        join(waits.drain(..)).await;
        // The client hears nothing of it until its own socket breaks.
        waits.push(spawn(async move { drop(client.closed().await) }));
        waits.push(spawn(async move { assert!(recv.read_chunk(1).await.is_err()) }));
        waits.push(spawn(async move {
            let outcome = loop {
                if let Err(error) = send.write_all(&message(1)).await {
                    break error;
                }
            };
            assert!(matches!(outcome, WriteError::ConnectionLost(_)), "{outcome:?}");
        }));
        network::break_down(pair.client.local_addr().unwrap());
        join(waits).await;
        answering.await.unwrap();
        pair.rest().await;
    });
}

//! Downloads without HTTP/3: what the lab's hosts say to each other, byte for byte, on plain streams. With it, real
//! and virtual time can be set side by side: HTTP/3's control streams and heads travel in packets of their own, each
//! of which can be lost.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use posthaste_endpoint::{ClientConfig, Connection, Endpoint};
use posthaste_lab::apps::{REQUEST_LENGTH, RESPONSE_HEADER_LENGTH};
use posthaste_units::Time;

use super::client::{Answered, Arriving, Clock};
use crate::exit::Failure;

/// Answers every request with a header and the object, until its task is aborted.
pub(super) async fn serve(endpoint: Endpoint, object: Bytes) {
    let mut response = BytesMut::zeroed(RESPONSE_HEADER_LENGTH);
    response.extend_from_slice(&object);
    let response = response.freeze();
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(answer(connection, response.clone()));
    }
}

async fn answer(connection: Connection, response: Bytes) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        if receive.read_to_end(REQUEST_LENGTH).await.is_ok() {
            // A client that goes away in between needs no answer.
            let _ = send.finish_with(response.clone()).await;
        }
    }
}

/// A client with a socket of its own.
pub(super) struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    /// Once it has been made, and when.
    connection: Option<(Connection, Time)>,
}

impl Client {
    pub(super) fn new(config: ClientConfig) -> Result<Self, Failure> {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())
            .map_err(|error| Failure::runtime(format!("cannot open a socket: {error}")))?;
        Ok(Self { endpoint, config, connection: None })
    }

    /// One exchange over the one connection, which the first makes.
    pub(super) async fn fetch(
        &mut self,
        server: SocketAddr,
        clock: Clock,
        arriving: &mut Arriving<'_, impl FnMut(u64)>,
    ) -> Result<Answered, String> {
        let (connection, connected) = match &mut self.connection {
            Some(made) => made,
            none => {
                let name = server.ip().to_string();
                let made = self.endpoint.connect(&self.config, server, &name).await;
                none.insert((made.map_err(|error| error.to_string())?, clock.now()))
            }
        };
        let request = Bytes::from_static(&[0; REQUEST_LENGTH]);
        let opened = connection.open_bi_with(request).await;
        let (_, mut receive) = opened.map_err(|error| error.to_string())?;
        let (mut header, mut first_byte) = (RESPONSE_HEADER_LENGTH, None);
        while let Some(mut chunk) = receive.read_chunk(usize::MAX).await.map_err(|error| error.to_string())? {
            first_byte.get_or_insert_with(|| clock.now());
            let body = chunk.split_off(header.min(chunk.len()));
            header -= chunk.len();
            arriving.add(&body)?;
        }
        Ok(Answered { connected: *connected, first_byte: first_byte.unwrap_or_else(|| clock.now()) })
    }

    pub(super) async fn close(&self) {
        self.endpoint.close(0, b"");
        self.endpoint.wait_idle().await;
    }
}

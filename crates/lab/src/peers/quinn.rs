//! quinn-proto as a peer: the real stack, driven as its own driver does, in virtual time.
//!
//! The pinned version's BBR draws the phase of its gain cycle from a generator that it seeds from the operating
//! system. That moves its pacing rate alone, and the pacer goes by window and RTT and never asks for that rate: runs
//! repeat. The rate is not told ([`Snapshot::pacing`]), as nothing is sent at it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use posthaste_units::ByteCount;
use quinn_proto as proto;
use quinn_proto::congestion::BbrConfig as Bbr;
use quinn_proto::{
    Connection, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, ServerConfig,
    StreamId, Transmit,
};

use super::rival;
use crate::peer::{Counters, Snapshot};

#[path = "rival/adapter.rs"]
mod adapter;

pub(super) use adapter::{client, server};

/// Upper bound of a stream's receive window: more closes connections, see [`rival`].
pub(super) const STREAM_WINDOW: ByteCount = ByteCount::new(3_000_000);

fn set_ids(
    config: &mut EndpointConfig,
    make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(make);
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, false, None)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    remote: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, remote, None, ecn, data, buffer)
}

fn poll_transmit(connection: &mut Connection, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, rival::MAX_SEGMENTS.get(), buffer)
}

/// False if the stream takes nothing more.
fn write(connection: &mut Connection, id: StreamId, data: &mut Bytes) -> bool {
    connection.send_stream(id).write_chunks(std::slice::from_mut(data)).is_ok()
}

fn snapshot(connection: &Connection) -> Snapshot {
    Snapshot {
        window: Some(ByteCount::new(connection.congestion_state().window())),
        rtt: Some(rival::duration(connection.rtt())),
        ..Snapshot::default()
    }
}

fn counters(connection: &mut Connection) -> Counters {
    let stats = connection.stats();
    Counters {
        lost: Some(stats.path.lost_packets),
        acks_sent: Some(stats.frame_tx.acks),
        congestion_events: Some(stats.path.congestion_events),
        ..Counters::default()
    }
}

//! noq-proto as a peer: the real stack, driven as its own driver does, in virtual time.
//!
//! The pinned version's BBR draws the times of its bandwidth probes from a generator that it seeds from the
//! operating system; the setting that would seed it is private, so its runs do not repeat
//! ([`super::Stack::is_repeatable`]).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use noq_proto as proto;
use noq_proto::congestion::{Bbr3Config as Bbr, Controller};
use noq_proto::{
    Connection, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple,
    PathId, ServerConfig, StreamId, Transmit,
};
use posthaste_units::{ByteCount, Rate};

use super::rival;
use crate::peer::{Counters, Snapshot};

#[path = "rival/adapter.rs"]
mod adapter;

pub(super) use adapter::{client, server};

/// Upper bound of a stream's receive window: more closes connections, see [`rival`].
pub(super) const STREAM_WINDOW: ByteCount = ByteCount::new(1_600_000);

fn set_ids(
    config: &mut EndpointConfig,
    make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(make));
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, false)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    remote: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::from_remote(remote), ecn, data, buffer)
}

fn poll_transmit(connection: &mut Connection, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, rival::MAX_SEGMENTS, buffer)
}

/// False if the stream takes nothing more.
fn write(connection: &mut Connection, id: StreamId, data: &mut Bytes) -> bool {
    connection.send_stream(id).write_chunks(&mut std::slice::from_mut(data)).is_ok()
}

fn snapshot(connection: &Connection) -> Snapshot {
    let metrics = connection.congestion_state(PathId::ZERO).map(Controller::metrics);
    Snapshot {
        window: metrics.as_ref().map(|metrics| ByteCount::new(metrics.congestion_window)),
        pacing: metrics.and_then(|metrics| metrics.pacing_rate).map(Rate::from_bytes_per_second),
        rtt: connection.rtt(PathId::ZERO).map(rival::duration),
        ..Snapshot::default()
    }
}

fn counters(connection: &mut Connection) -> Counters {
    let stats = connection.stats();
    Counters {
        lost: Some(stats.lost_packets),
        acks_sent: Some(stats.frame_tx.acks),
        congestion_events: connection.path_stats(PathId::ZERO).map(|path| path.congestion_events),
        ..Counters::default()
    }
}

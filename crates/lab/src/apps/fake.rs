//! A stack that does what a test tells it, and notes what was done to it.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use posthaste_units::Time;

use super::{App, Hosts, RESPONSE_HEADER_LENGTH, content};
use crate::packet::Packet;
use crate::peer::{Counters, Peer, PeerEvent, Read, Snapshot, StreamKey};

/// The stack.
#[derive(Debug)]
pub(crate) struct FakePeer {
    /// Calls of `connect`.
    pub(crate) connects: u32,
    /// Streams that may still be opened.
    pub(crate) permits: usize,
    /// Bytes that it still takes.
    pub(crate) room: usize,
    /// Its connections.
    pub(crate) legs: usize,
    /// Of each stream, which of them it was opened on.
    pub(crate) opened_on: Vec<usize>,
    /// The streams, in the order of opening; their numbers are 0, 1, ...
    pub(crate) streams: Vec<FakeStream>,
}

/// A stream.
#[derive(Debug, Default)]
pub(crate) struct FakeStream {
    /// What was written.
    pub(crate) written: Vec<u8>,
    /// Calls of `finish`.
    pub(crate) finishes: u32,
    /// What reads will find; then they block.
    pub(crate) incoming: VecDeque<Read>,
    /// Bytes that were read.
    pub(crate) read: usize,
}

impl Default for FakePeer {
    fn default() -> Self {
        let (legs, opened_on) = (1, Vec::new());
        Self { connects: 0, permits: usize::MAX, room: usize::MAX, legs, opened_on, streams: Vec::new() }
    }
}

impl FakePeer {
    /// A whole response of `body` bytes arrives on `stream`.
    pub(crate) fn respond(&mut self, stream: usize, body: u64) {
        self.deliver(stream, 0, RESPONSE_HEADER_LENGTH as u64 + body);
        self.streams[stream].incoming.push_back(Read::Finished);
    }

    /// Bytes of a response arrive.
    pub(crate) fn deliver(&mut self, stream: usize, mut from: u64, to: u64) {
        while from < to {
            let data = content(from, to - from);
            from += data.len() as u64;
            self.streams[stream].incoming.push_back(Read::Data(data));
        }
    }
}

impl Peer for FakePeer {
    fn connect(&mut self, _now: Time) {
        self.connects += 1;
    }

    fn on_packet(&mut self, _now: Time, _packet: Packet) {}

    fn on_timeout(&mut self, _now: Time) {}

    fn next_timeout(&mut self) -> Option<Time> {
        None
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        None
    }

    fn open(&mut self, now: Time) -> Option<StreamKey> {
        self.open_on(now, 0)
    }

    fn legs(&self) -> usize {
        self.legs
    }

    fn open_on(&mut self, _now: Time, leg: usize) -> Option<StreamKey> {
        assert!(leg < self.legs, "there is no such connection");
        self.permits = self.permits.checked_sub(1)?;
        self.opened_on.push(leg);
        self.streams.push(FakeStream::default());
        Some(StreamKey(self.streams.len() as u64 - 1))
    }

    fn write(&mut self, _now: Time, stream: StreamKey, data: &mut Bytes) {
        let taken = data.split_to(data.len().min(self.room));
        self.room -= taken.len();
        self.streams[stream.0 as usize].written.extend_from_slice(&taken);
    }

    fn finish(&mut self, _now: Time, stream: StreamKey) {
        self.streams[stream.0 as usize].finishes += 1;
    }

    fn read(&mut self, _now: Time, stream: StreamKey, max: usize) -> Read {
        assert!(max > 0, "a read of nothing has no answer");
        let stream = &mut self.streams[stream.0 as usize];
        match stream.incoming.pop_front() {
            None => Read::Blocked,
            Some(Read::Data(mut data)) => {
                let first = data.split_to(max.min(data.len()));
                if !data.is_empty() {
                    stream.incoming.push_front(Read::Data(data));
                }
                stream.read += first.len();
                Read::Data(first)
            }
            Some(other) => other,
        }
    }

    fn close(&mut self, _now: Time) {}

    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    fn counters(&self, _now: Time) -> Counters {
        Counters::default()
    }
}

/// An application on fake stacks.
pub(crate) struct Bench<A> {
    pub(crate) app: A,
    pub(crate) peers: FakePeers,
}

/// The stacks, by host index.
#[derive(Debug, Default)]
pub(crate) struct FakePeers(BTreeMap<usize, FakePeer>);

impl Hosts for FakePeers {
    fn peer(&mut self, host: usize) -> &mut dyn Peer {
        self.at(host)
    }
}

impl FakePeers {
    pub(crate) fn at(&mut self, host: usize) -> &mut FakePeer {
        self.0.entry(host).or_default()
    }
}

impl<A: App> Bench<A> {
    /// Starts `app` at zero.
    pub(crate) fn start(mut app: A) -> Self {
        let mut peers = FakePeers::default();
        app.start(Time::ZERO, &mut peers);
        Self { app, peers }
    }

    /// Something happens at host 0.
    pub(crate) fn event(&mut self, at: Time, event: PeerEvent) {
        self.event_at(0, at, event);
    }

    /// Something happens at a host.
    pub(crate) fn event_at(&mut self, host: usize, at: Time, event: PeerEvent) {
        self.app.on_event(at, host, event, &mut self.peers);
    }

    /// A response of `body` bytes arrives at a host.
    pub(crate) fn respond(&mut self, host: usize, stream: usize, body: u64, at: Time) {
        self.peers.at(host).respond(stream, body);
        self.event_at(host, at, PeerEvent::Readable(StreamKey(stream as u64)));
    }

    /// Lets the application's timer fire when it is due.
    pub(crate) fn fire(&mut self) -> Time {
        let at = self.app.next_timeout().expect("a timer");
        self.app.on_timeout(at, &mut self.peers);
        at
    }
}

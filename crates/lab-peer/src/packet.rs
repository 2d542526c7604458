//! What travels through the network of a run.

use bytes::BytesMut;
use posthaste_path::flip_bit_of;
use posthaste_transport::EcnCodepoint;
use posthaste_units::{ByteCount, Time};

use crate::segment::Segment;

/// IPv4 and UDP headers, in bytes.
pub const UDP_HEADERS: u16 = 28;

/// One IP packet.
#[derive(Debug, Clone)]
pub struct Packet {
    /// What it carries.
    pub body: Body,
    /// Its ECN field.
    pub ecn: Option<EcnCodepoint>,
    /// Set by the world when the packet leaves its sender.
    pub tag: Tag,
}

/// What the world notes on a packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tag {
    /// Index of the host that it is for.
    pub to: usize,
    /// Links that it has passed.
    pub hop: usize,
    /// When it left its sender.
    pub sent_at: Time,
    /// A link has made it.
    pub is_copy: bool,
}

/// A packet's payload.
#[derive(Debug, Clone)]
pub enum Body {
    /// A UDP payload, real bytes.
    Udp(BytesMut),
    /// A segment of the TCP model: numbers without content.
    Tcp(Box<Segment>),
}

impl Packet {
    /// A UDP datagram.
    pub fn udp(payload: BytesMut, ecn: Option<EcnCodepoint>) -> Self {
        Self { body: Body::Udp(payload), ecn, tag: Tag::default() }
    }

    /// A TCP segment.
    pub fn tcp(segment: Segment) -> Self {
        Self { body: Body::Tcp(Box::new(segment)), ecn: None, tag: Tag::default() }
    }

    /// Bytes on the wire from the IP header on.
    pub fn wire_length(&self) -> u64 {
        match &self.body {
            Body::Udp(payload) => u64::from(UDP_HEADERS) + payload.len() as u64,
            Body::Tcp(segment) => segment.wire_length(),
        }
    }
}

impl posthaste_path::Packet for Packet {
    fn length(&self) -> ByteCount {
        ByteCount::new(self.wire_length())
    }

    fn flip_bit(&mut self, draw: u64) {
        match &mut self.body {
            Body::Udp(payload) => flip_bit_of(payload, draw),
            Body::Tcp(segment) => segment.is_corrupted = true,
        }
    }

    fn mark_duplicate(&mut self) {
        self.tag.is_copy = true;
    }

    fn is_ecn_capable(&self) -> bool {
        matches!(self.ecn, Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1))
    }

    fn mark_congestion_experienced(&mut self) {
        self.ecn = Some(EcnCodepoint::Ce);
    }
}

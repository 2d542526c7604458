//! What servers say first. Initial packets are protected with keys that everybody on the path can derive (RFC 9001
//! section 5.2), so a recorder can read which cipher a server has chosen and whether it goes on from a session: true of
//! both ends, whoever they are.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use posthaste_wire::ConnectionId;
use posthaste_wire::frame::{Frame, Iter};
use posthaste_wire::packet::{PacketType, ProtectedPacket, header, version};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Version};
use rustls::{CipherSuite, Side};

/// Connections, and the IDs that their clients began with, that are followed.
const MAX_CONNECTIONS: usize = 16;
/// More than any `ServerHello` has.
const MAX_HELLO: usize = 16_384;
/// Handshake type of `ServerHello` (RFC 8446 section 4).
const SERVER_HELLO: u8 = 2;
/// Extension `pre_shared_key` (RFC 8446 section 4.2).
const PRE_SHARED_KEY: u16 = 41;
/// The random number by which a `HelloRetryRequest` differs from a `ServerHello` begins so (RFC 8446 section 4.1.3).
const RETRY_REQUEST: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// A server's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Of the whole connection.
    pub(crate) cipher: CipherSuite,
    /// It takes the client's ticket.
    pub(crate) is_resumed: bool,
}

/// Collects servers' hellos.
#[derive(Clone, Default)]
pub(crate) struct Hellos {
    /// The IDs that clients sent their first packets to, in order, with what the server has said since.
    connections: Vec<(ConnectionId, Speech)>,
}

/// What a server says in its Initial packets.
#[derive(Clone, Default)]
struct Speech {
    /// CRYPTO data by offset.
    parts: BTreeMap<usize, Bytes>,
    hello: Option<Hello>,
}

impl fmt::Debug for Hellos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all().fmt(f)
    }
}

impl Hellos {
    /// Those that were read, in the order in which the connections began.
    pub(crate) fn all(&self) -> Vec<Hello> {
        self.connections.iter().filter_map(|(_, speech)| speech.hello).collect()
    }

    /// Notes a client's packet.
    pub(crate) fn client(&mut self, packet: &ProtectedPacket) {
        let destination = packet.header.dcid();
        let is_known = self.connections.iter().any(|(known, _)| *known == destination);
        let is_first = packet.header.packet_type() == PacketType::Initial && !is_known;
        if is_first && self.connections.len() < MAX_CONNECTIONS {
            self.connections.push((destination, Speech::default()));
        }
    }

    /// Notes a server's packet. Which connection it belongs to is seen by whose keys open it.
    pub(crate) fn server(&mut self, packet: &ProtectedPacket) {
        if packet.header.packet_type() != PacketType::Initial {
            return;
        }
        for (destination, speech) in &mut self.connections {
            if let Some(payload) = open(packet, destination) {
                speech.hear(payload);
                return;
            }
        }
    }
}

impl Speech {
    fn hear(&mut self, payload: Bytes) {
        for frame in Iter::new(payload).flatten() {
            if let Frame::Crypto(crypto) = frame
                && let Ok(offset) = usize::try_from(crypto.offset)
                && offset < MAX_HELLO
            {
                self.parts.insert(offset, crypto.data);
            }
        }
        let mut whole: Vec<u8> = Vec::new();
        for (&offset, part) in &self.parts {
            if offset > whole.len() {
                break;
            }
            whole.truncate(offset);
            whole.extend_from_slice(part);
        }
        self.hello = self.hello.or_else(|| server_hello(&whole));
    }
}

/// Opens an Initial packet of the server of a client that began with `destination`.
fn open(packet: &ProtectedPacket, destination: &ConnectionId) -> Option<Bytes> {
    let keys = server_keys(packet.header.version()?, destination)?;
    let mut bytes = packet.bytes.clone();
    let number_at = packet.number_at;
    let (before, number) = bytes.split_at_mut_checked(number_at)?;
    let (first, number) = (before.first_mut()?, number.get_mut(..4)?);
    keys.header.decrypt_in_place(packet.sample()?, first, number).ok()?;
    let header_len = number_at + header::number_len(*first);
    let mut payload = bytes.split_off(header_len);
    let number = bytes[number_at..].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let length = keys.packet.decrypt_in_place(number, &bytes, &mut payload).ok()?.len();
    payload.truncate(length);
    Some(payload.freeze())
}

fn server_keys(number: u32, destination: &ConnectionId) -> Option<DirectionalKeys> {
    let labels = match number {
        version::V1 => Version::V1,
        version::V2 => Version::V2,
        _ => return None,
    };
    let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
    Some(suite.keys(destination.as_slice(), Side::Client, labels).remote)
}

/// The `ServerHello` in a server's first messages, once it is whole (RFC 8446 section 4.1.3).
fn server_hello(mut messages: &[u8]) -> Option<Hello> {
    loop {
        let (&[kind, high, middle, low], rest) = messages.split_first_chunk()?;
        let (mut body, rest) = rest.split_at_checked(u32::from_be_bytes([0, high, middle, low]) as usize)?;
        messages = rest;
        if kind != SERVER_HELLO {
            continue;
        }
        let fields = &mut body;
        take(fields, 2)?;
        let is_retry_request = take(fields, 32)?.starts_with(&RETRY_REQUEST);
        let session_len = take(fields, 1)?[0];
        take(fields, session_len.into())?;
        let cipher = CipherSuite::from(short(fields)?);
        take(fields, 1)?;
        let extensions_len = short(fields)?;
        let mut extensions = take(fields, extensions_len.into())?;
        let mut is_resumed = false;
        while !extensions.is_empty() {
            is_resumed |= short(&mut extensions)? == PRE_SHARED_KEY;
            let length = short(&mut extensions)?;
            take(&mut extensions, length.into())?;
        }
        if !is_retry_request {
            return Some(Hello { cipher, is_resumed });
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn short(bytes: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(bytes, 2)?.try_into().ok()?))
}

/// For tests of the proofs.
#[cfg(test)]
impl Hellos {
    pub(crate) fn of(hellos: &[Hello]) -> Self {
        let speech = |hello: &Hello| Speech { hello: Some(*hello), ..Speech::default() };
        let connections = hellos.iter().map(|hello| (ConnectionId::default(), speech(hello)));
        Self { connections: connections.collect() }
    }
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;

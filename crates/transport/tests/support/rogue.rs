//! A peer without manners: it completes a handshake over `rustls::quic` and `posthaste_wire` alone, and can then
//! put any bytes into any packet.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use posthaste_transport::Side;
use posthaste_wire::frame::{AckFrame, CloseFrame, CryptoFrame, Iter};
use posthaste_wire::packet::{
    Header, PacketType, ProtectedPacket, TruncatedNumber, header, number, split, version,
};
use posthaste_wire::{ConnectionId, Frame, TransportParameters};
use rustls::quic::{
    ClientConnection, Connection as Tls, HeaderProtectionKey, KeyChange, Keys, PacketKey, PacketKeySet,
    Secrets, ServerConnection, Version,
};

use super::tls;

/// Length of the rogue's own connection IDs.
pub const ROGUE_ID_LEN: usize = 8;

const KINDS: [PacketType; 3] = [PacketType::Initial, PacketType::Handshake, PacketType::Short];

fn space(kind: PacketType) -> usize {
    match kind {
        PacketType::Initial => 0,
        PacketType::Handshake => 1,
        _ => 2,
    }
}

/// One packet number space of the rogue.
#[derive(Default)]
struct Space {
    next_number: u64,
    received: BTreeSet<u64>,
    ack_is_due: bool,
    /// Handshake bytes received, by offset.
    crypto_in: BTreeMap<u64, Bytes>,
    crypto_read: u64,
    crypto_out: Vec<u8>,
    crypto_sent: usize,
}

/// The rogue's 1-RTT keys, of every phase that was used.
struct OneRtt {
    local_header: Box<dyn HeaderProtectionKey>,
    remote_header: Box<dyn HeaderProtectionKey>,
    phases: Vec<PacketKeySet>,
    secrets: Secrets,
}

/// How a packet differs from a proper one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Oddity {
    /// Bits set in the first byte before protection.
    pub first: u8,
    /// The packet number; the next one if `None`.
    pub number: Option<u64>,
    /// The key phase (1-RTT); the rogue's own if `None`.
    pub phase: Option<usize>,
}

/// Makes the transport parameters that the rogue sends from proper ones.
pub type Shape = Box<dyn Fn(TransportParameters) -> Vec<u8>>;

/// Proper transport parameters.
pub fn proper() -> Shape {
    Box::new(|parameters| encode(&parameters))
}

/// The rogue.
pub struct Rogue {
    pub side: Side,
    pub local_id: ConnectionId,
    /// What the victim is called.
    pub remote_id: ConnectionId,
    /// What the client's first Initial was sent to.
    pub original: ConnectionId,
    /// Key phase that the rogue seals with: an index, whose lowest bit is the key phase bit.
    pub phase: usize,
    /// Every frame that the victim has sent, with the packet that it came in.
    pub seen: Vec<(PacketType, Frame)>,
    /// Datagrams that came and were not to be opened.
    pub unopened: Vec<Vec<u8>>,
    /// False to keep acknowledgements back.
    pub is_acking: bool,
    /// False to keep handshake bytes back.
    pub is_shaking: bool,
    tls: Option<Tls>,
    spaces: [Space; 3],
    initial: Option<Keys>,
    handshake: Option<Keys>,
    one_rtt: Option<OneRtt>,
    seed: u64,
    shape: Shape,
}

/// Transport parameters with room for everything.
pub fn generous(local_id: ConnectionId) -> TransportParameters {
    TransportParameters {
        max_idle_timeout: 30_000,
        initial_max_data: 1 << 40,
        initial_max_stream_data_bidi_local: 1 << 40,
        initial_max_stream_data_bidi_remote: 1 << 40,
        initial_max_stream_data_uni: 1 << 40,
        initial_max_streams_bidi: 1000,
        initial_max_streams_uni: 1000,
        active_connection_id_limit: 8,
        max_datagram_frame_size: 65_535,
        initial_source_connection_id: Some(local_id),
        ..TransportParameters::default()
    }
}

/// The parameters, encoded.
pub fn encode(parameters: &TransportParameters) -> Vec<u8> {
    let mut encoded = Vec::new();
    parameters.write(&mut encoded);
    encoded
}

/// Keys for Initial packets.
pub fn initial_keys(original: &ConnectionId, side: Side) -> Keys {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut suites = provider.cipher_suites.iter().filter_map(rustls::SupportedCipherSuite::tls13);
    let aes = rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
    let suite = suites.find(|suite| suite.common.suite == aes).expect("a provider with AES-128-GCM");
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    suite.quic_suite().expect("a suite for QUIC").keys(original.as_slice(), side, Version::V1)
}

impl Rogue {
    fn new(side: Side, seed: u64, original: ConnectionId, shape: Shape) -> Self {
        Self {
            side,
            local_id: ConnectionId::new(b"rogue-id").expect("short enough"),
            remote_id: original,
            original,
            phase: 0,
            seen: Vec::new(),
            unopened: Vec::new(),
            is_acking: true,
            is_shaking: true,
            tls: None,
            spaces: Default::default(),
            initial: None,
            handshake: None,
            one_rtt: None,
            seed,
            shape,
        }
    }

    /// A client that sends these transport parameters.
    pub fn client(seed: u64, shape: Shape) -> Self {
        let original = ConnectionId::new(b"original").expect("short enough");
        let mut rogue = Self::new(Side::Client, seed, original, shape);
        let parameters = (rogue.shape)(generous(rogue.local_id));
        let config = tls::client_config(seed).tls;
        let name = "localhost".try_into().expect("a name");
        let client =
            ClientConnection::new(config, Version::V1, name, parameters).expect("a usable configuration");
        rogue.tls = Some(Tls::Client(client));
        rogue.initial = Some(initial_keys(&original, Side::Client));
        rogue.write_tls();
        rogue
    }

    /// A server that sends these transport parameters.
    pub fn server(seed: u64, shape: Shape) -> Self {
        Self::new(Side::Server, seed, ConnectionId::EMPTY, shape)
    }

    /// True if the rogue's TLS has finished.
    pub fn is_connected(&self) -> bool {
        self.one_rtt.is_some() && self.tls.as_ref().is_some_and(|tls| !tls.is_handshaking())
    }

    /// The victim's transport parameters.
    pub fn victim_parameters(&self) -> TransportParameters {
        let encoded = self.tls.as_ref().and_then(|tls| tls.quic_transport_parameters());
        TransportParameters::parse(encoded.expect("they have come"), self.side.peer())
            .expect("valid parameters")
    }

    /// The number of the next packet of this kind.
    pub fn next_number(&self, kind: PacketType) -> u64 {
        self.spaces[space(kind)].next_number
    }

    /// Handshake bytes sent in packets of this kind.
    pub fn crypto_sent(&self, kind: PacketType) -> u64 {
        self.spaces[space(kind)].crypto_sent as u64
    }

    /// Packet numbers received in packets of this kind.
    pub fn received(&self, kind: PacketType) -> &BTreeSet<u64> {
        &self.spaces[space(kind)].received
    }

    /// The last close that the victim has sent.
    pub fn close(&self) -> Option<&CloseFrame> {
        let close = |(_, frame): &'_ (PacketType, Frame)| matches!(frame, Frame::Close(_));
        match self.seen.iter().rev().find(|entry| close(entry)) {
            Some((_, Frame::Close(close))) => Some(close),
            _ => None,
        }
    }

    /// True if packets of this kind can be sealed.
    pub fn has_keys(&self, kind: PacketType) -> bool {
        [self.initial.is_some(), self.handshake.is_some(), self.one_rtt.is_some()][space(kind)]
    }

    /// A sealed packet with these frames.
    pub fn packet(&mut self, kind: PacketType, frames: &[Frame]) -> Vec<u8> {
        let mut payload = Vec::new();
        for frame in frames {
            frame.write(&mut payload);
        }
        self.raw_packet(kind, &payload, Oddity::default())
    }

    /// A sealed packet with this payload, whatever it is.
    pub fn raw_packet(&mut self, kind: PacketType, payload: &[u8], oddity: Oddity) -> Vec<u8> {
        let at = space(kind);
        let number = oddity.number.unwrap_or(self.spaces[at].next_number);
        self.spaces[at].next_number = self.spaces[at].next_number.max(number + 1);
        let phase = oddity.phase.unwrap_or(self.phase);
        let truncated = TruncatedNumber::new(number, 4);
        let mut packet = Vec::new();
        let (number_at, length_at) = if kind == PacketType::Short {
            (header::write_short(&mut packet, false, phase % 2 == 1, &self.remote_id, truncated), None)
        } else {
            let (to, from) = (&self.remote_id, &self.local_id);
            let layout = header::write_long(&mut packet, kind, version::V1, to, from, &[], truncated);
            (layout.number_at, Some(layout.length_at))
        };
        packet[0] |= oddity.first;
        let header_len = packet.len();
        packet.extend_from_slice(payload);
        if let Some(length_at) = length_at {
            let length = packet.len() + 16 - number_at;
            header::patch_length(&mut packet, length_at, length);
        }
        self.seal(kind, phase, packet, number_at, header_len, number)
    }

    fn seal(
        &mut self,
        kind: PacketType,
        phase: usize,
        mut packet: Vec<u8>,
        number_at: usize,
        header_len: usize,
        number: u64,
    ) -> Vec<u8> {
        if let Some(keys) = &mut self.one_rtt {
            keys.derive(phase);
        }
        let long = if kind == PacketType::Initial { &self.initial } else { &self.handshake };
        let (header_key, packet_key): (&dyn HeaderProtectionKey, &dyn PacketKey) = match (&self.one_rtt, kind)
        {
            (Some(keys), PacketType::Short) => (&*keys.local_header, &*keys.phases[phase].local),
            _ => long
                .as_ref()
                .map(|keys| (&*keys.local.header, &*keys.local.packet))
                .expect("the keys have come"),
        };
        let (header, payload) = packet.split_at_mut(header_len);
        let tag = packet_key.encrypt_in_place(number, header, payload).expect("sealable");
        packet.extend_from_slice(tag.as_ref());
        let (head, tail) = packet.split_at_mut(number_at);
        let (number_field, sample) = tail.split_at_mut(4);
        let number_len = header::number_len(head[0]);
        let sample = &sample[..header_key.sample_len()];
        header_key.encrypt_in_place(sample, &mut head[0], &mut number_field[..number_len]).expect("a sample");
        packet
    }

    /// Takes a datagram in: notes its frames, lets TLS go on.
    pub fn receive(&mut self, datagram: &[u8]) {
        let mut is_opened = false;
        for packet in split(BytesMut::from(datagram), ROGUE_ID_LEN) {
            let Ok(packet) = packet else { break };
            is_opened |= self.receive_packet(packet).is_some();
        }
        if !is_opened {
            self.unopened.push(datagram.to_vec());
        }
    }

    fn receive_packet(&mut self, packet: ProtectedPacket) -> Option<()> {
        let kind = packet.header.packet_type();
        if self.tls.is_none() {
            self.accept(&packet.header)?;
        }
        let (number, payload) = self.open(kind, packet)?;
        let at = space(kind);
        self.spaces[at].received.insert(number);
        for frame in Iter::new(payload) {
            let frame = frame.expect("the victim sends proper frames");
            self.spaces[at].ack_is_due |= frame.is_ack_eliciting();
            if let Frame::Crypto(crypto) = &frame {
                self.spaces[at].crypto_in.insert(crypto.offset, crypto.data.clone());
            }
            self.seen.push((kind, frame));
        }
        self.read_tls();
        Some(())
    }

    /// A client's first Initial.
    fn accept(&mut self, first: &Header) -> Option<()> {
        let Header::Initial { dcid, scid, .. } = first else { return None };
        (self.original, self.remote_id) = (*dcid, *scid);
        self.initial = Some(initial_keys(dcid, Side::Server));
        let own = TransportParameters {
            original_destination_connection_id: Some(*dcid),
            ..generous(self.local_id)
        };
        let parameters = (self.shape)(own);
        let config = tls::server_config(self.seed).tls;
        let server = ServerConnection::new(config, Version::V1, parameters);
        self.tls = Some(Tls::Server(server.expect("a usable configuration")));
        Some(())
    }

    fn open(&mut self, kind: PacketType, packet: ProtectedPacket) -> Option<(u64, Bytes)> {
        if self.side == Side::Client && kind == PacketType::Initial {
            self.remote_id = packet.header.scid()?;
        }
        let largest = self.spaces[space(kind)].received.last().copied();
        let ProtectedPacket { mut bytes, number_at, .. } = packet;
        let long = if kind == PacketType::Initial { &self.initial } else { &self.handshake };
        let header_key: &dyn HeaderProtectionKey = match kind {
            PacketType::Short => &*self.one_rtt.as_ref()?.remote_header,
            _ => &*long.as_ref()?.remote.header,
        };
        let (head, tail) = bytes.split_at_mut_checked(number_at)?;
        let (number_field, sample) = tail.split_at_mut_checked(4)?;
        header_key.decrypt_in_place(sample.get(..16)?, &mut head[0], number_field).ok()?;
        let first = head[0];
        let number_len = header::number_len(first);
        let number = number::decode(largest, number::read(&number_field[..number_len]), number_len as u8);
        let mut payload = bytes.split_off(number_at + number_len);
        let packet_key: &dyn PacketKey = if kind == PacketType::Short {
            let keys = self.one_rtt.as_mut()?;
            keys.derive(self.phase + 1);
            let parity = usize::from(first & header::KEY_PHASE != 0);
            let fits = (0..keys.phases.len()).rev().filter(|phase| phase % 2 == parity);
            let opens = |phase: &usize| {
                let mut copy = payload.clone();
                keys.phases[*phase].remote.decrypt_in_place(number, &bytes, &mut copy).is_ok()
            };
            let phase = fits.into_iter().find(opens)?;
            &*keys.phases[phase].remote
        } else {
            &*long.as_ref()?.remote.packet
        };
        let len = packet_key.decrypt_in_place(number, &bytes, &mut payload).ok()?.len();
        payload.truncate(len);
        Some((number, payload.freeze()))
    }

    fn read_tls(&mut self) {
        for at in 0..self.spaces.len() {
            let ready = &mut self.spaces[at];
            let mut bytes = Vec::new();
            while let Some((offset, data)) = ready.crypto_in.pop_first() {
                let end = offset + data.len() as u64;
                if offset > ready.crypto_read {
                    ready.crypto_in.insert(offset, data);
                    break;
                }
                if end > ready.crypto_read {
                    bytes.extend_from_slice(&data[(ready.crypto_read - offset) as usize..]);
                    ready.crypto_read = end;
                }
            }
            if let (false, Some(tls)) = (bytes.is_empty(), &mut self.tls) {
                // An alert is of no interest here: it shows as a handshake that does not go on.
                let _ = tls.read_hs(&bytes);
            }
            self.write_tls();
        }
    }

    fn write_tls(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        loop {
            let at = if self.one_rtt.is_some() { 2 } else { usize::from(self.handshake.is_some()) };
            let before = self.spaces[at].crypto_out.len();
            let change = tls.write_hs(&mut self.spaces[at].crypto_out);
            let wrote = self.spaces[at].crypto_out.len() > before;
            match change {
                Some(KeyChange::Handshake { keys }) => self.handshake = Some(keys),
                Some(KeyChange::OneRtt { keys, next }) => {
                    let first = PacketKeySet { local: keys.local.packet, remote: keys.remote.packet };
                    let (local_header, remote_header) = (keys.local.header, keys.remote.header);
                    self.one_rtt =
                        Some(OneRtt { local_header, remote_header, phases: vec![first], secrets: next });
                }
                None if !wrote => return,
                None => {}
            }
        }
    }

    /// An ACK of all that has come in packets of this kind.
    pub fn ack(&self, kind: PacketType) -> Option<Frame> {
        let mut ranges: Vec<std::ops::RangeInclusive<u64>> = Vec::new();
        for number in self.spaces[space(kind)].received.iter().rev() {
            match ranges.last_mut() {
                Some(range) if range.start() - 1 == *number => *range = *number..=*range.end(),
                _ => ranges.push(*number..=*number),
            }
        }
        (!ranges.is_empty()).then(|| Frame::Ack(AckFrame { delay: 0, ranges, ecn: None }))
    }

    /// Datagrams with what is due by itself: handshake bytes and acknowledgements.
    pub fn flight(&mut self) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        for kind in KINDS {
            let at = space(kind);
            if !self.has_keys(kind) {
                continue;
            }
            let ack = self.is_acking && std::mem::take(&mut self.spaces[at].ack_is_due);
            let mut ack = self.ack(kind).filter(|_| ack);
            loop {
                let mut frames: Vec<Frame> = ack.take().into_iter().collect();
                frames.extend(self.next_crypto(at));
                if frames.is_empty() {
                    break;
                }
                datagrams.push(self.datagram(kind, &frames));
            }
        }
        datagrams
    }

    fn next_crypto(&mut self, at: usize) -> Option<Frame> {
        let own = &mut self.spaces[at];
        let (start, end) = (own.crypto_sent, own.crypto_out.len().min(own.crypto_sent + 1000));
        if start == end || !self.is_shaking {
            return None;
        }
        own.crypto_sent = end;
        let data = Bytes::copy_from_slice(&own.crypto_out[start..end]);
        Some(Frame::Crypto(CryptoFrame { offset: start as u64, data }))
    }

    /// A datagram with one packet; Initials are padded to 1200 bytes.
    pub fn datagram(&mut self, kind: PacketType, frames: &[Frame]) -> Vec<u8> {
        let mut payload = Vec::new();
        for frame in frames {
            frame.write(&mut payload);
        }
        if kind == PacketType::Initial {
            payload.resize(payload.len().max(1162), 0);
        }
        self.raw_packet(kind, &payload, Oddity::default())
    }
}

impl OneRtt {
    fn derive(&mut self, phase: usize) {
        while self.phases.len() <= phase {
            self.phases.push(self.secrets.next_packet_keys());
        }
    }
}

//! Writes the seed corpus of the fuzz targets: `cargo run -p posthaste-wire --example fuzz_seeds -- fuzz/corpus`.
//!
//! The same files each time. It is no part of the fuzz workspace, whose code is built for coverage and needs libFuzzer
//! to link.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bytes::Bytes;
use posthaste_wire::frame::{
    AckFrame, AckWindowFrame, CloseFrame, CloseKind, CryptoFrame, EcnCounts, NewConnectionId, ResetStream,
    StopSending, StreamFrame, TailCodeFrame, TailCodeHead, WindowUpdate, stream,
};
use posthaste_wire::packet::{self, PacketType, header, number, version};
use posthaste_wire::{ConnectionId, Direction, Frame, ResetToken, StreamId, TransportParameters, varint};

/// The length of local connection IDs in the `packet` seeds, and the byte before the datagram that says so.
const LOCAL_CID_LEN: u8 = 8;
/// The byte before the extension in the `transport_parameters` seeds.
const FROM_CLIENT: u8 = 0;
const FROM_SERVER: u8 = 1;

fn main() -> io::Result<()> {
    let Some(root) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("usage: fuzz_seeds FOLDER"));
    };
    write_all(&root.join("frames"), frames())?;
    write_all(&root.join("packet"), packets())?;
    write_all(&root.join("transport_parameters"), transport_parameters())
}

fn write_all(folder: &Path, seeds: Vec<(&str, Vec<u8>)>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    seeds.into_iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
}

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap_or_default()
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let all = [data_frames(), control_frames()].concat();
    let mut seeds = Vec::new();
    let mut packet = Vec::new();
    for (name, frame) in all {
        let mut payload = Vec::new();
        frame.write(&mut payload);
        packet.extend_from_slice(&payload);
        seeds.push((name, payload));
    }
    let mut to_the_end = vec![0, 0, 0, 1];
    stream::write_header(&mut to_the_end, StreamId::from_wire(4), 70_000, None, true);
    to_the_end.extend_from_slice(b"the rest of the packet");
    seeds.push(("stream_to_the_end", to_the_end));
    seeds.push(("one_of_each", packet));
    seeds
}

fn data_frames() -> Vec<(&'static str, Frame)> {
    let data = Bytes::from_static(b"hello");
    let id = StreamId::from_wire(4);
    let ack = AckFrame { delay: 70, ranges: vec![90..=100, 3..=80, 0..=0], ecn: None };
    let ecn = Some(EcnCounts { ect0: 1, ect1: 2, ce: 100 });
    let transport = CloseKind::Transport { frame_type: 6 };
    let update =
        WindowUpdate { max_data: 1 << 31, streams: vec![(id, 1 << 20), (StreamId::from_wire(0), 1 << 16)] };
    let tail = TailCodeHead { id, base: 5, length: 1000, symbol_units: 1, recovery_count: 4, first: 2 };
    vec![
        ("padding", Frame::Padding),
        ("ping", Frame::Ping),
        ("ack", Frame::Ack(ack.clone())),
        ("ack_ecn", Frame::Ack(AckFrame { ecn, ..ack.clone() })),
        ("ack_window", Frame::AckWindow(AckWindowFrame { ack: ack.clone(), update: update.clone() })),
        ("ack_window_ecn", Frame::AckWindow(AckWindowFrame { ack: AckFrame { ecn, ..ack }, update })),
        ("tail_code", Frame::TailCode(TailCodeFrame { head: tail, symbols: Bytes::from_static(&[7; 64]) })),
        ("crypto", Frame::Crypto(CryptoFrame { offset: 1000, data: data.clone() })),
        ("new_token", Frame::NewToken(data.clone())),
        ("stream", Frame::Stream(StreamFrame { id, offset: 0, data: data.clone(), fin: false })),
        ("stream_end", Frame::Stream(StreamFrame { id, offset: 1 << 40, data: data.clone(), fin: true })),
        ("close", Frame::Close(CloseFrame { error_code: 10, kind: transport, reason: data.clone() })),
        (
            "close_application",
            Frame::Close(CloseFrame { error_code: 0x100, kind: CloseKind::Application, reason: data }),
        ),
    ]
}

fn control_frames() -> Vec<(&'static str, Frame)> {
    let stream = StreamId::from_wire(4);
    let (both, one) = (Direction::Bidirectional, Direction::Unidirectional);
    let new_id = NewConnectionId {
        sequence: 70,
        retire_prior_to: 3,
        id: id(&[7; 8]),
        reset_token: ResetToken([9; 16]),
    };
    vec![
        ("reset_stream", Frame::ResetStream(ResetStream { id: stream, error_code: 300, final_size: 70_000 })),
        ("stop_sending", Frame::StopSending(StopSending { id: stream, error_code: 300 })),
        ("max_data", Frame::MaxData(1 << 30)),
        ("max_stream_data", Frame::MaxStreamData { id: stream, maximum: 1 << 20 }),
        ("max_streams_bidi", Frame::MaxStreams { direction: both, maximum: 1 << 60 }),
        ("max_streams_uni", Frame::MaxStreams { direction: one, maximum: 100 }),
        ("data_blocked", Frame::DataBlocked(1 << 30)),
        ("stream_data_blocked", Frame::StreamDataBlocked { id: stream, limit: 1 << 20 }),
        ("streams_blocked_bidi", Frame::StreamsBlocked { direction: both, limit: 100 }),
        ("streams_blocked_uni", Frame::StreamsBlocked { direction: one, limit: 1 << 60 }),
        ("new_connection_id", Frame::NewConnectionId(new_id)),
        ("retire_connection_id", Frame::RetireConnectionId(70)),
        ("path_challenge", Frame::PathChallenge([1; 8])),
        ("path_response", Frame::PathResponse([2; 8])),
        ("handshake_done", Frame::HandshakeDone),
        ("datagram", Frame::Datagram(Bytes::from_static(b"hello"))),
    ]
}

fn packets() -> Vec<(&'static str, Vec<u8>)> {
    let (dcid, scid) = (id(&[1; LOCAL_CID_LEN as usize]), id(&[2; 5]));
    let long = |datagram: &mut Vec<u8>, kind, token: &[u8]| {
        let number = number::encode(7, None);
        let layout = header::write_long(datagram, kind, version::V1, &dcid, &scid, token, number);
        datagram.extend_from_slice(&[0xab; 24]);
        header::patch_length(datagram, layout.length_at, number.len() + 24);
    };
    let short = |datagram: &mut Vec<u8>| {
        header::write_short(datagram, true, true, &dcid, number::encode(1000, None));
        datagram.extend_from_slice(&[0xcd; 24]);
    };
    let seed = |name, write: &dyn Fn(&mut Vec<u8>)| {
        let mut datagram = vec![LOCAL_CID_LEN];
        write(&mut datagram);
        (name, datagram)
    };
    vec![
        seed("initial", &|datagram| long(datagram, PacketType::Initial, b"")),
        seed("initial_token", &|datagram| long(datagram, PacketType::Initial, &[3; 70])),
        seed("zero_rtt", &|datagram| long(datagram, PacketType::ZeroRtt, b"")),
        seed("handshake", &|datagram| long(datagram, PacketType::Handshake, b"")),
        seed("short", &|datagram| short(datagram)),
        seed("coalesced", &|datagram| {
            long(datagram, PacketType::Initial, b"");
            long(datagram, PacketType::Handshake, b"");
            short(datagram);
        }),
        seed("retry", &|datagram| {
            packet::write_retry(datagram, version::V1, &dcid, &scid, b"token", 0x0a);
            datagram.extend_from_slice(&[0xee; header::RETRY_TAG_LEN]);
        }),
        seed("version_negotiation", &|datagram| {
            packet::write_version_negotiation(
                datagram,
                dcid,
                scid,
                &[version::V1, version::reserved(0x1234_5678)],
                0x15,
            );
        }),
    ]
}

fn transport_parameters() -> Vec<(&'static str, Vec<u8>)> {
    let client = TransportParameters {
        max_idle_timeout: 30_000,
        max_udp_payload_size: 1472,
        initial_max_data: 1 << 24,
        initial_max_stream_data_bidi_local: 1 << 20,
        initial_max_stream_data_bidi_remote: 1 << 20,
        initial_max_stream_data_uni: 1 << 20,
        initial_max_streams_bidi: 100,
        initial_max_streams_uni: 3,
        ack_delay_exponent: 10,
        max_ack_delay: 20,
        disable_active_migration: true,
        active_connection_id_limit: 4,
        initial_source_connection_id: Some(id(&[2; 5])),
        grease: Some((31 * 5 + 27, vec![7; 4])),
        ..TransportParameters::default()
    };
    let server = TransportParameters {
        original_destination_connection_id: Some(id(&[1; 18])),
        stateless_reset_token: Some(ResetToken([9; 16])),
        retry_source_connection_id: Some(id(&[4; 8])),
        ..client.clone()
    };
    let seed = |side, parameters: &TransportParameters| {
        let mut bytes = vec![side];
        parameters.write(&mut bytes);
        bytes
    };
    let with = |mut seed: Vec<u8>, identifier, value: &[u8]| {
        varint::write(&mut seed, identifier);
        varint::write(&mut seed, value.len() as u64);
        seed.extend_from_slice(value);
        seed
    };
    // Two addresses with ports, an ID of 4 bytes, a token.
    let address = [&[127; 24][..], &[4], &[5; 4], &[6; 16]].concat();
    let preferred_address = with(seed(FROM_SERVER, &server), 0x0d, &address);
    // More versions than are kept; the last is the chosen one.
    let reserved = (0..66).map(|index| 0x0a1a_2a3a + 16 * index);
    let versions: Vec<u8> = [1].into_iter().chain(reserved).chain([1]).flat_map(u32::to_be_bytes).collect();
    vec![
        ("client", seed(FROM_CLIENT, &client)),
        ("server", seed(FROM_SERVER, &server)),
        ("preferred_address", preferred_address),
        ("versions", with(vec![FROM_CLIENT], 0x11, &versions)),
        ("nothing", seed(FROM_CLIENT, &TransportParameters::default())),
    ]
}

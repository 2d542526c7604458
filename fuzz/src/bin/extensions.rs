//! The frames of this project's extensions from a peer that has agreed to them: acknowledgements with windows, tokens of
//! groups, and codes over the ends of streams, whose data may come before. Records of one byte for the kind, two for a length and that many bytes, which follow the frame's type.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_transport::TransportConfig;
use posthaste_units::Duration;
use posthaste_wire::frame::{ack_window, group, stream, tail_code};
use posthaste_wire::packet::PacketType;
use posthaste_wire::{TransportParameters, varint};

#[path = "../../../crates/transport/tests/support/mod.rs"]
mod support;

use support::arena::Arena;
use support::rogue::Oddity;

/// Longest payload of a record.
const MAX_LEN: usize = 1300;
/// Records that are read of one input.
const MAX_RECORDS: usize = 64;

fn agreed(mut parameters: TransportParameters) -> Vec<u8> {
    parameters.group_size = Some(4);
    parameters.ack_window = true;
    parameters.tail_code = 1 << 20;
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    bytes
}

fuzz_target!(|input: &[u8]| {
    let grouped = posthaste_schemes::named("mquic-cubic").expect("a profile that comes with it");
    let repair = posthaste_schemes::repair::tail::Parameters { code: true, ..Default::default() };
    let profile = grouped.to_builder("extensions").repair(repair).build().expect("a profile");
    let transport = TransportConfig { profile, ..support::defaults() };
    let config = support::tls::server_config(1).with_transport(transport.into());
    let mut arena = Arena::server_with(config, Box::new(|parameters| agreed(parameters)));
    arena.exchange();
    let mut rest = input;
    for _ in 0..MAX_RECORDS {
        let Some(([kind, low, high], after)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (bytes, after) = after.split_at(length.min(after.len()).min(MAX_LEN));
        rest = after;
        let frame_type = match kind % 7 {
            0 => ack_window::TYPE,
            1 => ack_window::TYPE_ECN,
            2 => group::TYPE,
            3 => tail_code::TYPE,
            // With offset and length.
            4 => stream::TYPE | 6,
            5 => {
                arena.run_for(Duration::from_millis(length as u64));
                continue;
            }
            _ => {
                arena.exchange();
                continue;
            }
        };
        if arena.rogue.has_keys(PacketType::Short) {
            let mut payload = Vec::new();
            varint::write(&mut payload, frame_type);
            payload.extend_from_slice(bytes);
            arena.send_raw(&payload, Oddity::default());
        }
    }
    arena.is_listening = false;
    arena.run_for(Duration::from_secs(300));
    assert_eq!(arena.endpoint.connections(), 0, "the connection is forgotten");
    assert_eq!(arena.endpoint.next_timeout(), None, "no timer is left");
});

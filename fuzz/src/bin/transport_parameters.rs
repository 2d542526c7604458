//! The transport parameters extension from either side: no panic, and what was accepted encodes to what is accepted
//! as the same. The lowest bit of the first byte picks the side; the rest of the input is the extension.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_wire::{DecodeError, Side, TransportParameters};

fuzz_target!(|input: &[u8]| {
    let Some((choice, extension)) = input.split_first() else { return };
    let from = if choice & 1 == 0 { Side::Client } else { Side::Server };
    match TransportParameters::parse(extension, from) {
        Ok(parameters) => {
            assert!(parameters.grease.is_none());
            assert!(parameters.max_udp_payload_size >= 1200);
            assert!(parameters.ack_delay_exponent <= 20);
            assert!(parameters.active_connection_id_limit >= 2);
            let mut encoded = Vec::new();
            parameters.write(&mut encoded);
            assert_eq!(TransportParameters::parse(&encoded, from), Ok(parameters));
        }
        Err(error) => assert_eq!(error.code, DecodeError::TRANSPORT_PARAMETER_ERROR),
    }
});

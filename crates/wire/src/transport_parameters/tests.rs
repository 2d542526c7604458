use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;

fn encode(parameters: &TransportParameters) -> Vec<u8> {
    let mut buffer = Vec::new();
    parameters.write(&mut buffer);
    buffer
}

fn refused(bytes: &[u8], from: Side) -> &'static str {
    let error = TransportParameters::parse(bytes, from).unwrap_err();
    assert_eq!(error.code, DecodeError::TRANSPORT_PARAMETER_ERROR);
    error.reason
}

fn integer_parameter(identifier: u64, value: u64) -> Vec<u8> {
    let mut buffer = Vec::new();
    varint::write(&mut buffer, identifier);
    varint::write(&mut buffer, varint::len(value) as u64);
    varint::write(&mut buffer, value);
    buffer
}

fn bytes_parameter(identifier: u64, value: &[u8]) -> Vec<u8> {
    let mut buffer = Vec::new();
    write_bytes(&mut buffer, identifier, value);
    buffer
}

/// IPv4 and IPv6 addresses and ports, an ID of this length, a token.
fn preferred_address(id_len: u8) -> Vec<u8> {
    let mut value = vec![1; 24];
    value.push(id_len);
    value.extend(std::iter::repeat_n(2, usize::from(id_len) + 16));
    value
}

#[test]
fn nothing_means_the_defaults() {
    let parsed = TransportParameters::parse(&[], Side::Client).unwrap();
    assert_eq!(parsed, TransportParameters::default());
    assert_eq!(
        (parsed.max_udp_payload_size, parsed.ack_delay_exponent, parsed.max_ack_delay),
        (65_527, 3, 25)
    );
    assert_eq!(parsed.active_connection_id_limit, 2);
    assert!(encode(&parsed).is_empty());
}

#[test]
fn bytes_of_a_known_set() {
    let parameters = TransportParameters {
        max_idle_timeout: 30_000,
        initial_max_data: 1 << 20,
        disable_active_migration: true,
        initial_source_connection_id: ConnectionId::new(&[1, 2, 3]),
        grease: Some((27, vec![9, 9])),
        ..TransportParameters::default()
    };
    let expected =
        [0x01, 4, 0x80, 0, 0x75, 0x30, 0x04, 4, 0x80, 0x10, 0, 0, 0x0c, 0, 0x0f, 3, 1, 2, 3, 0x1b, 2, 9, 9];
    assert_eq!(encode(&parameters), expected);
}

#[test]
fn value_bounds() {
    // spec: rfc9000 7.4 invalid-value-closes, 18.2 id-limit-checked
    let limit = |id, value| TransportParameters::parse(&integer_parameter(id, value), Side::Client).is_ok();
    for (identifier, good, bad) in [
        (0x03, 1200, 1199),
        (0x08, 1 << 60, (1 << 60) + 1),
        (0x09, 1 << 60, (1 << 60) + 1),
        (0x0a, 20, 21),
        (0x0b, (1 << 14) - 1, 1 << 14),
        (0x0e, 2, 1),
    ] {
        assert!(limit(identifier, good), "{identifier:#x} = {good}");
        assert!(!limit(identifier, bad), "{identifier:#x} = {bad}");
        refused(&integer_parameter(identifier, bad), Side::Client);
    }
    // Above the default, yet nothing excludes it.
    assert!(limit(0x03, 70_000));
}

#[test]
fn integers_fill_their_length() {
    refused(&[0x01, 2, 5, 5], Side::Client);
    refused(&[0x01, 1, 0x40], Side::Client);
    refused(&[0x01, 0], Side::Client);
    // Longer than needed is allowed.
    let parsed = TransportParameters::parse(&[0x01, 2, 0x40, 5], Side::Client).unwrap();
    assert_eq!(parsed.max_idle_timeout, 5);
}

#[test]
fn lengths_of_the_others() {
    refused(&bytes_parameter(0x0f, &[1; 21]), Side::Client);
    refused(&bytes_parameter(0x00, &[1; 21]), Side::Server);
    refused(&bytes_parameter(0x10, &[1; 21]), Side::Server);
    refused(&bytes_parameter(0x02, &[1; 15]), Side::Server);
    refused(&bytes_parameter(0x02, &[1; 17]), Side::Server);
    refused(&bytes_parameter(0x0c, &[1]), Side::Client);
    assert!(TransportParameters::parse(&bytes_parameter(0x0f, &[]), Side::Client).is_ok());
}

#[test]
fn duplicates_are_refused() {
    // spec: rfc9000 7.4 duplicate-closes
    let once = integer_parameter(0x04, 7);
    assert_eq!(refused(&[&once[..], &once].concat(), Side::Client), "duplicate transport parameter");
    let unknown = bytes_parameter(0x3fff, b"x");
    assert_eq!(refused(&[&unknown[..], &unknown].concat(), Side::Client), "duplicate transport parameter");
    let preferred = bytes_parameter(0x0d, &preferred_address(4));
    assert_eq!(
        refused(&[&preferred[..], &preferred].concat(), Side::Server),
        "duplicate transport parameter"
    );
}

#[test]
fn unknown_parameters_are_skipped() {
    // spec: rfc9000 7.4.2 unknown-ignored
    let mut bytes = Vec::new();
    for identifier in 0x21..0x21 + 10 * MAX_UNKNOWN_REMEMBERED as u64 {
        bytes.extend(bytes_parameter(identifier, b"whatever"));
    }
    bytes.extend(integer_parameter(0x04, 7));
    let parsed = TransportParameters::parse(&bytes, Side::Client).unwrap();
    assert_eq!(parsed, TransportParameters { initial_max_data: 7, ..TransportParameters::default() });
}

#[test]
fn server_only_parameters_from_a_client_are_refused() {
    // spec: rfc9000 18.2 client-overreach-closes
    for (identifier, value) in
        [(0x00, vec![1; 8]), (0x02, vec![1; 16]), (0x0d, preferred_address(8)), (0x10, vec![1; 8])]
    {
        let bytes = bytes_parameter(identifier, &value);
        assert_eq!(refused(&bytes, Side::Client), "transport parameter that only a server may send");
        assert!(TransportParameters::parse(&bytes, Side::Server).is_ok(), "{identifier:#x}");
    }
}

#[test]
fn preferred_addresses_are_checked() {
    // spec: rfc9000 18.2 preferred-checked
    let parse = |value: &[u8]| TransportParameters::parse(&bytes_parameter(0x0d, value), Side::Server);
    assert_eq!(parse(&preferred_address(20)), Ok(TransportParameters::default()));
    for wrong in [preferred_address(0), preferred_address(21), [&preferred_address(8)[..], &[1]].concat()] {
        refused(&bytes_parameter(0x0d, &wrong), Side::Server);
    }
    let whole = preferred_address(8);
    for cut in 0..whole.len() {
        refused(&bytes_parameter(0x0d, &whole[..cut]), Side::Server);
    }
    let without_id = [bytes_parameter(0x0f, &[]), bytes_parameter(0x0d, &preferred_address(8))].concat();
    refused(&without_id, Side::Server);
}

#[test]
fn version_information_is_whole_versions_none_of_them_zero() {
    // spec: rfc9368 4 parsed, 4 malformed-closes, 4 malformed-code, 4 zero-is-malformed
    let parse = |value: &[u8]| TransportParameters::parse(&bytes_parameter(0x11, value), Side::Server);
    let parsed = parse(&[0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf]).unwrap().version_information.unwrap();
    assert_eq!(parsed, VersionInformation { chosen: 1, available: vec![0x6b33_43cf] });
    for wrong in [&[][..], &[0, 0, 0], &[0, 0, 0, 0], &[0, 0, 0, 1, 0, 0, 0, 0], &[0, 0, 0, 1, 2]] {
        refused(&bytes_parameter(0x11, wrong), Side::Server);
    }
    let many = parse(&[1; 4 * 1000]).unwrap().version_information.unwrap();
    assert_eq!(many.available.len(), MAX_AVAILABLE_VERSIONS);
}

#[test]
fn a_client_lists_the_version_that_it_has_chosen() {
    // spec: rfc9368 4 unlisted-is-malformed
    let mut listed: Vec<u8> = [[0_u8, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]].concat();
    refused(&bytes_parameter(0x11, &listed), Side::Client);
    // However late in its list.
    listed.extend([[9_u8; 4]; 2 * MAX_AVAILABLE_VERSIONS].concat());
    refused(&bytes_parameter(0x11, &listed), Side::Client);
    listed.extend([0_u8, 0, 0, 1]);
    let parsed = TransportParameters::parse(&bytes_parameter(0x11, &listed), Side::Client).unwrap();
    // What is kept of it lists the version, too.
    assert_eq!(TransportParameters::parse(&encode(&parsed), Side::Client), Ok(parsed));
    listed.extend([0_u8; 4]);
    refused(&bytes_parameter(0x11, &listed), Side::Client);
    // A server may be about to give its version up.
    let leaving = bytes_parameter(0x11, &[0, 0, 0, 1]);
    assert!(TransportParameters::parse(&leaving, Side::Server).is_ok());
    refused(&leaving, Side::Client);
}

#[test]
fn extensions_are_checked() {
    // spec: rfc9287 3 value-closes
    refused(&bytes_parameter(0x2ab2, &[1]), Side::Client);
    refused(&bytes_parameter(0x35a7_c90e, &[1]), Side::Server);
    assert!(TransportParameters::parse(&bytes_parameter(0x35a7_c90e, &[]), Side::Server).unwrap().ack_window);
    let delays = |minimum, maximum| {
        [integer_parameter(0xff04_de1b, minimum), integer_parameter(0x0b, maximum)].concat()
    };
    refused(&delays(1001, 1), Side::Client);
    let parsed = TransportParameters::parse(&delays(1000, 1), Side::Client).unwrap();
    assert_eq!(parsed.min_ack_delay, Some(1000));
    // Against the default of max_ack_delay.
    refused(&integer_parameter(0xff04_de1b, 25_001), Side::Client);
    assert_eq!(refused(&integer_parameter(0x2d5c_1a7a, 0), Side::Client), "group_size of 0");
    let datagrams = TransportParameters::parse(&integer_parameter(0x20, 1200), Side::Client).unwrap();
    assert_eq!(datagrams.max_datagram_frame_size, 1200);
    let twice = [bytes_parameter(0x2ab2, &[]), bytes_parameter(0x2ab2, &[])].concat();
    assert_eq!(refused(&twice, Side::Client), "duplicate transport parameter");
}

#[test]
fn a_clients_rate_and_window_are_its_alone_and_above_zero() {
    let rate: fn(&TransportParameters) -> Option<u64> = |parsed| parsed.guaranteed_rate;
    let window: fn(&TransportParameters) -> Option<u64> = |parsed| parsed.initial_window;
    for (id, name, stated) in
        [(0x21a7_fd77, "guaranteed_rate", rate), (0x2b3e_914d, "initial_window", window)]
    {
        for value in [1, 125_000, 125_000_000_000, varint::MAX] {
            let encoded = integer_parameter(id, value);
            let parsed = TransportParameters::parse(&encoded, Side::Client).unwrap();
            assert_eq!(stated(&parsed), Some(value));
            assert_eq!(encode(&parsed), encoded);
        }
        assert_eq!(refused(&integer_parameter(id, 0), Side::Client), format!("{name} of 0"));
        assert_eq!(refused(&integer_parameter(id, 1), Side::Server), format!("{name} from a server"));
        let twice = [integer_parameter(id, 1), integer_parameter(id, 2)].concat();
        assert_eq!(refused(&twice, Side::Client), "duplicate transport parameter");
        // Empty, longer than the integer in it, and cut off within it.
        for value in [&[][..], &[1, 0], &[0x80, 0, 1]] {
            refused(&bytes_parameter(id, value), Side::Client);
        }
    }
}

#[test]
fn an_announced_length_beyond_the_end_is_refused() {
    refused(&[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Side::Server);
    refused(&[0x0f, 5, 1, 2], Side::Server);
}

fn integer() -> impl Strategy<Value = u64> {
    (0..=varint::MAX, 0_u32..62).prop_map(|(value, shift)| value >> shift)
}

fn id() -> impl Strategy<Value = Option<ConnectionId>> {
    of(vec(any::<u8>(), 0..=20).prop_map(|bytes| ConnectionId::new(&bytes).unwrap()))
}

fn parameters() -> impl Strategy<Value = TransportParameters> {
    let limits = [(); 7].map(|()| integer());
    let streams = [0..=1_u64 << 60, 0..=1_u64 << 60];
    let acks = (0..=20_u64, 0..1_u64 << 14, any::<bool>());
    let rest = (1200..70_000_u64, 2..=varint::MAX, of(any::<[u8; 16]>()));
    let versions = of((1..=u32::MAX, vec(1..=u32::MAX, 0..4)));
    let extensions = (versions, any::<bool>(), of(0..=1000_u64), of(1..=varint::MAX), any::<bool>());
    let strategy = (limits, streams, acks, rest, [id(), id(), id()], extensions);
    strategy.prop_map(|(limits, streams, acks, rest, ids, extensions)| TransportParameters {
        original_destination_connection_id: ids[0],
        max_idle_timeout: limits[0],
        stateless_reset_token: rest.2.map(ResetToken),
        max_udp_payload_size: rest.0,
        initial_max_data: limits[1],
        initial_max_stream_data_bidi_local: limits[2],
        initial_max_stream_data_bidi_remote: limits[3],
        initial_max_stream_data_uni: limits[4],
        initial_max_streams_bidi: streams[0],
        initial_max_streams_uni: streams[1],
        ack_delay_exponent: acks.0,
        max_ack_delay: acks.1,
        disable_active_migration: acks.2,
        active_connection_id_limit: rest.1,
        initial_source_connection_id: ids[1],
        retry_source_connection_id: ids[2],
        version_information: extensions.0.map(|(chosen, available)| VersionInformation { chosen, available }),
        grease_quic_bit: extensions.1,
        min_ack_delay: extensions.2.map(|permille| permille * acks.1),
        group_size: extensions.3,
        ack_window: extensions.4,
        tail_code: limits[6],
        // Servers, whose parameters these are, may not send it.
        guaranteed_rate: None,
        initial_window: None,
        max_datagram_frame_size: limits[5],
        grease: None,
    })
}

proptest! {
    #[test]
    fn round_trip(parameters in parameters(), grease in of((0_u64..1000, vec(any::<u8>(), 0..30)))) {
        // spec: rfc9000 7.4 sent-once
        let grease = grease.map(|(n, value)| (31 * n + 27, value));
        let bytes = encode(&TransportParameters { grease, ..parameters.clone() });
        prop_assert_eq!(TransportParameters::parse(&bytes, Side::Server), Ok(parameters));
    }

    #[test]
    fn cut_anywhere(parameters in parameters(), cut: prop::sample::Index) {
        // A cut is an error, or else falls between two parameters: then what is there decodes and encodes alike.
        let bytes = encode(&parameters);
        let cut = &bytes[..cut.index(bytes.len() + 1)];
        if let Ok(parsed) = TransportParameters::parse(cut, Side::Server) {
            prop_assert_eq!(encode(&parsed), cut);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), from_server: bool) {
        let from = if from_server { Side::Server } else { Side::Client };
        if let Ok(parsed) = TransportParameters::parse(&bytes, from) {
            prop_assert_eq!(TransportParameters::parse(&encode(&parsed), from), Ok(parsed));
        }
    }
}

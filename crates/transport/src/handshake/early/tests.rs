use posthaste_wire::ConnectionId;

use super::*;

#[test]
fn of_a_former_connection_nothing_but_limits_is_relied_on() {
    // spec: rfc9000 7.4.1 not-remembered, 7.4.1 new-values-instead
    let id = ConnectionId::new(&[1; 8]).unwrap();
    let limits = TransportParameters {
        active_connection_id_limit: 7,
        initial_max_data: 1_000,
        initial_max_streams_uni: 3,
        ..TransportParameters::default()
    };
    let former = TransportParameters {
        ack_delay_exponent: 9,
        max_ack_delay: 77,
        original_destination_connection_id: Some(id),
        initial_source_connection_id: Some(id),
        retry_source_connection_id: Some(id),
        ..limits.clone()
    };
    assert_eq!(Remembered::of(&former).parameters(), limits);
}

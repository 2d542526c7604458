//! The TCP model's constants of the TLS handshake, compared with the real one.

use rustls::{ClientConnection, Connection, ServerConnection};

use posthaste_lab::tls;
use posthaste_lab_tcp::handshake::{CLIENT_FINISHED, CLIENT_HELLO, SERVER_FLIGHT};

fn flight(from: &mut Connection, to: &mut Connection) -> u64 {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).expect("a vector takes everything");
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).expect("a slice can be read");
        to.process_new_packets().expect("a valid flight");
    }
    bytes.len() as u64
}

#[test]
fn the_flights_are_as_long_as_those_of_the_real_handshake() {
    tls::seed_thread(posthaste_units::Rng::from_test_seed(1));
    let name = tls::SERVER_NAME.try_into().expect("a valid name");
    let mut client = Connection::from(ClientConnection::new(tls::client(), name).expect("a client"));
    let mut server = Connection::from(ServerConnection::new(tls::server()).expect("a server"));
    let flights = [
        flight(&mut client, &mut server),
        flight(&mut server, &mut client),
        flight(&mut client, &mut server),
    ];
    assert!(!client.is_handshaking() && !server.is_handshaking());
    assert_eq!(flights, [CLIENT_HELLO, SERVER_FLIGHT, CLIENT_FINISHED]);
    assert_eq!(flight(&mut server, &mut client), 0, "no tickets");
}

//! What TLS 1.3 and HTTP add to the bytes of the streams: the constants of the model.
//!
//! The flights are those of the certificates and settings in [`crate::tls`], which the QUIC stacks really
//! exchange: X25519, an Ed25519 certificate, no session tickets. A test performs that handshake over a byte stream
//! and counts. HTTP's own sizes are its RFC's frame layouts with the settings that browsers and servers send.

/// The client's first flight: a record with `ClientHello`.
pub(super) const CLIENT_HELLO: u64 = 240;

/// The server's flight: `ServerHello` to `Finished`.
pub(super) const SERVER_FLIGHT: u64 = 592;

/// The client's second flight: `ChangeCipherSpec` for middleboxes and `Finished`.
pub(super) const CLIENT_FINISHED: u64 = 80;

/// What a TLS record adds: header, content type and tag (RFC 8446 5.2).
pub(super) const RECORD_OVERHEAD: u64 = 5 + 1 + 16;

/// Most bytes in a record (RFC 8446 5.1).
pub(super) const MAX_RECORD: u64 = 1 << 14;

/// What an HTTP/2 frame adds (RFC 9113 4.1).
pub(super) const FRAME_OVERHEAD: u64 = 9;

/// The last chunk of HTTP/1.1's chunked coding (RFC 9112 7.1), where an end comes after its data has left.
pub(super) const LAST_CHUNK: u64 = 5;

/// The client's preface, SETTINGS of four values and `WINDOW_UPDATE`, in one record.
pub(super) const CLIENT_SETTINGS: u64 =
    24 + (FRAME_OVERHEAD + 4 * 6) + (FRAME_OVERHEAD + 4) + RECORD_OVERHEAD;

/// The server's SETTINGS of three values and its acknowledgement of the client's.
pub(super) const SERVER_SETTINGS: u64 = (FRAME_OVERHEAD + 3 * 6) + FRAME_OVERHEAD + RECORD_OVERHEAD;

/// The client's acknowledgement of the server's settings.
pub(super) const SETTINGS_ACK: u64 = FRAME_OVERHEAD + RECORD_OVERHEAD;

#[cfg(test)]
mod tests {
    use rustls::{ClientConnection, Connection, ServerConnection};

    use super::*;
    use crate::tls;

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
}

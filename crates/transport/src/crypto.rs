//! The seam to TLS: a handshake behind [`CryptoSession`], and packet protection (RFC 9001).
//!
//! Packet keys are rustls's own boxed traits; what is abstracted is where they come from, so that the lab can
//! inject a provider whose transcripts repeat.

mod one_rtt;
mod protection;
mod tls;

use rustls::quic::DirectionalKeys;
pub(crate) use rustls::quic::{KeyChange, Keys};
use rustls_pki_types::CertificateDer;

use crate::error::CryptoFailure;

pub(crate) use one_rtt::OneRttKeys;
pub(crate) use protection::{
    Opened, SealError, TAG_LEN, min_payload_len, open, remove_header_protection, seal,
};
pub(crate) use tls::{InitialKeys, client_session, server_session};

/// How much the 1-RTT keys may be used for (RFC 9001 section 6.6). The cipher's own limits hold beside these; the
/// defaults leave it at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// Packets sealed with one key; keys are updated at half of it.
    pub sealed: u64,
    /// Packets received that cannot be opened, over all keys; then the connection ends with `AEAD_LIMIT_REACHED`.
    pub forged: u64,
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self { sealed: u64::MAX, forged: u64::MAX }
    }
}

/// A TLS 1.3 handshake that carries QUIC's transport parameters (RFC 9001 section 4).
pub trait CryptoSession: Send {
    /// Hands over handshake bytes, in order, of the level that the session reads now.
    ///
    /// # Errors
    /// The alert to send, if the peer's handshake is unacceptable.
    fn read_handshake(&mut self, data: &[u8]) -> Result<(), CryptoFailure>;

    /// Appends the handshake bytes to send next. A key change means that what follows belongs to the next
    /// level; call again until there are neither bytes nor keys.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// False once the handshake is complete (RFC 9001 section 4.1.1).
    fn is_handshaking(&self) -> bool;

    /// The peer's transport parameters, once they have arrived.
    fn peer_transport_parameters(&self) -> Option<&[u8]>;

    /// The keys of 0-RTT packets: on a client once it may send such, when the peer's transport parameters are those
    /// of last time; on a server once it has accepted them.
    fn early_keys(&self) -> Option<DirectionalKeys>;

    /// On a client whose handshake is complete: the server has accepted 0-RTT packets.
    fn is_early_data_accepted(&self) -> bool;

    /// True once the handshake is known to go on from an earlier session.
    fn is_resumed(&self) -> bool;

    /// The application protocol agreed on.
    fn application_protocol(&self) -> Option<&[u8]>;

    /// On a server, the name that the client asked for.
    fn server_name(&self) -> Option<&str>;

    /// The peer's certificate chain, leaf first.
    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]>;
}

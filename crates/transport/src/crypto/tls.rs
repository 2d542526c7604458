//! [`CryptoSession`] over rustls.

use std::sync::Arc;

use posthaste_wire::packet::version;
use posthaste_wire::{ConnectionId, Side};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{
    ClientConnection, Connection, DirectionalKeys, KeyChange, Keys, ServerConnection, Suite, Version,
};
use rustls::{CipherSuite, HandshakeKind, SupportedCipherSuite};
use rustls_pki_types::{CertificateDer, ServerName};

use super::CryptoSession;
use crate::error::CryptoFailure;

/// TLS's `internal_error`, for failures that rustls names no alert for.
const ALERT_INTERNAL_ERROR: u8 = 80;

/// Derives Initial keys (RFC 9001 section 5.2): always AES-128-GCM, whatever TLS agrees on later.
#[derive(Clone)]
pub(crate) struct InitialKeys(Suite);

impl InitialKeys {
    /// Finds the suite in a provider. One that is to agree on other ciphers only gets that of aws-lc-rs: what TLS may
    /// choose from does not bear on Initial packets. `None` if the suite is not fit for QUIC.
    pub(crate) fn from_provider(provider: &rustls::crypto::CryptoProvider) -> Option<Self> {
        let suites = provider.cipher_suites.iter().chain([&TLS13_AES_128_GCM_SHA256]);
        let mut tls13 = suites.filter_map(SupportedCipherSuite::tls13);
        let suite = tls13.find(|suite| suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256)?;
        suite.quic_suite().map(Self)
    }

    /// The Initial keys of a connection of this version whose client first sent to `destination`.
    pub(crate) fn derive(&self, version: u32, destination: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        // spec: rfc9001 5.2 initial-by-hkdf-label
        self.0.keys(destination.as_slice(), side, labels(version))
    }
}

/// The version that key derivation is labelled with (RFC 9001 section 5.1, RFC 9369 section 3.3).
const fn labels(version: u32) -> Version {
    match version {
        // spec: rfc9369 3 as-version-1
        version::V2 => Version::V2,
        _ => Version::V1,
    }
}

/// A client's session, with its transport parameters encoded.
pub(crate) fn client_session(
    config: Arc<rustls::ClientConfig>,
    version: u32,
    server_name: ServerName<'static>,
    parameters: Vec<u8>,
) -> Result<Box<dyn CryptoSession>, rustls::Error> {
    // What rustls sees to in a QUIC client: TLS 1.3 alone, the server authenticated, no compatibility mode, no
    // EndOfEarlyData, no KeyUpdate, tickets checked and kept as they come.
    // spec: rfc9000 7 authenticated-key-exchange, rfc9001 4.2 only-new-tls-offered, 4.2 old-tls-closes
    // spec: rfc9001 4.4 server-authenticated
    // spec: rfc9001 4.4 late-request-closes, 4.6.1 early-size-checked, 5.3 suite-has-header-protection
    // spec: rfc9001 8.2 parameters-sent
    // spec: rfc9001 8.2 parameters-only-in-quic, 8.3 no-end-of-early-data, 8.4 no-compatibility-mode
    // spec: rfc9001 9.2 tickets-opaque
    // spec: rfc9114 3.1 certificate-verified, 3.1 unverified-without-authority, 3.2 host-indicated, 3.2 sni-for-names
    let client = ClientConnection::new(config, labels(version), server_name, parameters)?;
    Ok(Box::new(TlsSession { tls: Connection::Client(client) }))
}

/// A server's session, with its transport parameters encoded.
pub(crate) fn server_session(
    config: Arc<rustls::ServerConfig>,
    version: u32,
    parameters: Vec<u8>,
) -> Result<Box<dyn CryptoSession>, rustls::Error> {
    // And in a QUIC server: an early data size of nothing else than 0 or 2^32 - 1, no requests after the handshake.
    // spec: rfc9001 4.4 no-late-authentication, 4.4 no-late-request, 4.6.1 early-size-sentinel
    // spec: rfc9001 5.3 unknown-suite-tolerated, 8.2 parameters-sent
    // spec: rfc9001 8.2 parameters-missing-closes
    let server = ServerConnection::new(config, labels(version), parameters)?;
    Ok(Box::new(TlsSession { tls: Connection::Server(server) }))
}

struct TlsSession {
    tls: Connection,
}

impl CryptoSession for TlsSession {
    fn read_handshake(&mut self, data: &[u8]) -> Result<(), CryptoFailure> {
        // spec: rfc9001 4.8 alerts-are-fatal, 6 tls-key-update-closes, 6 no-tls-key-update
        self.tls.read_hs(data).map_err(|error| {
            let alert = self.tls.alert().map_or(ALERT_INTERNAL_ERROR, u8::from);
            CryptoFailure { alert, reason: error.to_string() }
        })
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        self.tls.write_hs(out)
    }

    fn is_handshaking(&self) -> bool {
        match &self.tls {
            Connection::Client(client) => client.is_handshaking(),
            Connection::Server(server) => server.is_handshaking(),
        }
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.tls.quic_transport_parameters()
    }

    fn early_keys(&self) -> Option<DirectionalKeys> {
        // spec: rfc9001 5.6 early-data-only-on-request
        self.tls.zero_rtt_keys()
    }

    fn is_early_data_accepted(&self) -> bool {
        match &self.tls {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(_) => false,
        }
    }

    fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    fn application_protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    fn server_name(&self) -> Option<&str> {
        match &self.tls {
            Connection::Client(_) => None,
            Connection::Server(server) => server.server_name(),
        }
    }

    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }
}

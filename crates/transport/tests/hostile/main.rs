//! One endpoint against a peer that breaks the protocol: the right error code and frame type in our close, never a
//! panic, and no more state than the bounds allow.

#[path = "../support/mod.rs"]
mod support;

mod acks;
mod bounds;
mod conduct;
mod credit;
mod floods;
mod frames;
mod fuzz_corpus;
mod handshake;
mod keys;
mod memories;
mod mutations;
mod probes;
mod retries;
mod stateless;
mod tail_code;

/// Transport error codes (RFC 9000 section 20.1).
mod code {
    pub(crate) const FLOW_CONTROL: u64 = 0x03;
    pub(crate) const STREAM_LIMIT: u64 = 0x04;
    pub(crate) const STREAM_STATE: u64 = 0x05;
    pub(crate) const FINAL_SIZE: u64 = 0x06;
    pub(crate) const FRAME_ENCODING: u64 = 0x07;
    pub(crate) const TRANSPORT_PARAMETER: u64 = 0x08;
    pub(crate) const CONNECTION_ID_LIMIT: u64 = 0x09;
    pub(crate) const PROTOCOL_VIOLATION: u64 = 0x0a;
    pub(crate) const APPLICATION: u64 = 0x0c;
    pub(crate) const CRYPTO_BUFFER_EXCEEDED: u64 = 0x0d;
    pub(crate) const KEY_UPDATE: u64 = 0x0e;
    pub(crate) const AEAD_LIMIT_REACHED: u64 = 0x0f;
    /// TLS's `unexpected_message`.
    pub(crate) const UNEXPECTED_MESSAGE: u64 = 0x10a;
}

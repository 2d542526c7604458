//! A sans-IO QUIC transport (RFC 9000, 9001, 9002) whose decisions about speed are policies.

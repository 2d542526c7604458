//! Acknowledgements as their sender: the packets that have arrived, when to acknowledge them, and what the peer is asked to
//! acknowledge (RFC 9000 section 13.2, draft-ietf-quic-ack-frequency).

pub(crate) mod arrivals;
pub(crate) mod frequency;
pub(crate) mod received;

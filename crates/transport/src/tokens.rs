//! Tokens: address tokens of Retry and `NEW_TOKEN` (RFC 9000 section 8.1), the guard against their replay, and stateless
//! reset tokens (section 10.3.2).

pub(crate) mod address;
pub(crate) mod new_token;
pub(crate) mod replay_guard;
pub(crate) mod reset;

//! `GROUP_TOKEN`: the group of connections that a server coordinates. An extension, used only between ends that both
//! sent the transport parameter `group_size`; `docs/spec/groups.md` is its specification.
//!
//! From a server: "the connection is in the group of this name". From a client: "let the connection join the group".

/// Wire type of `GROUP_TOKEN`, drawn at random as RFC 9000 section 22.1.1 asks of provisional codepoints.
pub const TYPE: u64 = 0x2d5c_1a79;

/// Bytes of a token.
pub const TOKEN_LEN: usize = 16;

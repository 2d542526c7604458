//! What third parties cannot do, and why: such a cell is shown, not run.

use super::Role;
use super::case::{Case, Proof};

/// Why `peer` in `role` cannot play `case`; `None` if it can.
pub(crate) fn missing(peer: &str, role: Role, case: &Case) -> Option<&'static str> {
    match (case.proof, role) {
        (Proof::KeyUpdate, _) => match peer {
            "curl" => Some("libcurl never asks ngtcp2 for it"),
            "quiche" => Some("it follows updates, but has no call that begins one"),
            _ => None,
        },
        (Proof::Ecn, _) => match peer {
            "aioquic" => Some("its acknowledgements have no ECN counts"),
            "quiche" => Some("its acknowledgements have no ECN counts (`ecn_counts: None`)"),
            _ => None,
        },
        (Proof::Version2, _) => match peer {
            "quiche" | "quinn" => Some("it speaks version 1 only"),
            "curl" => Some("libcurl begins with version 1 always"),
            _ => None,
        },
        (Proof::Migration, _) => match (peer, role) {
            ("curl", _) => Some("libcurl has one socket for a connection, and no call to replace it"),
            ("quiche", Role::Server) => Some(
                "what was under way on the path that a client has left, it never sends again (its issue 2452, open), \
                 so that the download stands still",
            ),
            _ => None,
        },
        _ => None,
    }
}

//! What third parties cannot do, and why: such a cell is shown, not run.

use super::Role;
use super::case::{Case, Proof};

/// Why `peer` in `role` cannot play `case`; `None` if it can.
pub(crate) fn missing(peer: &str, role: Role, case: &Case) -> Option<&'static str> {
    match (case.proof, role) {
        (Proof::KeyUpdate, _) => match peer {
            "chromium" => {
                Some("it updates keys when a key is nearly used up, and no switch makes that sooner")
            }
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
            "curl" => Some("libcurl begins with version 1, without an option"),
            _ => None,
        },
        (Proof::Migration, _) => match peer {
            "curl" => Some("libcurl has one socket for a connection, and no call to replace it"),
            _ => None,
        },
        _ => None,
    }
}

//! What third parties cannot do, and why: such a cell is shown, not run. What they do most of the time: such a cell is
//! tried again, and says so.

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
        (Proof::Datagrams, _) => match peer {
            "chromium" => Some("browsers send them only in WebTransport, which our server does not speak"),
            "curl" => Some("libcurl has no call for them"),
            _ => None,
        },
        (Proof::Migration, _) => match (peer, role) {
            ("curl", _) => Some("libcurl has one socket for a connection, and no call to replace it"),
            ("quiche", Role::Server) => Some(FORGETS_OLD_PATHS),
            _ => None,
        },
        _ => None,
    }
}

/// Tries of a cell that [`sometimes_fails`].
pub(crate) const TRIES: u32 = 3;

const FORGETS_OLD_PATHS: &str = "what was under way on the path that a client has left, it never sends again (its \
                                 issue 2452, open), so that the download stands still";

/// Why `peer` in `role` may fail `case` by a fault of its own, now and then; `None` if nothing of the kind is known.
pub(crate) fn sometimes_fails(peer: &str, role: Role, case: &Case) -> Option<&'static str> {
    match (case.proof, peer, role) {
        // Whether anything is under way in that moment is a matter of luck.
        (Proof::Rebinding, "quiche", Role::Server) => Some(FORGETS_OLD_PATHS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::CASES;
    use super::*;
    use crate::peers::PEERS;

    #[test]
    fn only_what_is_known_to_be_theirs_is_tried_again() {
        let excused: Vec<String> = PEERS
            .iter()
            .flat_map(|peer| [Role::Client, Role::Server].map(|role| (peer.name, role)))
            .flat_map(|(peer, role)| CASES.iter().map(move |case| (peer, role, case)))
            .filter(|(peer, role, case)| sometimes_fails(peer, *role, case).is_some())
            .map(|(peer, _, case)| format!("{peer} {}", case.name))
            .collect();
        assert_eq!(excused, ["quiche rebind-port", "quiche rebind-address"]);
    }
}

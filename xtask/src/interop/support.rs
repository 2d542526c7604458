//! What third parties cannot do, and why: such a cell is shown, not run.

use super::Role;
use super::case::{Case, Proof};

/// Why `peer` in `role` cannot play `case`; `None` if it can.
pub(crate) fn missing(peer: &str, role: Role, case: &Case) -> Option<&'static str> {
    if case.ipv6 {
        return match peer {
            "quiche" | "quinn" if role == Role::Client => {
                Some("our client program of it binds an IPv4 socket")
            }
            "chromium" => {
                Some("its switch for QUIC without Alt-Svc takes names, and localhost is 127.0.0.1 to it")
            }
            _ => None,
        };
    }
    match (case.proof, role) {
        (Proof::Retry, Role::Server) => match peer {
            "quic-go" | "aioquic" => None,
            _ => Some("our server program of it has no switch for Retry yet"),
        },
        (Proof::Resumption | Proof::ZeroRtt, Role::Client) => {
            Some("our client programs have no second connection yet")
        }
        (Proof::Resumption | Proof::ZeroRtt, Role::Server) => match (peer, case.proof) {
            ("aioquic" | "quic-go", _) | ("quinn" | "quiche", Proof::Resumption) => None,
            _ => Some("our server program of it does not permit early data yet"),
        },
        (Proof::KeyUpdate, _) => match peer {
            "quic-go" | "quinn" => None,
            _ => Some("it updates keys only when told to, and our program of it does not yet"),
        },
        (Proof::Ecn, _) => match peer {
            "aioquic" | "quiche" => Some("it does not count ECN marks"),
            _ => None,
        },
        _ => None,
    }
}

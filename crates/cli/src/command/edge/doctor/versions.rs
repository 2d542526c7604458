//! Version negotiation: the one question that every QUIC server answers without a handshake (RFC 9000 section 6).

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::Subject;
use super::addresses::{Reached, Unreached, unbound};
use super::finding::Finding;

/// Reserved to provoke the answer (RFC 9000 section 15).
const NO_VERSION: u32 = 0x1a2a_3a4a;

/// Servers may drop what is shorter (RFC 9000 section 14.1).
const LENGTH: usize = 1200;

/// Identifiers that no other connection has, for the socket is used once.
const DESTINATION: [u8; 8] = *b"doctor-d";
const SOURCE: [u8; 8] = *b"doctor-s";

/// Time after which the question may have been lost.
const AGAIN: Duration = Duration::from_millis(300);

/// Versions of a list that are looked at.
const MOST: usize = 32;

/// The versions of the server at `address`.
///
/// # Errors
/// Nothing that fits came within `patience`.
pub(super) async fn ask(address: SocketAddr, patience: Duration) -> Result<Vec<u32>, Unreached> {
    let socket = UdpSocket::bind(unbound(address)).await.map_err(|error| Unreached::of(&error))?;
    socket.connect(address).await.map_err(|error| Unreached::of(&error))?;
    let question = question();
    let asking = async {
        let mut answer = [0; 2048];
        loop {
            socket.send(&question).await.map_err(|error| Unreached::of(&error))?;
            match timeout(AGAIN, socket.recv(&mut answer)).await {
                Ok(Ok(length)) => {
                    if let Some(versions) = versions(&answer[..length]) {
                        return Ok(versions);
                    }
                }
                Ok(Err(error)) => return Err(Unreached::of(&error)),
                Err(_) => {}
            }
        }
    };
    timeout(patience, asking).await.unwrap_or(Err(Unreached::Silent))
}

/// True if a QUIC server is at one of these addresses.
pub(super) async fn any_answers(addresses: &[SocketAddr], patience: Duration) -> bool {
    let answers = join_all(addresses.iter().map(|address| ask(*address, patience))).await;
    answers.iter().any(Result::is_ok)
}

/// The versions, of the first address with which a handshake was possible.
pub(super) async fn finding(subject: &Subject, handshakes: &[Reached]) -> Finding {
    const CHECK: &str = "quic-versions";
    let Some(works) = handshakes.iter().find(|it| it.outcome.is_ok()) else {
        return Finding::skipped(CHECK, "not checked: there is no QUIC");
    };
    let list = match ask(works.address, subject.timeout).await {
        Ok(list) => list,
        Err(error) => {
            let detail = format!("no version negotiation: {error}");
            return Finding::warning(
                CHECK,
                detail,
                "clients with newer versions wait; allow answers to unknown versions",
            );
        }
    };
    let names: Vec<_> = list.iter().map(|version| name(*version)).collect();
    if list.contains(&1) {
        return Finding::ok(CHECK, names.join(", "));
    }
    let detail = format!("version 1, which browsers speak, is not among {}", names.join(", "));
    Finding::failed(CHECK, detail, "update the QUIC server")
}

fn name(version: u32) -> String {
    match version {
        1 => "1".to_owned(),
        0x6b33_43cf => "2".to_owned(),
        // Reserved, so that clients do not rely on the list (RFC 9000 section 6.3).
        other if other & 0x0f0f_0f0f == 0x0a0a_0a0a => "a reserved one".to_owned(),
        other => format!("{other:#010x}"),
    }
}

/// A packet with a long header of no version (RFC 8999 section 5.1).
fn question() -> Vec<u8> {
    let mut packet = vec![0xc0];
    packet.extend(NO_VERSION.to_be_bytes());
    for id in [DESTINATION, SOURCE] {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet.resize(LENGTH, 0);
    packet
}

/// The versions in a packet of version negotiation that answers [`question`] (RFC 9000 section 17.2.1).
fn versions(packet: &[u8]) -> Option<Vec<u32>> {
    let list = packet.strip_prefix(&[packet.first().filter(|first| **first & 0x80 != 0).copied()?])?;
    let list = list.strip_prefix(&[0; 4])?;
    let list = list.strip_prefix(&[8])?.strip_prefix(&SOURCE)?;
    let list = list.strip_prefix(&[8])?.strip_prefix(&DESTINATION)?;
    let each = list.chunks_exact(4).take(MOST);
    let versions: Vec<u32> = each.filter_map(|it| it.try_into().ok()).map(u32::from_be_bytes).collect();
    (!versions.is_empty()).then_some(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_to_the_question_counts() {
        let answer =
            [&[0x80, 0, 0, 0, 0, 8][..], &SOURCE, &[8], &DESTINATION, &[0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf]];
        let answer = answer.concat();
        assert_eq!(versions(&answer), Some(vec![1, 0x6b33_43cf]));
        assert_eq!(versions(&question()), None);
        for length in 0..answer.len() - 4 {
            assert!(versions(&answer[..length]).is_none_or(|list| list == [1]), "{length}");
        }
        let mut foreign = answer;
        foreign[6] ^= 1;
        assert_eq!(versions(&foreign), None);
    }
}

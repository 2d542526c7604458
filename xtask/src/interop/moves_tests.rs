//! What tells a client that moves from one that is moved.

use super::*;

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, last], 1))
}

/// A packet with a long header and a source ID of four bytes.
const LONG: [u8; 12] = [0xc0, 0, 0, 0, 1, 0, 4, 5, 6, 7, 8, 0];

#[test]
fn ids_are_kept_by_socket() {
    let mut moves = Moves::default();
    moves.up(address(1), &[0x40, 1, 1, 1, 1, 0]);
    moves.down(address(1), &LONG);
    for (from, id) in [(1, 1), (1, 1), (2, 2)] {
        moves.up(address(from), &[0x40, id, id, id, id, 0]);
        moves.down(address(from), &[0x40; 9]);
    }
    let seen: Vec<_> = moves.sockets.iter().map(|socket| (socket.address, socket.down)).collect();
    assert_eq!(seen, [(address(1), 3), (address(2), 1)]);
    // Before its length was known, the ID was not.
    assert_eq!(moves.sockets[0].ids, [vec![1; 4]].into());
    assert_eq!(moves.sockets[1].ids, [vec![2; 4]].into());
}

#[test]
fn what_is_kept_is_bounded() {
    let mut moves = Moves::default();
    moves.down(address(1), &LONG);
    for id in 0..=255 {
        moves.up(address(1), &[0x40, id, 1, 1, 1]);
        moves.up(address(id), &[0x40]);
    }
    assert_eq!(moves.sockets.len(), MAX_SOCKETS);
    assert_eq!(moves.sockets[0].ids.len(), MAX_IDS);
}

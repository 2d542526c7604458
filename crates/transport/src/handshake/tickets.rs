//! TLS messages that a server sends after the handshake: session tickets, and nothing else over QUIC (RFC 9001 section 4.4
//! and section 6).

/// TLS's message type `new_session_ticket` (RFC 8446 section 4).
const NEW_SESSION_TICKET: u8 = 4;

/// Bytes of a TLS message's type and length.
const HEAD: usize = 4;

/// Follows the messages of a server's 1-RTT CRYPTO data without keeping them.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    /// What has come of the next message's type and length.
    head: [u8; HEAD],
    head_len: usize,
    /// Bytes that the present message still has.
    left: usize,
    has_any: bool,
}

impl Tickets {
    /// Takes in the next bytes. False if a message begins in them that is not a ticket.
    pub(crate) fn take(&mut self, data: &[u8]) -> bool {
        let mut rest = data;
        while !rest.is_empty() {
            let wanted = if self.left > 0 { self.left } else { HEAD - self.head_len };
            let (part, behind) = rest.split_at(wanted.min(rest.len()));
            rest = behind;
            if self.left > 0 {
                self.left -= part.len();
                continue;
            }
            for (to, from) in self.head.iter_mut().skip(self.head_len).zip(part) {
                *to = *from;
            }
            self.head_len += part.len();
            if self.head_len == HEAD {
                let [kind, length @ ..] = self.head;
                if kind != NEW_SESSION_TICKET {
                    return false;
                }
                self.left = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                self.head_len = 0;
                self.has_any = true;
            }
        }
        true
    }

    /// True if tickets have come, and none is under way.
    pub(crate) fn are_whole(&self) -> bool {
        self.has_any && self.head_len == 0 && self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_followed_however_they_are_cut() {
        let ticket = |length: u8| [&[4, 0, 0, length][..], &vec![24; usize::from(length)]].concat();
        let bytes = [ticket(200), ticket(0), ticket(1)].concat();
        for piece in 1..=bytes.len() {
            let mut tickets = Tickets::default();
            assert!(!tickets.are_whole(), "none has come");
            let mut taken = 0;
            for part in bytes.chunks(piece) {
                assert!(tickets.take(part));
                taken += part.len();
                assert_eq!(tickets.are_whole(), [204, 208, 213].contains(&taken), "{taken}");
            }
        }
    }

    #[test]
    fn another_message_is_told_from_a_ticket() {
        // KeyUpdate, whole and behind a ticket that has such bytes in it.
        assert!(!Tickets::default().take(&[24, 0, 0, 1, 0]));
        let mut tickets = Tickets::default();
        assert!(tickets.take(&[4, 0, 0, 2, 24, 24]));
        assert!(tickets.are_whole());
        assert!(tickets.take(&[4, 0, 1]) && !tickets.are_whole());
        assert!(tickets.take(&[0]));
        assert!(tickets.take(&[24; 256]));
        assert!(!tickets.take(&[24, 0, 0, 1]));
    }
}

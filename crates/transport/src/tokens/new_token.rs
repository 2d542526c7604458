//! `NEW_TOKEN` frames (RFC 9000 section 19.7): a server's gifts for the client's next connection, and where a client
//! keeps them.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use posthaste_wire::Frame;

use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// Whom a token is for: it must be shown to no other server, nor in another version (RFC 9000 section 8.1.3, RFC
/// 9369 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenOwner<'a> {
    /// The name that the server was authenticated for.
    pub server_name: &'a str,
    /// Its UDP port.
    pub port: u16,
    /// The QUIC version's number.
    pub version: u32,
}

/// Where a client keeps the tokens that servers give it. Implementations bound what they keep.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// Takes a token out, to be used: no token may be given out twice, or its uses could be linked.
    fn take(&self, owner: &TokenOwner<'_>) -> Option<Bytes>;

    /// Keeps a token for the next connection.
    fn put(&self, owner: &TokenOwner<'_>, token: Bytes);
}

/// The tokens that a server has for its client.
#[derive(Debug, Default)]
pub(crate) struct NewTokens {
    /// Payloads of tokens to be made.
    pub(crate) wanted: VecDeque<Box<[u8]>>,
    /// Tokens to be sent, with their numbers.
    unsent: VecDeque<(u64, Bytes)>,
    in_flight: Vec<(u64, Bytes)>,
    next_number: u64,
}

impl NewTokens {
    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.wanted.shrink_to_fit();
        self.unsent.shrink_to_fit();
        self.in_flight.shrink_to_fit();
    }

    pub(crate) fn pending(&self) -> usize {
        self.wanted.len() + self.unsent.len() + self.in_flight.len()
    }

    /// The payload of the next token to be made.
    pub(crate) fn take_wanted(&mut self) -> Option<Box<[u8]>> {
        self.wanted.pop_front()
    }

    /// A token has been made: it is to be sent.
    pub(crate) fn push(&mut self, token: Vec<u8>) {
        self.unsent.push_back((self.next_number, token.into()));
        self.next_number += 1;
    }
}

impl FrameOwner for NewTokens {
    fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        while let Some((number, token)) = self.unsent.pop_front() {
            if !writer.push(&Frame::NewToken(token.clone()), Some(SentFrame::NewToken(number))) {
                self.unsent.push_front((number, token));
                return;
            }
            self.in_flight.push((number, token));
        }
    }

    fn on_acked(&mut self, frame: &SentFrame) -> bool {
        let SentFrame::NewToken(number) = *frame else { return false };
        self.in_flight.retain(|(known, _)| *known != number);
        self.unsent.retain(|(known, _)| *known != number);
        true
    }

    /// Lost tokens go again (RFC 9000 section 13.3).
    fn on_lost(&mut self, frame: &SentFrame) -> bool {
        let SentFrame::NewToken(number) = *frame else { return false };
        if let Some(index) = self.in_flight.iter().position(|(known, _)| *known == number) {
            self.unsent.push_back(self.in_flight.swap_remove(index));
        }
        true
    }
}

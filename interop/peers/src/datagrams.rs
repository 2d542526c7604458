//! The echo of messages in DATAGRAM frames (RFC 9221): the client sends numbered messages of several sizes, a few at once,
//! and the server sends each back.
//!
//! The case has a clean path, so a message that does not come back is a fault and no loss.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::contract::{Result, print_json};

/// The ALPN token.
pub const ALPN: &[u8] = b"datagram-echo";
/// Largest frame that each peer takes.
pub const MAX_FRAME: u16 = 65_535;
/// Messages of one queue, for libraries that are told.
pub const QUEUE: usize = 1_024;
/// Messages under way at once: fewer than the smallest queue of any library here.
const UNDER_WAY: usize = 16;
/// Lengths of messages, in turn: around those at which a length takes another byte, and what every path carries.
const LENGTHS: [usize; 7] = [8, 9, 63, 64, 300, 1_000, 1_100];

/// The client's part.
#[derive(Debug)]
pub struct Exchange {
    wanted: u64,
    next: u64,
    under_way: BTreeSet<u64>,
    bytes: u64,
}

/// The client's result, printed as a line of JSON.
#[derive(Debug, Serialize)]
struct Report {
    messages: u64,
    bytes: u64,
}

impl Exchange {
    /// For so many messages.
    pub fn new(wanted: u64) -> Self {
        Self { wanted, next: 0, under_way: BTreeSet::new(), bytes: 0 }
    }

    /// The next message to send, unless enough are under way.
    pub fn next_message(&mut self) -> Option<Vec<u8>> {
        if self.next == self.wanted || self.under_way.len() >= UNDER_WAY {
            return None;
        }
        let index = self.next;
        self.next += 1;
        self.under_way.insert(index);
        Some(message(index))
    }

    /// Checks a message that has come back.
    ///
    /// # Errors
    /// It is not one of those under way, or has changed.
    pub fn on_echo(&mut self, echo: &[u8]) -> Result<()> {
        let index = echo.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)).ok_or("a short message")?;
        if !self.under_way.remove(&index) || echo != message(index) {
            return Err(format!("message {index} came twice or changed").into());
        }
        self.bytes += echo.len() as u64;
        Ok(())
    }

    /// True once all have come back.
    pub fn is_over(&self) -> bool {
        self.next == self.wanted && self.under_way.is_empty()
    }

    /// Prints the result.
    ///
    /// # Errors
    /// Stdout is gone.
    pub fn report(&self) -> Result<()> {
        print_json(&Report { messages: self.wanted, bytes: self.bytes })
    }
}

fn message(index: u64) -> Vec<u8> {
    let mut message = index.to_be_bytes().to_vec();
    message.resize(LENGTHS[(index % LENGTHS.len() as u64) as usize], index as u8);
    message
}

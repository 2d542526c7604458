//! Cursor over a complete buffer of received bytes.

use crate::varint::PartialInteger;

/// Reader from the front. After a failed read (`None`) the input is unusable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Unread bytes.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(head)
    }

    /// A variable-length integer (RFC 9000 section 16).
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut integer = PartialInteger::default();
        loop {
            if let Some(value) = integer.push(self.byte()?) {
                return Some(value);
            }
        }
    }
}

//! Encoder for field sections (RFC 9204 section 4.5).

use super::encoder::Reference;
use super::static_table::{Match, find};
use super::{huffman, integer};

/// Encoder for one field section.
#[derive(Debug)]
pub struct Encoder<'a> {
    buffer: &'a mut Vec<u8>,
    /// The connection's table, if it is used.
    dynamic: Option<Reference<'a>>,
}

impl<'a> Encoder<'a> {
    /// Begins a section at the end of `buffer` that stands for itself.
    pub fn new(buffer: &'a mut Vec<u8>) -> Self {
        // spec: rfc9114 7.2.4.2 within-peers-settings, 7.2.4.2 stored-obeyed, 7.2.4.2 new-obeyed
        // spec: rfc9204 2.1.2 blocked-streams-limited, 4.5.1.2 base-not-negative
        // No entry of the dynamic table is needed, and the base is 0 (RFC 9204 section 4.5.1).
        buffer.extend_from_slice(&[0, 0]);
        Self { buffer, dynamic: None }
    }

    /// Begins the lines of a section without its prefix, which is known at the end.
    pub(crate) fn lines(buffer: &'a mut Vec<u8>) -> Self {
        Self { buffer, dynamic: None }
    }

    /// The same, with the connection's table.
    pub(super) fn dynamic_lines(buffer: &'a mut Vec<u8>, dynamic: Reference<'a>) -> Self {
        Self { buffer, dynamic: Some(dynamic) }
    }

    /// Appends the prefix that belongs before the lines, and returns where they end.
    pub(crate) fn finish(self) -> usize {
        let end = self.buffer.len();
        match self.dynamic {
            Some(dynamic) => dynamic.finish(self.buffer),
            None => self.buffer.extend_from_slice(&[0, 0]),
        }
        end
    }

    /// Appends a field. The name must be in lower case. A sensitive field is marked so that intermediaries do not index
    /// it (RFC 9204 section 7.1.3).
    pub fn field(&mut self, name: &[u8], value: &[u8], is_sensitive: bool) {
        // spec: rfc9204 2.1 order-kept, 4.5.4 never-indexed-stays-literal, 4.5.4 forwarded-as-literal
        // spec: rfc9204 7.1.3 not-indexed-again, 7.1.3 n-bit-kept
        let found = find(name, value);
        if let Match::Field(index) = found
            && !is_sensitive
        {
            integer::write(self.buffer, 0xc0, 6, index);
            return;
        }
        if let Some(dynamic) = &mut self.dynamic
            && !is_sensitive
            && dynamic.write(self.buffer, found, name, value)
        {
            return;
        }
        match found {
            Match::Field(index) | Match::Name(index) => {
                let never_indexed = if is_sensitive { 0x20 } else { 0 };
                integer::write(self.buffer, 0x50 | never_indexed, 4, index);
            }
            Match::None => {
                let never_indexed = if is_sensitive { 0x10 } else { 0 };
                string(self.buffer, 0x20 | never_indexed, 3, name);
            }
        }
        string(self.buffer, 0, 7, value);
    }
}

/// Appends a string in the shorter of its two forms; the Huffman flag precedes the prefix of `bits`.
pub(super) fn string(buffer: &mut Vec<u8>, flags: u8, bits: u32, text: &[u8]) {
    let begin = buffer.len();
    // The length of most takes the first byte only, so that they can be coded at once.
    if text.len() < (1 << bits) - 1 {
        buffer.push(0);
        huffman::encode(buffer, text);
        let coded = buffer.len() - begin - 1;
        if coded < text.len() {
            if let Some(first) = buffer.get_mut(begin) {
                *first = flags | (1 << bits) | coded as u8;
            }
            return;
        }
        buffer.truncate(begin);
    } else {
        let coded = huffman::coded_len(text);
        if coded < text.len() {
            integer::write(buffer, flags | (1 << bits), bits, coded as u64);
            huffman::encode(buffer, text);
            return;
        }
    }
    integer::write(buffer, flags, bits, text.len() as u64);
    buffer.extend_from_slice(text);
}

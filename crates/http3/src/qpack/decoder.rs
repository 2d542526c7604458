//! The decoder's dynamic table: the peer's encoder stream, sections that wait for it, and the instructions that answer.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::decode::{self, DecodeError, Field, Prefix};
use super::integer::{self, Prefixed};
use super::static_table::STATIC_TABLE;
use super::table::{ENTRY_OVERHEAD, Entry, Table};
use super::{MAX_UNSENT_INSTRUCTIONS, huffman};
use crate::cursor::Cursor;
use crate::error::{Code, Error};

/// Acknowledgements of sections, in bytes, that are sent together. They matter only to an encoder that has to evict; what
/// has arrived it hears at once by an Insert Count Increment. Sent one by one, each would be a packet, and acknowledged.
const BATCH: usize = 32;

/// State of a connection's decoder.
#[derive(Debug)]
pub(super) struct Decoder {
    table: Table,
    /// The announced limits: bytes of the table, and streams that may wait for it.
    maximum: u64,
    max_blocked: u64,
    /// What has arrived of an instruction that is not whole; bounded by the strings that fit into the table.
    partial: Vec<u8>,
    /// Streams whose section waits, by ID.
    blocked: BTreeMap<u64, Blocked>,
    /// Insertions that the encoder knows to have arrived (its Known Received Count).
    acknowledged: u64,
    /// Instructions for the decoder stream, and whether one of them is to be sent at once.
    instructions: Vec<u8>,
    is_urgent: bool,
}

#[derive(Debug)]
struct Blocked {
    required: u64,
    waker: Option<Waker>,
}

const fn wrong(reason: &'static str) -> Error {
    Error::new(Code::QPACK_ENCODER_STREAM_ERROR, reason)
}

impl Decoder {
    /// A decoder that has announced a table of at most `maximum` bytes and `max_blocked` streams that wait for it.
    pub(super) fn new(maximum: u64, max_blocked: u64) -> Self {
        Self {
            table: Table::default(),
            maximum,
            max_blocked,
            partial: Vec::new(),
            blocked: BTreeMap::new(),
            acknowledged: 0,
            instructions: Vec::new(),
            is_urgent: false,
        }
    }

    /// Obeys the next bytes of the encoder stream; returns what wakes the streams that need no longer wait.
    ///
    /// # Errors
    /// An instruction that refers to nothing, does not fit into the table, or is none.
    pub(super) fn on_encoder_stream(&mut self, data: &[u8]) -> Result<Vec<Waker>, Error> {
        if self.partial.is_empty() {
            let consumed = self.obey(data)?;
            self.partial.extend_from_slice(data.get(consumed..).unwrap_or_default());
        } else {
            let mut partial = std::mem::take(&mut self.partial);
            partial.extend_from_slice(data);
            let consumed = self.obey(&partial)?;
            partial.drain(..consumed);
            self.partial = partial;
        }
        let inserted = self.table.inserted();
        let mut wakers = Vec::new();
        self.blocked.retain(|_, blocked| {
            let waits = blocked.required > inserted;
            wakers.extend(blocked.waker.take_if(|_| !waits));
            waits
        });
        Ok(wakers)
    }

    /// Obeys whole instructions; returns how many bytes they had.
    fn obey(&mut self, data: &[u8]) -> Result<usize, Error> {
        let mut input = Cursor::new(data);
        loop {
            let consumed = data.len() - input.rest().len();
            if self.obey_one(&mut input)?.is_none() {
                return Ok(consumed);
            }
        }
    }

    /// One instruction (RFC 9204 section 4.3); `None` if it is not whole.
    fn obey_one(&mut self, input: &mut Cursor<'_>) -> Result<Option<()>, Error> {
        let Some(first) = input.byte() else { return Ok(None) };
        let entry = match first {
            // Insert With Name Reference.
            0x80.. => {
                let Some(index) = read_integer(input, first, 6)? else { return Ok(None) };
                let name = if first & 0x40 == 0 {
                    self.relative(index)?.name.clone()
                } else {
                    let entry = usize::try_from(index).ok().and_then(|index| STATIC_TABLE.get(index));
                    // spec: rfc9204 3.1 static-index-in-instruction-closes
                    let (name, _) =
                        entry.ok_or(wrong("an instruction's index is beyond the static table"))?;
                    Bytes::from_static(name.as_bytes())
                };
                let Some(value) = self.read_string(input, None, 7)? else { return Ok(None) };
                Entry { name, value: value.decode()? }
            }
            // Insert With Literal Name.
            0x40..=0x7f => {
                let Some(name) = self.read_string(input, Some(first), 5)? else { return Ok(None) };
                let Some(value) = self.read_string(input, None, 7)? else { return Ok(None) };
                Entry { name: name.decode()?, value: value.decode()? }
            }
            // Set Dynamic Table Capacity.
            0x20..=0x3f => {
                let Some(capacity) = read_integer(input, first, 5)? else { return Ok(None) };
                // spec: rfc9204 4.3.1 capacity-beyond-closes
                if capacity > self.maximum {
                    return Err(wrong("a capacity of the dynamic table exceeds the announced maximum"));
                }
                self.table.set_capacity(capacity);
                return Ok(Some(()));
            }
            // Duplicate.
            // spec: rfc9204 3.2 duplicates-are-no-error
            0x00..=0x1f => {
                let Some(index) = read_integer(input, first, 5)? else { return Ok(None) };
                self.relative(index)?.clone()
            }
        };
        // spec: rfc9204 3.2.2 entry-too-large-closes
        if !self.table.insert(entry) {
            return Err(wrong("an entry is larger than the dynamic table"));
        }
        Ok(Some(()))
    }

    /// The entry before the newest `index` ones (RFC 9204 section 3.2.5).
    fn relative(&self, index: u64) -> Result<&Entry, Error> {
        let absolute = self.table.inserted().checked_sub(1).and_then(|newest| newest.checked_sub(index));
        // spec: rfc9204 2.2.3 evicted-in-instruction-closes
        absolute
            .and_then(|absolute| self.table.get(absolute))
            .ok_or(wrong("an instruction refers to an entry that is not in the dynamic table"))
    }

    /// A string whose length has a prefix of `bits` in `first` or in the next byte; `None` if it is not whole. One that
    /// cannot fit into the table is refused before it is kept.
    fn read_string<'a>(
        &self,
        input: &mut Cursor<'a>,
        first: Option<u8>,
        bits: u32,
    ) -> Result<Option<Coded<'a>>, Error> {
        let Some(first) = first.or_else(|| input.byte()) else { return Ok(None) };
        let Some(length) = read_integer(input, first, bits)? else { return Ok(None) };
        let is_huffman = first & (1 << bits) != 0;
        // A byte has at most 30 bits in the Huffman code.
        let least = if is_huffman { length.saturating_mul(8) / 30 } else { length };
        if least.saturating_add(ENTRY_OVERHEAD) > self.table.capacity() {
            return Err(wrong("an entry is larger than the dynamic table"));
        }
        Ok(input.take(length).map(|text| Coded { text, is_huffman }))
    }

    /// Decodes a section of `stream`, of at most `limit` bytes as in [`decode::decode`]; `None` if it has to wait for the
    /// encoder stream.
    ///
    /// # Errors
    /// As [`decode::decode`]; also if more streams would wait than may, or if the peer does not take the instructions
    /// that answer its sections.
    pub(super) fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        limit: u64,
    ) -> Result<Option<Vec<Field>>, DecodeError> {
        let mut input = Cursor::new(section);
        let prefix = Prefix::read(&mut input)?.resolve(self.maximum, self.table.inserted())?;
        if prefix.required > self.table.inserted() {
            let is_full = self.blocked.len() as u64 >= self.max_blocked;
            if is_full && !self.blocked.contains_key(&stream) {
                // spec: rfc9204 2.1.2 too-many-blocked-closes
                return Err(decode::invalid("more streams wait for the dynamic table than may"));
            }
            self.blocked.entry(stream).or_insert(Blocked { required: prefix.required, waker: None });
            return Ok(None);
        }
        let fields = decode::read_lines(input, limit, &self.table, prefix)?;
        if prefix.required > 0 {
            self.check()?;
            // spec: rfc9204 2.2.2.1 sections-acknowledged
            integer::write(&mut self.instructions, 0x80, 7, stream);
            self.is_urgent |= prefix.required > self.acknowledged;
            self.acknowledged = self.acknowledged.max(prefix.required);
        }
        Ok(Some(fields))
    }

    /// Ready when the section of `stream` can be decoded; else the context is woken then. Returns the waker that was to be
    /// woken before, too.
    pub(super) fn poll_unblocked(&mut self, stream: u64, cx: &Context<'_>) -> (Poll<()>, Option<Waker>) {
        let inserted = self.table.inserted();
        match self.blocked.get_mut(&stream) {
            Some(blocked) if blocked.required > inserted => {
                (Poll::Pending, blocked.waker.replace(cx.waker().clone()))
            }
            _ => (Poll::Ready(()), None),
        }
    }

    /// Reports that nothing more of `stream` will be decoded (RFC 9204 section 2.2.2.2). Returns what waited.
    pub(super) fn cancel(&mut self, stream: u64) -> Option<Waker> {
        let blocked = self.blocked.remove(&stream);
        // What is beyond the bound ends the connection.
        if self.maximum > 0 && self.check().is_ok() {
            integer::write(&mut self.instructions, 0x40, 6, stream);
            self.is_urgent = true;
        }
        blocked.and_then(|blocked| blocked.waker)
    }

    /// Takes the instructions, if some are [due](Self::is_due) or a packet leaves anyway (`is_sending`).
    pub(super) fn take_instructions(&mut self, is_sending: bool) -> Vec<u8> {
        if !(is_sending || self.is_due()) {
            return Vec::new();
        }
        self.is_urgent = false;
        if self.has_news() {
            integer::write(&mut self.instructions, 0, 6, self.table.inserted() - self.acknowledged);
            self.acknowledged = self.table.inserted();
        }
        std::mem::take(&mut self.instructions)
    }

    /// True if there is more to send than acknowledgements of sections, or a batch of these.
    pub(super) fn is_due(&self) -> bool {
        self.has_news() || self.is_urgent || self.instructions.len() >= BATCH
    }

    /// True if the encoder does not know of all insertions that have arrived.
    fn has_news(&self) -> bool {
        self.table.inserted() > self.acknowledged
    }

    /// Checks that the peer takes this end's instructions.
    ///
    /// # Errors
    /// There are more of them than are kept for it.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.instructions.len() > MAX_UNSENT_INSTRUCTIONS {
            return Err(Error::new(Code::H3_EXCESSIVE_LOAD, "the peer does not read the decoder stream"));
        }
        Ok(())
    }
}

/// A string as it arrived.
struct Coded<'a> {
    text: &'a [u8],
    is_huffman: bool,
}

impl Coded<'_> {
    /// The string in an allocation of its own: a slice of a larger one would keep that as long as the entry.
    fn decode(&self) -> Result<Bytes, Error> {
        if !self.is_huffman {
            return Ok(Bytes::copy_from_slice(self.text));
        }
        let mut text = Vec::new();
        huffman::decode(self.text, &mut text).ok_or(wrong("a string is not in the Huffman code"))?;
        Ok(text.into_boxed_slice().into())
    }
}

/// An integer of an instruction; `None` if it is not whole.
fn read_integer(input: &mut Cursor<'_>, first: u8, bits: u32) -> Result<Option<u64>, Error> {
    let mut integer = Prefixed::begin(first, bits);
    loop {
        match integer {
            Prefixed::Whole(value) => return Ok(Some(value)),
            Prefixed::TooLarge => return Err(wrong("an instruction's integer is too large")),
            Prefixed::Partial { .. } => match input.byte() {
                Some(byte) => integer = integer.push(byte),
                None => return Ok(None),
            },
        }
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;

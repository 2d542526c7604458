//! The encoder's dynamic table: what the peer has of it, and which sections need it.
//!
//! A section refers to entries that the peer is known to have, and to those that it inserts itself: their bytes travel
//! with it, so a loss that delays them would have delayed the field as well. An entry that another section has inserted
//! and that is not acknowledged is another matter: if its packet is lost, all sections that refer to it wait. On average
//! that costs each of them the loss rate times a round trip: 1 ms at 1 % and 100 ms. To repeat the fields costs their
//! bytes: 1 ms for each 125 on an uplink of 1 Mbit/s, and a window of packets for the requests of a page, whose heads
//! repeat 300 to 1,300 bytes each. So a client refers to such entries. A server does not: its heads repeat less, and the
//! downlink takes them in a fraction of that time.

use std::collections::VecDeque;

use bytes::Bytes;

use super::integer::{self, Prefixed};
use super::policy::{Insertion, Repeats, insertion};
use super::static_table::Match;
use super::table::{ENTRY_OVERHEAD, Entry, Table, entry_size};
use super::{MAX_ENCODER_TABLE, MAX_UNACKNOWLEDGED_SECTIONS, MAX_UNSENT_INSTRUCTIONS, encode};
use crate::error::{Code, Error};
use crate::settings::Settings;

/// State of a connection's encoder. It uses its table from [`Self::on_settings`] on, while its stream takes instructions.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    table: Table,
    /// Sections refer to what others have inserted and is not acknowledged.
    shares: bool,
    /// Twice the entries that the peer's maximum permits, by which insert counts wrap (RFC 9204 section 4.5.1.1).
    full_range: u64,
    /// Streams that the peer permits to wait.
    max_blocked: u64,
    /// The encoder stream takes what is given to it.
    is_writable: bool,
    /// Insertions that the peer is known to have (the Known Received Count).
    known: u64,
    /// Sections with dynamic references that the peer has not acknowledged, in their order.
    unacknowledged: VecDeque<Section>,
    repeats: Repeats,
    /// Instructions for the encoder stream.
    instructions: Vec<u8>,
    /// An instruction of the decoder stream that is not whole.
    partial: Option<(Kind, Prefixed)>,
}

/// A section as far as the table is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Section {
    stream: u64,
    /// Its Required Insert Count.
    required: u64,
    /// The oldest entry that it refers to.
    oldest: u64,
}

/// A decoder instruction (RFC 9204 section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Acknowledgment,
    Cancellation,
    Increment,
}

const fn wrong(reason: &'static str) -> Error {
    Error::new(Code::QPACK_DECODER_STREAM_ERROR, reason)
}

impl Encoder {
    /// An encoder whose sections refer to what others have inserted and is not acknowledged, or do not.
    pub(super) fn new(shares: bool) -> Self {
        Self { shares, ..Self::default() }
    }

    /// The peer's settings have come: from now on it can be sent instructions.
    pub(super) fn on_settings(&mut self, settings: &Settings) {
        let maximum = settings.qpack_max_table_capacity;
        let capacity = maximum.min(MAX_ENCODER_TABLE);
        self.full_range = maximum / ENTRY_OVERHEAD * 2;
        self.max_blocked = settings.qpack_blocked_streams;
        // spec: rfc9204 3.2.3 zero-no-insertion, 3.2.3 zero-no-instruction
        if self.full_range > 0 {
            // spec: rfc9204 3.2.3 within-maximum, 4.3.1 capacity-within-limit, 4.3.1 reduction-evicts-evictable
            integer::write(&mut self.instructions, 0x20, 5, capacity);
            self.table.set_capacity(capacity);
        }
    }

    /// Says whether the encoder stream takes what is given to it. While it does not, nothing is inserted.
    pub(super) fn set_writable(&mut self, is_writable: bool) {
        self.is_writable = is_writable;
    }

    /// Takes the instructions that are to be sent.
    pub(super) fn take_instructions(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.instructions)
    }

    /// True if there are any.
    pub(super) fn has_instructions(&self) -> bool {
        !self.instructions.is_empty()
    }

    /// Obeys the next bytes of the decoder stream.
    ///
    /// # Errors
    /// They acknowledge what was not sent.
    pub(super) fn on_decoder_stream(&mut self, data: &[u8]) -> Result<(), Error> {
        for byte in data {
            let (kind, integer) = match self.partial.take() {
                Some((kind, partial)) => (kind, partial.push(*byte)),
                None if *byte >= 0x80 => (Kind::Acknowledgment, Prefixed::begin(*byte, 7)),
                None if *byte >= 0x40 => (Kind::Cancellation, Prefixed::begin(*byte, 6)),
                None => (Kind::Increment, Prefixed::begin(*byte, 6)),
            };
            match integer {
                Prefixed::Whole(value) => self.obey(kind, value)?,
                Prefixed::Partial { .. } => self.partial = Some((kind, integer)),
                Prefixed::TooLarge => return Err(wrong("an integer is too large")),
            }
        }
        Ok(())
    }

    fn obey(&mut self, kind: Kind, value: u64) -> Result<(), Error> {
        match kind {
            Kind::Acknowledgment => {
                let place = self.unacknowledged.iter().position(|section| section.stream == value);
                // spec: rfc9204 4.4.1 needless-acknowledgment-closes
                let section = place
                    .and_then(|place| self.unacknowledged.remove(place))
                    .ok_or(wrong("an acknowledged section that refers to nothing"))?;
                self.known = self.known.max(section.required);
            }
            Kind::Cancellation => self.unacknowledged.retain(|section| section.stream != value),
            Kind::Increment => {
                let known = self.known.checked_add(value).filter(|known| *known <= self.table.inserted());
                // spec: rfc9204 4.4.3 wrong-increment-closes
                self.known = known
                    .filter(|_| value > 0)
                    .ok_or(wrong("an Insert Count Increment of 0 or beyond the insertions"))?;
            }
        }
        Ok(())
    }

    /// True if the table can be of use to a section.
    pub(super) fn is_useful(&self) -> bool {
        self.table.capacity() > 0 && self.unacknowledged.len() < MAX_UNACKNOWLEDGED_SECTIONS
    }

    /// Begins a section of `stream`.
    pub(super) fn begin(&mut self, stream: u64) -> Reference<'_> {
        let base = self.table.inserted();
        let section = Section { stream, required: 0, oldest: u64::MAX };
        Reference { may_block: None, base, section, encoder: self }
    }

    /// True if a section of `stream` may refer to what is not acknowledged. Sections are counted instead of streams, which
    /// are fewer if anything.
    fn may_block(&self, stream: u64) -> bool {
        // spec: rfc9204 2.1.2 blocked-streams-limited
        let is_at_risk = |section: &&Section| section.required > self.known && section.stream != stream;
        (self.unacknowledged.iter().filter(is_at_risk).count() as u64) < self.max_blocked
    }

    /// Inserts an entry if it has room. `oldest` is an entry that a section under way refers to.
    fn insert(&mut self, found: Match, name: &[u8], value: &[u8], oldest: u64) -> Option<u64> {
        let in_use = self.unacknowledged.iter().map(|section| section.oldest).min().unwrap_or(u64::MAX);
        // spec: rfc9204 2.1.1 evictable-only, 2.1.1 no-room-no-insertion, 3.2.2 evictable-only
        let evictable = self.known.min(in_use).min(oldest);
        if !self.is_writable
            || self.instructions.len() > MAX_UNSENT_INSTRUCTIONS
            || !self.table.has_room(entry_size(name, value), evictable)
        {
            return None;
        }
        let entry = Entry { name: Bytes::copy_from_slice(name), value: Bytes::copy_from_slice(value) };
        let absolute = self.table.inserted();
        if !self.table.insert(entry) {
            return None;
        }
        match found {
            Match::Field(index) | Match::Name(index) => {
                integer::write(&mut self.instructions, 0xc0, 6, index);
            }
            Match::None => encode::string(&mut self.instructions, 0x40, 5, name),
        }
        encode::string(&mut self.instructions, 0, 7, value);
        Some(absolute)
    }
}

/// The dynamic references of one section while it is encoded.
#[derive(Debug)]
pub(super) struct Reference<'a> {
    encoder: &'a mut Encoder,
    /// Insertions before the section.
    base: u64,
    section: Section,
    /// Whether it may refer to its own insertions; `None` until that matters.
    may_block: Option<bool>,
}

impl Reference<'_> {
    /// Writes a field as a reference to the table, into which it may be inserted for that; false if it has to be a
    /// literal. `found` is what the static table has.
    pub(super) fn write(&mut self, buffer: &mut Vec<u8>, found: Match, name: &[u8], value: &[u8]) -> bool {
        let insertion = insertion(found);
        if insertion == Insertion::Never {
            return false;
        }
        let absolute = match self.encoder.table.find(name, value) {
            Some(absolute) => Some(absolute),
            None => self.insert(insertion, found, name, value),
        };
        let Some(absolute) = absolute.filter(|absolute| self.may_refer(*absolute)) else { return false };
        self.section.required = self.section.required.max(absolute + 1);
        self.section.oldest = self.section.oldest.min(absolute);
        if absolute < self.base {
            integer::write(buffer, 0x80, 6, self.base - 1 - absolute);
        } else {
            integer::write(buffer, 0x10, 4, absolute - self.base);
        }
        true
    }

    fn may_refer(&mut self, absolute: u64) -> bool {
        if absolute < self.encoder.known {
            return true;
        }
        (absolute >= self.base || self.encoder.shares) && self.may_block()
    }

    fn may_block(&mut self) -> bool {
        let (encoder, stream) = (&self.encoder, self.section.stream);
        *self.may_block.get_or_insert_with(|| encoder.may_block(stream))
    }

    /// Without leave to refer to it at once, an entry costs its bytes twice now; that is worth it once it has repeated.
    fn insert(&mut self, insertion: Insertion, found: Match, name: &[u8], value: &[u8]) -> Option<u64> {
        let is_repeated = self.encoder.repeats.is_repeated(name, value);
        if !is_repeated && (insertion == Insertion::Repeated || !self.may_block()) {
            return None;
        }
        self.encoder.insert(found, name, value, self.section.oldest)
    }

    /// Ends the section; writes its prefix (RFC 9204 section 4.5.1).
    pub(super) fn finish(self, prefix: &mut Vec<u8>) {
        let Self { encoder, base, section, .. } = self;
        if section.required == 0 {
            prefix.extend_from_slice(&[0, 0]);
            return;
        }
        integer::write(prefix, 0, 8, section.required % encoder.full_range + 1);
        // spec: rfc9204 4.5.1.2 base-not-negative
        if base >= section.required {
            integer::write(prefix, 0, 7, base - section.required);
        } else {
            integer::write(prefix, 0x80, 7, section.required - base - 1);
        }
        encoder.unacknowledged.push_back(section);
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;

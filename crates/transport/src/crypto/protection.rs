//! Packet protection: sealing and opening one packet in place (RFC 9001 section 5).

use bytes::{Bytes, BytesMut};
use posthaste_wire::packet::{header, number};
use rustls::quic::{HeaderProtectionKey, PacketKey};

/// Bytes that every AEAD of TLS 1.3 adds to a payload.
pub(crate) const TAG_LEN: usize = 16;

/// Bytes after the start of the packet number at which the header protection sample begins: the longest that a
/// packet number may be (section 5.4.2).
const SAMPLE_OFFSET: usize = number::MAX_LEN;

/// What header protection hid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unmasked {
    /// The first byte, unprotected.
    pub(crate) first: u8,
    /// The packet number as sent.
    pub(crate) truncated: u32,
    /// Its length in bytes.
    pub(crate) number_len: u8,
}

/// A packet that has been opened.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Its packet number.
    pub(crate) number: u64,
    /// The first byte of its header.
    pub(crate) first: u8,
    /// Its frames.
    pub(crate) payload: Bytes,
}

/// The AEAD refused to seal: a key beyond its limits, which the connection does not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealError;

/// Removes header protection in place; `None` if the packet is too short to hold a sample.
pub(crate) fn remove_header_protection(
    bytes: &mut [u8],
    number_at: usize,
    key: &dyn HeaderProtectionKey,
) -> Option<Unmasked> {
    let (head, tail) = bytes.split_at_mut_checked(number_at)?;
    let first = head.first_mut()?;
    // spec: rfc9001 5.4.2 short-sample-dropped, rfc9000 10.3 too-small-dropped
    let (number, sample) = tail.split_at_mut_checked(SAMPLE_OFFSET)?;
    let sample = sample.get(..key.sample_len())?;
    key.decrypt_in_place(sample, first, number).ok()?;
    let number_len = header::number_len(*first);
    let truncated = number::read(number.get(..number_len)?);
    Some(Unmasked { first: *first, truncated, number_len: number_len as u8 })
}

/// Opens a packet whose header protection has been removed; `None` if its tag is wrong.
pub(crate) fn open(
    mut bytes: BytesMut,
    number_at: usize,
    unmasked: Unmasked,
    number: u64,
    key: &dyn PacketKey,
) -> Option<Opened> {
    let header_len = number_at + usize::from(unmasked.number_len);
    if bytes.len() < header_len + TAG_LEN {
        return None;
    }
    let mut payload = bytes.split_off(header_len);
    let len = key.decrypt_in_place(number, &bytes, &mut payload).ok()?.len();
    payload.truncate(len);
    Some(Opened { number, first: unmasked.first, payload: payload.freeze() })
}

/// Seals the packet in `packet` in place: the payload stands from `header_len` on and is followed by
/// [`TAG_LEN`] bytes of room for the tag.
pub(crate) fn seal(
    packet: &mut [u8],
    number_at: usize,
    header_len: usize,
    number: u64,
    header_key: &dyn HeaderProtectionKey,
    packet_key: &dyn PacketKey,
) -> Result<(), SealError> {
    // spec: rfc9001 9.5 sealing-without-side-channel
    let (header, body) = packet.split_at_mut_checked(header_len).ok_or(SealError)?;
    let payload_len = body.len().checked_sub(TAG_LEN).ok_or(SealError)?;
    let (payload, room) = body.split_at_mut_checked(payload_len).ok_or(SealError)?;
    let tag = packet_key.encrypt_in_place(number, header, payload).map_err(|_| SealError)?;
    if tag.as_ref().len() != room.len() {
        return Err(SealError);
    }
    room.copy_from_slice(tag.as_ref());
    let (head, tail) = packet.split_at_mut_checked(number_at).ok_or(SealError)?;
    let (number_field, sample) = tail.split_at_mut_checked(SAMPLE_OFFSET).ok_or(SealError)?;
    let sample = sample.get(..header_key.sample_len()).ok_or(SealError)?;
    let first = head.first_mut().ok_or(SealError)?;
    // The mask covers only as many bytes as the (unprotected) first byte says the number has.
    let number_field = number_field.get_mut(..header::number_len(*first)).ok_or(SealError)?;
    header_key.encrypt_in_place(sample, first, number_field).map_err(|_| SealError)
}

/// Payload bytes that a packet needs at least, given its packet number's length, so that a sample can be taken
/// (section 5.4.2).
pub(crate) const fn min_payload_len(number_len: usize) -> usize {
    SAMPLE_OFFSET.saturating_sub(number_len)
}

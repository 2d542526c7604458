//! Settings (RFC 9114 section 7.2.4).

use std::collections::BTreeSet;

use crate::cursor::Cursor;
use crate::error::{Code, Error};
use crate::varint;

/// `SETTINGS_QPACK_MAX_TABLE_CAPACITY` (RFC 9204 section 5).
const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
/// `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114 section 7.2.4.1).
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
/// `SETTINGS_QPACK_BLOCKED_STREAMS` (RFC 9204 section 5).
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
/// `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 9220 section 5): 0 or 1.
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
/// `SETTINGS_H3_DATAGRAM` (RFC 9297 section 2.1.1): 0 or 1.
const H3_DATAGRAM: u64 = 0x33;

/// Settings of an end; one that is not sent has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Largest field section that the end accepts, in bytes as RFC 9114 section 4.2.2 counts; default no limit.
    pub max_field_section_size: u64,
    /// Largest dynamic table that the end's decoder keeps, in bytes; default 0.
    pub qpack_max_table_capacity: u64,
    /// Number of streams that may wait for the dynamic table at once; default 0.
    pub qpack_blocked_streams: u64,
    /// The end takes extended CONNECT requests (RFC 9220 section 3); default no.
    pub enable_connect_protocol: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_field_section_size: varint::MAX,
            qpack_max_table_capacity: 0,
            qpack_blocked_streams: 0,
            enable_connect_protocol: false,
        }
    }
}

impl Settings {
    /// The payload of a SETTINGS frame. `reserved` adds a setting without meaning, so that peers keep ignoring
    /// unknown settings (RFC 9114 section 7.2.4.1); the number selects which.
    pub fn payload(&self, reserved: Option<u64>) -> Vec<u8> {
        let mut payload = Vec::new();
        let mut write = |identifier, value| {
            varint::write(&mut payload, identifier);
            varint::write(&mut payload, value);
        };
        // spec: rfc9114 7.2.4 each-setting-once, 7.2.4.1 http2-not-sent, 7.2.4.2 all-but-defaults-sent
        write(QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity);
        write(QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams);
        if self.max_field_section_size < varint::MAX {
            write(MAX_FIELD_SECTION_SIZE, self.max_field_section_size);
        }
        if self.enable_connect_protocol {
            write(ENABLE_CONNECT_PROTOCOL, 1);
        }
        if let Some(number) = reserved {
            write((number % (1 << 20)) * 0x1f + 0x21, number % 256);
        }
        payload
    }

    /// Reads the payload of a SETTINGS frame.
    ///
    /// # Errors
    /// The payload is truncated, repeats a setting, contains an HTTP/2 setting (RFC 9114 sections 7.2.4 and 11.2.2), or
    /// has an invalid value.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        const fn wrong(reason: &'static str) -> Error {
            Error::new(Code::H3_SETTINGS_ERROR, reason)
        }

        let mut settings = Self::default();
        let mut seen = BTreeSet::new();
        let mut input = Cursor::new(payload);
        while !input.is_empty() {
            let setting = input.varint().and_then(|identifier| Some((identifier, input.varint()?)));
            let (identifier, value) =
                // spec: rfc9114 7.1 wrong-length-closes
                setting.ok_or(Error::frame("a SETTINGS frame ends within a setting"))?;
            if !seen.insert(identifier) {
                return Err(wrong("a setting is there twice"));
            }
            match identifier {
                QPACK_MAX_TABLE_CAPACITY => settings.qpack_max_table_capacity = value,
                MAX_FIELD_SECTION_SIZE => settings.max_field_section_size = value,
                QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                // spec: rfc9114 7.2.4.1 http2-closes
                0x00 | 0x02..=0x05 => return Err(wrong("a setting of HTTP/2")),
                ENABLE_CONNECT_PROTOCOL | H3_DATAGRAM if value > 1 => {
                    return Err(wrong("a setting that is 0 or 1 has another value"));
                }
                ENABLE_CONNECT_PROTOCOL => settings.enable_connect_protocol = value == 1,
                // spec: rfc9114 7.2.4 unknown-ignored, 7.2.4.1 reserved-mean-nothing
                _ => {}
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(payload: &[u8]) -> Option<Code> {
        Settings::parse(payload).err().map(|error| error.code)
    }

    #[test]
    fn what_is_written_is_read() {
        // spec: rfc9114 7.2.4 unknown-ignored, 7.2.4.1 reserved-mean-nothing, 7.2.4 each-setting-once
        // spec: rfc9114 7.2.4.2 all-but-defaults-sent, 7.2.4.1 http2-not-sent
        let settings = Settings { max_field_section_size: 16_384, ..Settings::default() };
        let extended = Settings { enable_connect_protocol: true, ..settings };
        for reserved in [None, Some(0), Some(u64::MAX)] {
            for settings in [settings, extended] {
                assert_eq!(Settings::parse(&settings.payload(reserved)), Ok(settings));
            }
        }
        assert_eq!(settings.payload(Some(1))[9..], [0x40, 0x40, 0x01], "0x1f * 1 + 0x21");
        assert_eq!(Settings::parse(&[]), Ok(Settings::default()));
    }

    #[test]
    fn wrong_settings_are_refused() {
        // spec: rfc9114 7.2.4.1 http2-closes, 7.1 wrong-length-closes
        for identifier in [0x00, 0x02, 0x03, 0x04, 0x05] {
            assert_eq!(code(&[identifier, 0]), Some(Code::H3_SETTINGS_ERROR), "{identifier:#x}");
        }
        assert_eq!(code(&[0x06, 1, 0x06, 1]), Some(Code::H3_SETTINGS_ERROR));
        assert_eq!(code(&[0x21, 1, 0x40, 0x21, 1]), Some(Code::H3_SETTINGS_ERROR), "also of unknown ones");
        assert_eq!(code(&[0x33, 2]), Some(Code::H3_SETTINGS_ERROR));
        assert_eq!(code(&[0x08, 1, 0x33, 1]), None);
        for payload in [&[0x06_u8][..], &[0x06, 0x40], &[0x40], &[0x06, 1, 0x07]] {
            assert_eq!(code(payload), Some(Code::H3_FRAME_ERROR), "{payload:?}");
        }
    }

    proptest! {
        #[test]
        fn nonsense_is_judged(payload in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(code) = code(&payload) {
                prop_assert!(code == Code::H3_SETTINGS_ERROR || code == Code::H3_FRAME_ERROR);
            }
        }
    }
}

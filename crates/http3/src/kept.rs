//! Settings of a server in an earlier connection, and what it may change of them (RFC 9114 section 7.2.4.2).

use crate::error::{Code, Error};
use crate::settings::Settings;

/// What a server said of itself in the connections whose sessions a client may still hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierSettings {
    /// The least of each.
    least: Settings,
    /// They were the same in all of those connections.
    is_exact: bool,
}

impl EarlierSettings {
    /// The settings of the first connection.
    pub const fn new(settings: Settings) -> Self {
        Self { least: settings, is_exact: true }
    }

    /// Adds the settings of one more connection.
    pub fn add(&mut self, settings: Settings) {
        self.is_exact &= settings == self.least;
        self.least = least(self.least, settings);
    }

    /// Checks the settings of a server that has accepted early data, which relied on the earlier ones.
    ///
    /// # Errors
    /// `H3_SETTINGS_ERROR` if a limit is lower, or if one that was the same in all earlier connections is now left out.
    pub fn check(&self, new: &Settings) -> Result<(), Error> {
        // spec: rfc9114 7.2.4.2 incompatible-closes
        if least(self.least, *new) != self.least {
            return Err(settings_error("a setting that early data relied on is lower"));
        }
        // spec: rfc9114 7.2.4.2 omitted-closes
        let no_limit = Settings::default().max_field_section_size;
        let was_limited = self.least.max_field_section_size != no_limit;
        if self.is_exact && was_limited && new.max_field_section_size == no_limit {
            return Err(settings_error("a setting that early data relied on is left out"));
        }
        Ok(())
    }
}

const fn settings_error(reason: &'static str) -> Error {
    Error::new(Code::H3_SETTINGS_ERROR, reason)
}

/// What both permit.
fn least(one: Settings, other: Settings) -> Settings {
    let Settings {
        max_field_section_size,
        qpack_max_table_capacity,
        qpack_blocked_streams,
        enable_connect_protocol,
    } = one;
    Settings {
        max_field_section_size: max_field_section_size.min(other.max_field_section_size),
        qpack_max_table_capacity: qpack_max_table_capacity.min(other.qpack_max_table_capacity),
        qpack_blocked_streams: qpack_blocked_streams.min(other.qpack_blocked_streams),
        enable_connect_protocol: enable_connect_protocol && other.enable_connect_protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(max_field_section_size: u64) -> Settings {
        Settings { max_field_section_size, ..Settings::default() }
    }

    fn code(earlier: &EarlierSettings, new: Settings) -> Option<Code> {
        earlier.check(&new).err().map(|error| error.code)
    }

    #[test]
    fn no_limit_is_lowered_or_left_out() {
        // spec: rfc9114 7.2.4.2 incompatible-closes, 7.2.4.2 omitted-closes
        let table = Settings {
            qpack_max_table_capacity: 100,
            qpack_blocked_streams: 2,
            enable_connect_protocol: true,
            ..limit(1000)
        };
        let earlier = EarlierSettings::new(table);
        for (new, is_good) in [
            (table, true),
            (Settings { max_field_section_size: 1001, ..table }, true),
            (Settings { qpack_max_table_capacity: 101, qpack_blocked_streams: 3, ..table }, true),
            (Settings { max_field_section_size: 999, ..table }, false),
            (Settings { qpack_max_table_capacity: 99, ..table }, false),
            (Settings { qpack_blocked_streams: 1, ..table }, false),
            (Settings { enable_connect_protocol: false, ..table }, false),
            // Left out: the default is no limit here, and nothing there.
            (Settings { max_field_section_size: Settings::default().max_field_section_size, ..table }, false),
            (limit(1000), false),
        ] {
            let expected = (!is_good).then_some(Code::H3_SETTINGS_ERROR);
            assert_eq!(code(&earlier, new), expected, "{new:?}");
        }
        let unlimited = EarlierSettings::new(Settings::default());
        assert_eq!(code(&unlimited, Settings::default()), None);
        assert_eq!(code(&unlimited, limit(1 << 40)), Some(Code::H3_SETTINGS_ERROR));
    }

    #[test]
    fn where_connections_differed_the_least_counts() {
        let mut earlier = EarlierSettings::new(limit(1000));
        earlier.add(limit(1000));
        assert!(code(&earlier, Settings::default()).is_some());
        earlier.add(limit(2000));
        assert_eq!(code(&earlier, limit(1500)), None, "the session may be of either connection");
        assert_eq!(code(&earlier, Settings::default()), None, "and so may the limit");
        assert!(code(&earlier, limit(999)).is_some());
        earlier.add(limit(10));
        assert_eq!(code(&earlier, limit(10)), None);
    }
}

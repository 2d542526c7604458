//! The time in responses.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

/// The `date` field (RFC 9110 section 6.6.1), which is the same for a second and written once in it.
#[derive(Default)]
pub(super) struct Date(Mutex<Option<(u64, HeaderValue)>>);

impl Date {
    /// Of this moment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the field is a wall-clock time; nothing below the endpoint sees it"
    )]
    pub(super) fn now(&self) -> HeaderValue {
        self.at(SystemTime::now())
    }

    fn at(&self, now: SystemTime) -> HeaderValue {
        let second = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // The value is whole after every statement, so a panic elsewhere does not spoil it.
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*written {
            Some((of, value)) if *of == second => value.clone(),
            _ => {
                let text = httpdate::fmt_http_date(now);
                let value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
                written.insert((second, value)).1.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_second_has_its_own() {
        let date = Date::default();
        for (millis, text) in [
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777_999, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_778_000, "Sun, 06 Nov 1994 08:49:38 GMT"),
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
        ] {
            assert_eq!(date.at(UNIX_EPOCH + Duration::from_millis(millis)), text);
        }
    }
}

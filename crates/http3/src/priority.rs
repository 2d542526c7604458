//! The parameters of a priority (RFC 9218 section 4).

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

use crate::limits::MAX_PRIORITY_VALUE;
use crate::structured::{Value, parse_dictionary};

/// The field (RFC 9218 section 5).
const PRIORITY: HeaderName = HeaderName::from_static("priority");

/// Rank of a response among others of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 (most urgent) to 7; default 3.
    pub urgency: u8,
    /// Incremental: parts of it are useful, so it shares the connection with others of its urgency. Default false.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

/// Parameters in a Priority field; missing ones keep their previous or default values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PriorityParameters {
    /// `u`, if present and an integer from 0 to 7.
    pub urgency: Option<u8>,
    /// `i`, if present and a boolean.
    pub incremental: Option<bool>,
}

impl PriorityParameters {
    /// Parses the value of a Priority field or of a `PRIORITY_UPDATE` frame; `None` if it is not a dictionary.
    /// Parameters that are unknown, of other types or out of range are ignored, as RFC 9218 section 4 demands.
    pub fn parse(value: &[u8]) -> Option<Self> {
        if value.len() > MAX_PRIORITY_VALUE {
            return None;
        }
        let mut parameters = Self::default();
        parse_dictionary(value, |key, value| match (key, value) {
            // spec: rfc9218 4 senseless-ignored
            (b"u", Value::Integer(urgency)) => {
                parameters.urgency = u8::try_from(urgency).ok().filter(|urgency| *urgency <= 7);
            }
            (b"u", _) => parameters.urgency = None,
            (b"i", Value::Boolean(incremental)) => parameters.incremental = Some(incremental),
            (b"i", _) => parameters.incremental = None,
            _ => {}
        })?;
        Some(parameters)
    }

    /// Parameters of a message's Priority field; `None` if the field is missing, empty if it is invalid.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&PRIORITY).iter();
        let first = values.next()?;
        let mut joined = Cow::Borrowed(first.as_bytes());
        // Several lines of one field are one list (RFC 9110 section 5.3).
        for value in values {
            joined.to_mut().extend_from_slice(b", ");
            joined.to_mut().extend_from_slice(value.as_bytes());
            if joined.len() > MAX_PRIORITY_VALUE {
                return Some(Self::default());
            }
        }
        // spec: rfc9218 5 unparsable-is-default
        Some(Self::parse(&joined).unwrap_or_default())
    }

    /// Priority with these parameters and the others from `base`: the request's where a response names its own
    /// (RFC 9218 section 8), the default where a request does.
    pub fn over(self, base: Priority) -> Priority {
        Priority {
            urgency: self.urgency.unwrap_or(base.urgency),
            incremental: self.incremental.unwrap_or(base.incremental),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Option<(Option<u8>, Option<bool>)> {
        PriorityParameters::parse(value.as_bytes()).map(|found| (found.urgency, found.incremental))
    }

    #[test]
    fn parameters_are_read() {
        assert_eq!(parsed("u=5, i"), Some((Some(5), Some(true))));
        assert_eq!(parsed("i=?0"), Some((None, Some(false))));
        assert_eq!(parsed(""), Some((None, None)));
        assert_eq!(parsed("u=0,u=7"), Some((Some(7), None)), "the last counts");
    }

    #[test]
    fn what_makes_no_sense_is_ignored_and_what_cannot_be_parsed_is_nothing() {
        // spec: rfc9218 4 senseless-ignored
        for value in ["u=8", "u=-1", "u=1.0", "u=\"3\"", "u", "i=1", "x=3, y;u=2", "u=256"] {
            assert_eq!(parsed(value), Some((None, None)), "{value}");
        }
        assert_eq!(parsed("u=1, u=9"), Some((None, None)), "the last counts, also where it is wrong");
        assert_eq!(parsed("u=1,"), None);
        assert_eq!(parsed(&format!("a=\"{}\"", "x".repeat(2000))), None);
    }

    #[test]
    fn lines_of_a_field_are_joined_and_parameters_merged() {
        // spec: rfc9218 4 defaults-assumed, 5 unparsable-is-default
        let mut headers = HeaderMap::new();
        assert_eq!(PriorityParameters::of(&headers), None);
        headers.append("priority", "u=1".parse().unwrap());
        headers.append("priority", "i".parse().unwrap());
        let request = PriorityParameters::of(&headers).unwrap().over(Priority::default());
        assert_eq!(request, Priority { urgency: 1, incremental: true });
        let response = PriorityParameters { urgency: Some(6), incremental: None };
        assert_eq!(response.over(request), Priority { urgency: 6, incremental: true });
        headers.append("priority", "?".parse().unwrap());
        assert_eq!(PriorityParameters::of(&headers), Some(PriorityParameters::default()));
    }
}

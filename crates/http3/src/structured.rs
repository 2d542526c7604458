//! Dictionaries of structured fields (RFC 8941 section 4.2.2), as needed for priorities: everything is checked, and
//! integers and booleans are reported.

/// A member's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// An integer of at most 15 digits.
    Integer(i64),
    /// A boolean; a key without a value is true.
    Boolean(bool),
    /// Anything else: a decimal, a string, a token, bytes, a list.
    Other,
}

/// Parses a dictionary and reports each member in order; of several with one key, the last counts. Returns `None` if it
/// is not a dictionary; members reported before are then void.
pub(crate) fn parse_dictionary(text: &[u8], mut member: impl FnMut(&[u8], Value)) -> Option<()> {
    let mut parser = Parser { rest: text };
    parser.skip_while(|byte| byte == b' ');
    while !parser.rest.is_empty() {
        let key = parser.key()?;
        let value = if parser.take_if(b'=') {
            if parser.peek()? == b'(' { parser.inner_list()? } else { parser.bare_item()? }
        } else {
            Value::Boolean(true)
        };
        parser.parameters()?;
        member(key, value);
        parser.skip_while(|byte| matches!(byte, b' ' | b'\t'));
        if parser.rest.is_empty() {
            break;
        }
        if !parser.take_if(b',') {
            return None;
        }
        parser.skip_while(|byte| matches!(byte, b' ' | b'\t'));
        // A comma must not be the last.
        parser.peek()?;
    }
    Some(())
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take_if(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.next();
        }
        is_there
    }

    /// The prefix before the first byte that does not match.
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().position(|byte| !belongs(*byte)).unwrap_or(self.rest.len());
        let (head, rest) = self.rest.split_at_checked(length).unwrap_or_default();
        self.rest = rest;
        head
    }

    fn skip_while(&mut self, belongs: impl Fn(u8) -> bool) {
        self.take_while(belongs);
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        if !matches!(self.peek()?, b'a'..=b'z' | b'*') {
            return None;
        }
        Some(self.take_while(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')))
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take_if(b';') {
            self.skip_while(|byte| byte == b' ');
            self.key()?;
            if self.take_if(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn inner_list(&mut self) -> Option<Value> {
        self.next()?;
        loop {
            self.skip_while(|byte| byte == b' ');
            if self.take_if(b')') {
                return Some(Value::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.peek()?, b' ' | b')') {
                return None;
            }
        }
    }

    fn bare_item(&mut self) -> Option<Value> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'a'..=b'z' | b'A'..=b'Z' | b'*' => {
                self.skip_while(is_token);
                Some(Value::Other)
            }
            b':' => self.byte_sequence(),
            b'?' => {
                self.next();
                match self.next()? {
                    b'0' => Some(Value::Boolean(false)),
                    b'1' => Some(Value::Boolean(true)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Value> {
        let sign = if self.take_if(b'-') { -1 } else { 1 };
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if self.take_if(b'.') {
            let decimals = self.take_while(|byte| byte.is_ascii_digit());
            let fits = matches!(digits.len(), 1..=12) && matches!(decimals.len(), 1..=3);
            return fits.then_some(Value::Other);
        }
        if !matches!(digits.len(), 1..=15) {
            return None;
        }
        let value = digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some(Value::Integer(sign * value))
    }

    fn string(&mut self) -> Option<Value> {
        self.next()?;
        loop {
            match self.next()? {
                b'"' => return Some(Value::Other),
                b'\\' if !matches!(self.next()?, b'"' | b'\\') => return None,
                b'\\' | b' '..=b'~' => {}
                _ => return None,
            }
        }
    }

    fn byte_sequence(&mut self) -> Option<Value> {
        self.next()?;
        self.skip_while(|byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'/' | b'='));
        self.take_if(b':').then_some(Value::Other)
    }
}

fn is_token(byte: u8) -> bool {
    matches!(
        byte,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-'
            | b'.' | b'^' | b'_' | b'`' | b'|' | b'~' | b':' | b'/'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(text: &str) -> Option<Vec<(String, Value)>> {
        let mut members = Vec::new();
        parse_dictionary(text.as_bytes(), |key, value| {
            members.push((String::from_utf8_lossy(key).into_owned(), value));
        })?;
        Some(members)
    }

    fn one(text: &str) -> Option<Value> {
        members(&format!("a={text}")).map(|members| members[0].1)
    }

    #[test]
    fn members_have_keys_and_values() {
        let expected = vec![
            ("u".to_owned(), Value::Integer(5)),
            ("i".to_owned(), Value::Boolean(true)),
            ("x-y.z_*0".to_owned(), Value::Other),
        ];
        assert_eq!(members(" u=5,\t i;p;q=1 , x-y.z_*0=\"a\"  "), Some(expected));
        assert_eq!(members(""), Some(vec![]));
        assert_eq!(members("  "), Some(vec![]));
    }

    #[test]
    fn all_types_are_understood() {
        assert_eq!(one("-42"), Some(Value::Integer(-42)));
        assert_eq!(one("999999999999999"), Some(Value::Integer(999_999_999_999_999)));
        assert_eq!(one("?0"), Some(Value::Boolean(false)));
        for other in
            ["1.5", "\"a \\\" \\\\\"", "token/1:2", "*", ":aGk=:", "()", "(1 \"a\";p=1  ?1);q", "( a )"]
        {
            assert_eq!(one(other), Some(Value::Other), "{other}");
        }
    }

    #[test]
    fn what_is_no_dictionary_is_refused() {
        let texts = [
            "U=1",
            "u=",
            "u=1,",
            "u=1,,i",
            "u=1 i",
            "=1",
            "u=?2",
            "u=?",
            "u=-",
            "u=1.",
            "u=1.2345",
            "u=.5",
            "u=@1",
            "u=1234567890123456",
            "u=1234567890123.1",
            "u=\"a",
            "u=\"\\a\"",
            "u=\"\u{e4}\"",
            "u=:a",
            "u=(1",
            "u=(1\t2)",
            "u=(1,2)",
            "u=1;",
            "u=1;=2",
            "u=1; P",
            "1=u",
            "\tu=1",
        ];
        for text in texts {
            assert_eq!(members(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nonsense_does_no_harm(text in prop::collection::vec(prop::sample::select(b"aui=?1;,(): \"\\-.*\t9".to_vec()), 0..40)) {
            let _ = parse_dictionary(&text, |_, _| {});
        }
    }
}

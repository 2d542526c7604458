//! The handshake of WebSocket (RFC 6455 section 4) with an upstream, which speaks HTTP/1.1.
//!
//! Clients over HTTP/1.1 send the key and check what the upstream makes of it. Extended CONNECT has neither (RFC 8441
//! section 5): the proxy makes a key of its own. It checks the answer in any case.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{self, HeaderMap, HeaderValue};
use http::{StatusCode, Version};
use posthaste_service::{Upgrade, list_members};

use crate::failure::Failure;
use crate::to_upstream::{bad, refused};

/// The one protocol that is offered to upstreams. Another one would make the upstream speak, on this connection, of what is
/// not judged here: `h2c` carries requests.
const PROTOCOL: &str = "websocket";

/// Bytes of a key before they are encoded (RFC 6455 section 4.1).
const KEY: usize = 16;

/// What the key is hashed with (RFC 6455 section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// What the upstream must answer to the key.
    accept: HeaderValue,
    is_key_ours: bool,
}

/// The client's wish, if it is one that can be put to an upstream. Over HTTP/1.1 others are ignored, as is permitted.
///
/// # Errors
/// By extended CONNECT it asks for something else.
pub(crate) fn wanted(upgrade: Option<&Upgrade>, version: Version) -> Result<Option<&Upgrade>, Failure> {
    match upgrade {
        Some(upgrade) if upgrade.protocol().eq_ignore_ascii_case(PROTOCOL) => Ok(Some(upgrade)),
        Some(_) if version >= Version::HTTP_2 => {
            Err(refused(StatusCode::NOT_IMPLEMENTED, "the only protocol that is forwarded is websocket"))
        }
        _ => Ok(None),
    }
}

impl Handshake {
    /// Puts the question into the head for the upstream.
    ///
    /// # Errors
    /// The client's question is not whole.
    pub(crate) fn begin(version: Version, fields: &mut HeaderMap) -> Result<Self, Failure> {
        only(fields, header::SEC_WEBSOCKET_VERSION)
            .ok_or_else(|| bad("there is not one Sec-WebSocket-Version"))?;
        let is_key_ours = version >= Version::HTTP_2;
        let key = if is_key_ours {
            let key = key()?;
            fields.insert(header::SEC_WEBSOCKET_KEY, key.clone());
            key
        } else {
            let key = only(fields, header::SEC_WEBSOCKET_KEY).filter(|key| is_key(key));
            key.ok_or_else(|| bad("there is not one valid Sec-WebSocket-Key"))?.clone()
        };
        fields.append(header::CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
        Ok(Self { accept: accept(&key), is_key_ours })
    }

    /// Judges the fields of the upstream's 101, and leaves those that are for the client.
    ///
    /// # Errors
    /// The upstream agrees to something else (RFC 6455 section 4.1).
    pub(crate) fn finish(&self, fields: &mut HeaderMap) -> Result<(), Failure> {
        let is_protocol = only(fields, header::UPGRADE)
            .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()));
        let names_it =
            list_members(fields, &header::CONNECTION).any(|name| name.eq_ignore_ascii_case("upgrade"));
        if !is_protocol || !names_it || only(fields, header::SEC_WEBSOCKET_ACCEPT) != Some(&self.accept) {
            return Err(Failure::Switched);
        }
        if self.is_key_ours {
            fields.remove(header::SEC_WEBSOCKET_ACCEPT);
        }
        Ok(())
    }

    /// Judges a response that is no 101: a client of extended CONNECT would take a success for an agreement.
    ///
    /// # Errors
    /// It is a success, and the client cannot have it.
    pub(crate) fn declined(&self, status: StatusCode) -> Result<(), Failure> {
        if self.is_key_ours && status.is_success() { Err(Failure::NotSwitched) } else { Ok(()) }
    }
}

/// The value of a field that is there once.
fn only(fields: &HeaderMap, name: header::HeaderName) -> Option<&HeaderValue> {
    let mut values = fields.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

fn is_key(key: &HeaderValue) -> bool {
    BASE64_STANDARD.decode(key.as_bytes()).is_ok_and(|key| key.len() == KEY)
}

fn key() -> Result<HeaderValue, Failure> {
    let mut bytes = [0; KEY];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| Failure::NoResponse("no random numbers".into()))?;
    Ok(encoded(&bytes))
}

/// RFC 6455 section 4.2.2.
fn accept(key: &HeaderValue) -> HeaderValue {
    let text = [key.as_bytes(), GUID.as_bytes()].concat();
    encoded(digest(&SHA1_FOR_LEGACY_USE_ONLY, &text).as_ref())
}

fn encoded(bytes: &[u8]) -> HeaderValue {
    // Base64 is always a field's value.
    HeaderValue::try_from(BASE64_STANDARD.encode(bytes)).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use posthaste_service::Body;

    use super::*;

    /// The key and the answer of RFC 6455 section 1.3.
    const SAMPLE: (&str, &str) = ("dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");

    fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in pairs {
            fields.append(*name, HeaderValue::from_static(value));
        }
        fields
    }

    #[test]
    fn a_key_of_the_client_is_answered_to_the_client() {
        let mut asked = fields(&[("sec-websocket-version", "13"), ("sec-websocket-key", SAMPLE.0)]);
        let handshake = Handshake::begin(Version::HTTP_11, &mut asked).unwrap();
        assert_eq!(asked["upgrade"], "websocket");
        assert_eq!(asked["connection"], "upgrade");
        assert_eq!(asked["sec-websocket-key"], SAMPLE.0);
        let good =
            [("upgrade", "WebSocket"), ("connection", "x, Upgrade"), ("sec-websocket-accept", SAMPLE.1)];
        let mut answer = fields(&good);
        handshake.finish(&mut answer).unwrap();
        assert_eq!(answer["sec-websocket-accept"], SAMPLE.1);
        let wrong = [("upgrade", "h2c"), ("connection", "close"), ("sec-websocket-accept", SAMPLE.0)];
        for at in 0..3 {
            let mut pairs = good;
            pairs[at] = wrong[at];
            assert!(handshake.finish(&mut fields(&pairs)).is_err(), "{pairs:?}");
            let rest: Vec<_> = good.iter().enumerate().filter(|(place, _)| *place != at).collect();
            let rest: Vec<_> = rest.into_iter().map(|(_, pair)| *pair).collect();
            assert!(handshake.finish(&mut fields(&rest)).is_err(), "{rest:?}");
        }
        handshake.declined(StatusCode::OK).unwrap();
    }

    #[test]
    fn extended_connect_needs_no_key() {
        let mut asked = fields(&[("sec-websocket-version", "13"), ("sec-websocket-key", "its own")]);
        let handshake = Handshake::begin(Version::HTTP_3, &mut asked).unwrap();
        assert!(is_key(only(&asked, header::SEC_WEBSOCKET_KEY).unwrap()));
        let mut answer = fields(&[("upgrade", "websocket"), ("connection", "Upgrade")]);
        answer.insert(header::SEC_WEBSOCKET_ACCEPT, accept(&asked["sec-websocket-key"]));
        handshake.finish(&mut answer).unwrap();
        assert!(!answer.contains_key("sec-websocket-accept"));
        assert!(handshake.declined(StatusCode::OK).is_err());
        handshake.declined(StatusCode::FORBIDDEN).unwrap();
    }

    #[test]
    fn a_question_that_is_not_whole_is_refused() {
        let key = ("sec-websocket-key", SAMPLE.0);
        let version = ("sec-websocket-version", "13");
        for pairs in [
            &[key][..],
            &[version],
            &[version, version, key],
            &[version, key, key],
            &[version, ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZ")],
            &[version, ("sec-websocket-key", "")],
        ] {
            let begun = Handshake::begin(Version::HTTP_11, &mut fields(pairs));
            assert_eq!(begun.unwrap_err().response().status(), 400, "{pairs:?}");
        }
    }

    #[test]
    fn other_protocols_are_not_forwarded() {
        let upgrade = |protocol: &str| Upgrade::new(protocol, Body::empty());
        let status = |protocol: &str, version| {
            wanted(Some(&upgrade(protocol)), version)
                .map(|wanted| wanted.is_some())
                .map_err(|failure| failure.response().status().as_u16())
        };
        assert_eq!(status("WebSocket", Version::HTTP_11), Ok(true));
        assert_eq!(status("websocket", Version::HTTP_3), Ok(true));
        assert_eq!(status("h2c", Version::HTTP_11), Ok(false));
        assert_eq!(status("connect-udp", Version::HTTP_3), Err(501));
        assert!(wanted(None, Version::HTTP_2).unwrap().is_none());
    }
}

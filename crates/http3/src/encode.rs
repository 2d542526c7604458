//! Encoders for this end's messages and control stream.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header};

use crate::fields::{ConnectProtocol, is_connection_specific};
use crate::frame;
use crate::peer::{CONTROL_STREAM, DECODER_STREAM, ENCODER_STREAM};
use crate::priority::Priority;
use crate::qpack::{Encoder, Tables, is_secret};
use crate::settings::Settings;
use crate::varint;

/// Error for a request whose URI has no scheme or no authority (RFC 9114 section 4.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the URI of a request has no {0}")]
pub struct IncompleteUri(&'static str);

/// Room for the type, the length and the prefix in front of the lines of a field section.
const HEADER_ROOM: usize = 9 + 20;

/// Room for a field section that needs no second allocation: most heads of responses are smaller.
const SECTION_ROOM: usize = 256;

/// The HEADERS frame that begins a request. Omits `host`, which the URI
/// replaces, and fields that HTTP/3 forbids (RFC 9114 section 4.2). CONNECT with a [`ConnectProtocol`] as extension is
/// extended CONNECT, which the server must have announced (RFC 9220 section 3).
///
/// # Errors
/// The URI has no scheme or no authority; plain CONNECT needs the latter only.
pub fn request(request: &http::Request<()>) -> Result<Vec<u8>, IncompleteUri> {
    request_with(request, None)
}

/// The same with the connection's dynamic table, if there is one; for the stream with this ID.
///
/// # Errors
/// As [`request`].
pub fn request_with(
    request: &http::Request<()>,
    tables: Option<(&Tables, u64)>,
) -> Result<Vec<u8>, IncompleteUri> {
    let uri = request.uri();
    let authority = uri.authority().ok_or(IncompleteUri("authority"))?;
    let is_connect = request.method() == Method::CONNECT;
    let protocol = request.extensions().get::<ConnectProtocol>().filter(|_| is_connect);
    let has_target = !is_connect || protocol.is_some();
    let scheme = uri.scheme_str();
    if scheme.is_none() && has_target {
        return Err(IncompleteUri("scheme"));
    }
    Ok(section(tables, |encoder| {
        // spec: rfc9114 4.3 only-defined-sent, 4.3 sent-first, 4.3.1 each-exactly-once, 4.4 connect-form
        encoder.field(b":method", request.method().as_str().as_bytes(), false);
        if let Some(protocol) = protocol {
            encoder.field(b":protocol", protocol.as_str().as_bytes(), false);
        }
        if has_target && let Some(scheme) = scheme {
            encoder.field(b":scheme", scheme.as_bytes(), false);
        }
        // spec: rfc9114 4.3.1 authority-or-host
        encoder.field(b":authority", authority.as_str().as_bytes(), false);
        if has_target {
            encoder.field(b":path", path(uri, request.method()).as_bytes(), false);
        }
        let headers = request.headers().iter().filter(|(name, _)| *name != header::HOST);
        regular(encoder, headers);
    }))
}

/// Request path; an empty one becomes `/`, or `*` for OPTIONS (RFC 9114 section 4.3.1).
fn path<'a>(uri: &'a Uri, method: &Method) -> &'a str {
    match uri.path_and_query().map(http::uri::PathAndQuery::as_str) {
        // spec: rfc9114 4.3.1 path-not-empty, 4.3.1 path-at-least-slash, 4.3.1 options-asterisk
        None | Some("") if method == Method::OPTIONS => "*",
        None | Some("") => "/",
        Some(path) => path,
    }
}

/// The HEADERS frame that begins a response; for an informational status, the whole response.
pub fn response(response: &http::Response<()>) -> Vec<u8> {
    response_with(response, None)
}

/// The same with the connection's dynamic table, if there is one; for the stream with this ID.
pub fn response_with(response: &http::Response<()>, tables: Option<(&Tables, u64)>) -> Vec<u8> {
    section(tables, |encoder| {
        // spec: rfc9114 4.3 of-requests-not-in-responses, 4.3.2 status-required
        encoder.field(b":status", response.status().as_str().as_bytes(), false);
        regular(encoder, response.headers().iter());
    })
}

/// The HEADERS frame that ends a message with trailers.
pub fn trailers(trailers: &HeaderMap) -> Vec<u8> {
    section(None, |encoder| regular(encoder, trailers.iter()))
}

/// Appends type and length of a DATA frame; `length` bytes of content must follow.
pub fn data_header(buffer: &mut Vec<u8>, length: u64) {
    frame::write_data_header(buffer, length);
}

/// The first bytes of this end's control stream: its type, and SETTINGS; `reserved` as in [`Settings::payload`].
pub fn control_stream(settings: &Settings, reserved: Option<u64>) -> Bytes {
    let mut buffer = Vec::new();
    varint::write(&mut buffer, CONTROL_STREAM);
    // spec: rfc9114 3.2 settings-sent-first, 7.2.4 sent-once, 7.2.4 only-on-control
    frame::write(&mut buffer, frame::SETTINGS, &settings.payload(reserved));
    buffer.into()
}

/// The first bytes of this end's QPACK encoder stream: its type (RFC 9204 section 4.2).
pub fn encoder_stream() -> Bytes {
    let mut buffer = Vec::new();
    varint::write(&mut buffer, ENCODER_STREAM);
    buffer.into()
}

/// The first bytes of this end's QPACK decoder stream.
pub fn decoder_stream() -> Bytes {
    let mut buffer = Vec::new();
    varint::write(&mut buffer, DECODER_STREAM);
    buffer.into()
}

/// GOAWAY (RFC 9114 section 5.2): from a server, the first stream whose request will not be processed.
pub fn go_away(id: u64) -> Bytes {
    let mut payload = Vec::new();
    varint::write(&mut payload, id);
    let mut buffer = Vec::new();
    frame::write(&mut buffer, frame::GOAWAY, &payload);
    buffer.into()
}

/// `PRIORITY_UPDATE` (RFC 9218 section 7.2): changes the priority of the client's request on `stream`.
pub fn priority_update(stream: u64, priority: Priority) -> Bytes {
    let mut payload = Vec::new();
    varint::write(&mut payload, stream);
    payload.extend_from_slice(format!("u={}", priority.urgency).as_bytes());
    if priority.incremental {
        payload.extend_from_slice(b", i");
    }
    let mut buffer = Vec::new();
    frame::write(&mut buffer, frame::PRIORITY_UPDATE_REQUEST, &payload);
    buffer.into()
}

fn regular<'a>(
    encoder: &mut Encoder<'_>,
    headers: impl Iterator<Item = (&'a header::HeaderName, &'a HeaderValue)>,
) {
    // spec: rfc9114 4.1 no-transfer-encoding, 4.2 connection-fields-not-sent, 4.2 names-sent-in-lowercase
    for (name, value) in headers.filter(|(name, _)| !is_connection_specific(name)) {
        let (name, text) = (name.as_str().as_bytes(), value.as_bytes());
        encoder.field(name, text, value.is_sensitive() || is_secret(name, text));
    }
}

/// A HEADERS frame with what `write` encodes. The lines are written behind room for what precedes them, which is written
/// when it is known.
fn section(tables: Option<(&Tables, u64)>, write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(2 * HEADER_ROOM + SECTION_ROOM);
    buffer.resize(HEADER_ROOM, 0);
    let end = if let Some((tables, stream)) = tables {
        tables.encode(stream, &mut buffer, write)
    } else {
        let mut encoder = Encoder::lines(&mut buffer);
        write(&mut encoder);
        encoder.finish()
    };
    // Behind the lines: the prefix, then the frame's header. They change places on their way to the front.
    let prefix = buffer.len() - end;
    let header = buffer.len();
    varint::write(&mut buffer, frame::HEADERS);
    varint::write(&mut buffer, (end - HEADER_ROOM + prefix) as u64);
    let start = HEADER_ROOM - (buffer.len() - end);
    buffer.copy_within(end..header, HEADER_ROOM - prefix);
    buffer.copy_within(header.., start);
    buffer.truncate(end);
    buffer.drain(..start);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{MessageKind, MessageReader, Part};
    use crate::peer::{Event, Next, Peer, Role, UniStream};

    fn read(kind: MessageKind, stream: Vec<u8>) -> Part {
        MessageReader::new(kind, 65_536).next(&mut stream.into()).unwrap().unwrap()
    }

    fn read_request(built: &http::Request<()>) -> http::Request<()> {
        match read(MessageKind::Request, request(built).unwrap()) {
            Part::Request(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_is_read_as_it_was() {
        // spec: rfc9114 4.2 connection-fields-not-sent, 4.3 only-defined-sent, 4.3 sent-first
        let built = http::Request::post("https://a.example:1/b?c")
            .header("host", "elsewhere")
            .header("connection", "close")
            .header("x-long", "x".repeat(20_000))
            .body(())
            .unwrap();
        let request = read_request(&built);
        assert_eq!((request.method(), request.uri()), (built.method(), built.uri()));
        assert_eq!(request.headers().len(), 1, "neither `host` nor `connection`");
        assert_eq!(request.headers()["x-long"], built.headers()["x-long"]);
    }

    #[test]
    fn a_target_may_be_bare() {
        // spec: rfc9114 4.3.1 path-at-least-slash, 4.4 connect-form
        let uri = |method: &str, uri: &str| {
            let built = http::Request::builder().method(method).uri(uri).body(()).unwrap();
            read_request(&built).uri().clone()
        };
        assert_eq!(uri("GET", "https://a").path(), "/");
        assert_eq!(uri("CONNECT", "a:1").authority().unwrap(), "a:1");
        let relative = http::Request::get("/a").body(()).unwrap();
        assert_eq!(request(&relative).unwrap_err().to_string(), "the URI of a request has no authority");
    }

    #[test]
    fn a_response_is_read_as_it_was() {
        let mut secret = HeaderValue::from_static("secret");
        secret.set_sensitive(true);
        let built = http::Response::builder().status(206).header("set-cookie", secret).body(()).unwrap();
        let kind = MessageKind::Response { to_head: false };
        let Part::Response(response) = read(kind, super::response(&built)) else { panic!("no response") };
        assert_eq!(response.status(), 206);
        assert!(response.headers()["set-cookie"].is_sensitive());
    }

    #[test]
    fn a_control_stream_is_understood() {
        // spec: rfc9114 3.2 settings-sent-first
        let settings = Settings { max_field_section_size: 9, ..Settings::default() };
        let (mut peer, mut stream) = (Peer::new(Role::Server), UniStream::default());
        let mut events = Vec::new();
        let priority = Priority { urgency: 6, incremental: true };
        for bytes in [control_stream(&settings, Some(77)), priority_update(400, priority), go_away(16_384)] {
            assert_eq!(peer.on_data(&mut stream, bytes, |event| events.push(event)), Ok(Next::Read));
        }
        let update = Event::PriorityUpdate { stream: 400, priority };
        assert_eq!(events, [Event::Settings(settings), update, Event::GoAway(16_384)]);
    }
}

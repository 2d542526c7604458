use proptest::prelude::*;

use super::*;
use crate::encode;

const RESPONSE: MessageKind = MessageKind::Response { to_head: false };

/// What a stream says, in short.
#[derive(Debug, PartialEq, Eq, Clone)]
enum Said {
    Head(String),
    Data(Vec<u8>),
    Trailers(usize),
    End,
}

/// Reads a stream cut into pieces of `size` bytes; content is joined again.
fn read_cut(kind: MessageKind, stream: &[u8], size: usize) -> Result<Vec<Said>, MessageError> {
    let mut reader = MessageReader::new(kind, 1000);
    let mut all = Vec::new();
    for chunk in stream.chunks(size.max(1)) {
        let mut input = Bytes::copy_from_slice(chunk);
        while let Some(part) = reader.next(&mut input)? {
            match (part, all.last_mut()) {
                (Part::Request(head), _) => all.push(Said::Head(head.method().to_string())),
                (Part::Response(head), _) => all.push(Said::Head(head.status().as_str().to_owned())),
                (Part::Data(data), Some(Said::Data(before))) => before.extend_from_slice(&data),
                (Part::Data(data), _) => all.push(Said::Data(data.to_vec())),
                (Part::Trailers(trailers), _) => all.push(Said::Trailers(trailers.len())),
            }
        }
        assert!(input.is_empty());
    }
    reader.end()?;
    all.push(Said::End);
    Ok(all)
}

/// Reads a stream in one piece and byte by byte, which must agree but for how much of a wrong length was seen.
fn read(kind: MessageKind, stream: &[u8]) -> Result<Vec<Said>, MessageError> {
    let whole = read_cut(kind, stream, stream.len());
    let split = read_cut(kind, stream, 1);
    if !matches!(whole, Err(MessageError::Length { .. })) {
        assert_eq!(whole, split);
    }
    whole
}

fn code(kind: MessageKind, stream: &[u8]) -> Option<Code> {
    match read(kind, stream) {
        Err(MessageError::Connection(error)) => Some(error.code),
        _ => None,
    }
}

fn request(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = http::Request::post("https://a/");
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    encode::request(&builder.body(()).unwrap()).unwrap()
}

fn response(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = http::Response::builder().status(status);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    encode::response(&builder.body(()).unwrap())
}

fn trailers() -> Vec<u8> {
    let mut trailers = HeaderMap::new();
    trailers.insert("a", "b".parse().unwrap());
    encode::trailers(&trailers)
}

fn head(text: &str) -> Said {
    Said::Head(text.to_owned())
}

#[test]
fn a_message_has_a_head_content_and_trailers() {
    // spec: rfc9114 7.2.8 reserved-mean-nothing, 9 unknown-ignored
    let stream = [
        &request(&[]),
        b"\x00\x02ab".as_slice(),
        b"\x21\x01x",
        b"\x00\x00\x00\x01c",
        &trailers(),
        b"\x21\x00",
    ]
    .concat();
    let expected = [head("POST"), Said::Data(b"abc".to_vec()), Said::Trailers(1), Said::End];
    assert_eq!(read(MessageKind::Request, &stream).unwrap(), expected);
    let stream = [b"\x21\x00".as_slice(), &request(&[])].concat();
    assert_eq!(read(MessageKind::Request, &stream).unwrap(), [head("POST"), Said::End]);
}

#[test]
fn informational_responses_come_before_the_final_one() {
    let stream = [response(103, &[("content-length", "9")]), response(100, &[]), response(200, &[])].concat();
    assert_eq!(read(RESPONSE, &stream).unwrap(), [head("103"), head("100"), head("200"), Said::End]);
    let unanswered = response(103, &[]);
    assert!(matches!(read(RESPONSE, &unanswered), Err(MessageError::Malformed(_))));
    let early = [response(103, &[]), b"\x00\x01a".to_vec()].concat();
    assert_eq!(code(RESPONSE, &early), Some(Code::H3_FRAME_UNEXPECTED));
}

#[test]
fn frames_out_of_order_end_the_connection() {
    // spec: rfc9114 4.1 wrong-order-closes, 7.2.1 data-of-messages
    let before = [b"\x00\x01a".to_vec(), request(&[])].concat();
    assert_eq!(code(MessageKind::Request, &before), Some(Code::H3_FRAME_UNEXPECTED));
    for behind in [b"\x00\x01a".to_vec(), trailers()] {
        let stream = [request(&[]), trailers(), behind].concat();
        assert_eq!(code(MessageKind::Request, &stream), Some(Code::H3_FRAME_UNEXPECTED));
    }
}

#[test]
fn a_tunnel_has_content_and_nothing_else() {
    // spec: rfc9114 4.4 only-data-in-tunnels
    let connect = http::Request::builder().method("CONNECT").uri("a:1").body(()).unwrap();
    let tunnel = [encode::request(&connect).unwrap(), b"\x00\x01a".to_vec()].concat();
    let said = [Said::Head("CONNECT".to_owned()), Said::Data(b"a".to_vec()), Said::End];
    assert_eq!(read(MessageKind::Request, &tunnel).unwrap(), said);
    let more = [tunnel, trailers()].concat();
    assert_eq!(code(MessageKind::Request, &more), Some(Code::H3_FRAME_UNEXPECTED));
}

#[test]
fn a_second_message_on_a_stream_is_malformed() {
    // spec: rfc9114 4.1 further-message-malformed
    for (kind, message) in [(MessageKind::Request, request(&[])), (RESPONSE, response(200, &[]))] {
        let twice = [message.clone(), message].concat();
        assert!(matches!(read(kind, &twice), Err(MessageError::Malformed(_))));
    }
}

#[test]
fn frames_that_do_not_belong_end_the_connection() {
    // spec: rfc9114 7.2.3 cancel-elsewhere-closes, 7.2.4 elsewhere-closes, 7.2.5 clients-promise-closes
    // spec: rfc9114 7.2.5 promise-beyond-closes, 7.2.6 goaway-elsewhere-closes, 7.2.7 max-push-elsewhere-closes
    // spec: rfc9114 7.2.8 http2-closes, rfc9218 7.2 elsewhere-closes
    for frame_type in [0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0d] {
        for stream in [vec![frame_type, 0], [request(&[]), vec![frame_type, 0]].concat()] {
            assert_eq!(
                code(MessageKind::Request, &stream),
                Some(Code::H3_FRAME_UNEXPECTED),
                "{frame_type:#x}"
            );
        }
    }
    assert_eq!(code(MessageKind::Request, b"\x80\x0f\x07\x00\x01\x00"), Some(Code::H3_FRAME_UNEXPECTED));
    assert_eq!(code(RESPONSE, b"\x05\x01\x00"), Some(Code::H3_ID_ERROR));
}

#[test]
fn what_cannot_be_kept_or_decoded_ends_the_connection() {
    assert_eq!(code(MessageKind::Request, b"\x01\x80\x02\x00\x01"), Some(Code::H3_EXCESSIVE_LOAD));
    assert_eq!(code(MessageKind::Request, b"\x01\x03\x00\x00\x80"), Some(Code::QPACK_DECOMPRESSION_FAILED));
    let large = request(&[("a", &"\u{7f}".repeat(0)), ("b", &"x".repeat(1000))]);
    assert_eq!(read(MessageKind::Request, &large), Err(MessageError::TooLarge { limit: 1000 }));
}

#[test]
fn an_end_comes_between_frames_and_behind_the_head() {
    // spec: rfc9114 7.1 truncated-closes
    let whole = [request(&[]), b"\x00\x02ab".to_vec()].concat();
    for length in 1..whole.len() {
        let result = read(MessageKind::Request, &whole[..length]);
        if length == request(&[]).len() {
            result.unwrap();
        } else {
            assert_eq!(result.unwrap_err().code(), Code::H3_FRAME_ERROR, "{length}");
        }
    }
    assert_eq!(read(MessageKind::Request, b""), Err(MessageError::Incomplete));
    assert_eq!(read(MessageKind::Request, b"\x21\x00"), Err(MessageError::Incomplete));
    assert!(matches!(read(RESPONSE, b""), Err(MessageError::Malformed(_))));
}

#[test]
fn content_is_as_long_as_announced() {
    let with = |announced: &str, frames: &[u8]| {
        let stream = [&request(&[("content-length", announced)]), frames].concat();
        read(MessageKind::Request, &stream)
    };
    with("3", b"\x00\x02ab\x00\x01c").unwrap();
    with("0", b"").unwrap();
    assert_eq!(with("3", b"\x00\x02ab"), Err(MessageError::Length { announced: 3, received: 2 }));
    assert_eq!(with("1", b"\x00\x02ab"), Err(MessageError::Length { announced: 1, received: 2 }));
    assert_eq!(with("3", b"").unwrap_err().code(), Code::H3_MESSAGE_ERROR);
    assert!(matches!(with("x", b""), Err(MessageError::Malformed(_))));
}

#[test]
fn some_responses_have_no_content_whatever_they_announce() {
    let length = [("content-length", "5")];
    for (kind, status) in [(MessageKind::Response { to_head: true }, 200), (RESPONSE, 204), (RESPONSE, 304)] {
        read(kind, &response(status, &length)).unwrap();
        let stream = [response(status, &length), b"\x00\x05abcde".to_vec()].concat();
        assert!(matches!(read(kind, &stream), Err(MessageError::Malformed(_))), "{status}");
        let empty = [response(status, &length), b"\x00\x00".to_vec()].concat();
        read(kind, &empty).unwrap();
    }
    assert!(matches!(read(RESPONSE, &response(200, &length)), Err(MessageError::Length { .. })));
}

#[test]
fn a_malformed_head_is_the_streams_own_matter() {
    // spec: rfc9114 4.1.2 malformed-is-stream-error, 4.1.2 malformed-response-refused
    // `:method: GET` twice and nothing else.
    let error = read(MessageKind::Request, b"\x01\x04\x00\x00\xd1\xd1").unwrap_err();
    assert_eq!(
        (error.code(), error),
        (Code::H3_MESSAGE_ERROR, MessageError::Malformed("a pseudo-header field is there twice"))
    );
}

proptest! {
    #[test]
    fn content_survives_any_cut(content in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..5), size in 1..200_usize) {
        let mut stream = request(&[]);
        for data in &content {
            frame::write(&mut stream, frame::DATA, data);
        }
        let said = read_cut(MessageKind::Request, &stream, size).unwrap();
        prop_assert_eq!(said, [head("POST"), Said::Data(content.concat()), Said::End]);
    }

    #[test]
    fn nonsense_is_judged_alike_however_it_is_cut(
        bytes in prop::collection::vec(prop::sample::select(vec![0, 1, 2, 4, 5, 0x21, 0x40, 0x50, 0xc1, 0xd1, 0xd7, 0xff_u8]), 0..60),
        is_request in any::<bool>(),
        is_behind_a_head in any::<bool>(),
    ) {
        let (kind, begin) = if is_request { (MessageKind::Request, request(&[])) } else { (RESPONSE, response(200, &[])) };
        let stream = if is_behind_a_head { [begin, bytes].concat() } else { bytes };
        let _ = read(kind, &stream);
    }
}

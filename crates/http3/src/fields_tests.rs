use super::*;

/// At an end that has announced nothing.
fn request(fields: Vec<Field>) -> Result<http::Request<()>, Malformed> {
    super::request(fields, false)
}

fn fields(list: &[(&str, &str)]) -> Vec<Field> {
    let field = |(name, value): &(&str, &str)| Field {
        name: Bytes::copy_from_slice(name.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
        is_sensitive: false,
    };
    list.iter().map(field).collect()
}

const GOOD: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example:4"), (":path", "/b?c")];

/// A good request with these fields behind it.
fn with(more: &[(&str, &str)]) -> Result<http::Request<()>, Malformed> {
    request(fields(&[&GOOD, more].concat()))
}

/// A good request with one pseudo-header field changed, or without it.
fn changed(name: &str, value: Option<&str>) -> Result<http::Request<()>, Malformed> {
    let list: Vec<_> = GOOD
        .iter()
        .filter_map(|(n, v)| if *n == name { Some((*n, value?)) } else { Some((*n, *v)) })
        .collect();
    request(fields(&list))
}

#[test]
fn a_request_is_read() {
    let request = with(&[("accept", "*/*"), ("x", ""), ("accept", "a")]).unwrap();
    assert_eq!(request.method(), Method::GET);
    assert_eq!(request.uri(), "https://a.example:4/b?c");
    assert_eq!(request.headers().get_all("accept").iter().count(), 2);
    assert_eq!(changed(":scheme", Some("foo")).unwrap().uri().scheme_str(), Some("foo"));
}

#[test]
fn pseudo_header_fields_are_there_once_and_first() {
    // spec: rfc9114 4.3.1 each-exactly-once, 4.3 late-malformed, 4.3 of-responses-not-in-requests
    // spec: rfc9114 4.3 undefined-malformed
    for name in [":method", ":scheme", ":authority", ":path"] {
        with(&[(name, "GET")]).unwrap_err();
        changed(name, None).unwrap_err();
        changed(name, Some("")).unwrap_err();
    }
    with(&[("a", "b"), (":path", "/")]).unwrap_err();
    let late = [GOOD[0], GOOD[1], GOOD[2], ("a", "b"), GOOD[3]];
    request(fields(&late)).unwrap_err();
    with(&[(":status", "200")]).unwrap_err();
    with(&[(":protocol", "websocket")]).unwrap_err();
    with(&[(":", "")]).unwrap_err();
    request(vec![]).unwrap_err();
}

#[test]
fn the_target_makes_sense() {
    // spec: rfc9114 4.3.1 no-userinfo, 4.3.1 options-asterisk, 4.3.1 path-not-empty, 4.3.1 authority-not-empty
    for path in ["b", "*", "/ ", "/#a", "http://a/"] {
        changed(":path", Some(path)).unwrap_err();
    }
    for authority in ["user@a", "a b", "a/b", ":"] {
        changed(":authority", Some(authority)).unwrap_err();
    }
    let asterisk = [(":method", "OPTIONS"), GOOD[1], GOOD[2], (":path", "*")];
    assert_eq!(request(fields(&asterisk)).unwrap().uri().path(), "*");
    changed(":method", Some("G T")).unwrap_err();
    changed(":scheme", Some("1")).unwrap_err();
}

#[test]
fn host_stands_in_for_the_authority_or_agrees_with_it() {
    // spec: rfc9114 4.3.1 authority-or-host, 4.3.1 authority-is-host, 4.3.1 authority-not-empty
    with(&[("host", "A.example:4")]).unwrap();
    with(&[("host", "b.example")]).unwrap_err();
    let by_host = [GOOD[0], GOOD[1], GOOD[3], ("host", "b")];
    assert_eq!(request(fields(&by_host)).unwrap().uri(), "https://b/b?c");
    let empty_host = [GOOD[0], GOOD[1], GOOD[3], ("host", "")];
    request(fields(&empty_host)).unwrap_err();
    with(&[("host", "a.example:4"), ("host", "a.example:4")]).unwrap_err();
}

#[test]
fn extended_connect_has_a_target_and_a_protocol() {
    let connect = [
        (":method", "CONNECT"),
        (":scheme", "https"),
        (":authority", "a"),
        (":path", "/b"),
        (":protocol", "x"),
    ];
    let extended = |list: &[(&str, &str)]| super::request(fields(list), true);
    let request = extended(&connect).unwrap();
    assert_eq!(request.uri(), "https://a/b");
    assert_eq!(request.extensions().get::<ConnectProtocol>().unwrap().as_str(), "x");
    for at in 1..4 {
        let rest: Vec<_> = connect.iter().enumerate().filter(|(place, _)| *place != at).collect();
        let rest: Vec<_> = rest.into_iter().map(|(_, field)| *field).collect();
        extended(&rest).unwrap_err();
    }
    for name in ["", "a b", "\u{e4}"] {
        extended(&[&connect[..4], &[(":protocol", name)]].concat()).unwrap_err();
    }
    extended(&[&[(":method", "GET")], &connect[1..]].concat()).unwrap_err();
    // spec: rfc9114 4.3 undefined-malformed
    super::request(fields(&connect), false).unwrap_err();
}

#[test]
fn connect_names_an_authority_and_nothing_else() {
    // spec: rfc9114 4.4 connect-form
    let connect = [(":method", "CONNECT"), (":authority", "a:1")];
    assert_eq!(request(fields(&connect)).unwrap().uri().authority().unwrap(), "a:1");
    request(fields(&connect[..1])).unwrap_err();
    changed(":method", Some("CONNECT")).unwrap_err();
    request(fields(&[connect[0], connect[1], (":path", "/")])).unwrap_err();
}

#[test]
fn names_and_values_are_checked() {
    // spec: rfc9114 4.2 uppercase-malformed, 4.2 connection-fields-malformed, 4.2 te-trailers-only
    // spec: rfc9114 4.1 no-transfer-encoding, 10.3 invalid-names-malformed, 10.3 invalid-values-malformed
    let wrong = [
        ("Accept", "a"),
        ("a b", ""),
        ("", "a"),
        ("a", "b\n"),
        ("a", "\0"),
        ("connection", "close"),
        ("upgrade", "h2c"),
        ("keep-alive", ""),
        ("proxy-connection", ""),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
    ];
    for field in wrong {
        with(&[field]).unwrap_err();
    }
    with(&[("te", "Trailers")]).unwrap();
}

#[test]
fn pieces_of_a_cookie_are_joined() {
    // spec: rfc9114 4.2.1 cookies-joined
    let request = with(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]).unwrap();
    let cookies: Vec<_> = request.headers().get_all("cookie").iter().collect();
    assert_eq!(cookies, ["a=1; b=2"]);
}

#[test]
fn a_response_has_a_status() {
    // spec: rfc9114 4.3.2 status-required, 4.3 of-requests-not-in-responses
    assert_eq!(response(fields(&[(":status", "404"), ("a", "b")])).unwrap().status(), StatusCode::NOT_FOUND);
    for status in ["", "20", "2000", "abc", "099", "101", "+20"] {
        response(fields(&[(":status", status)])).unwrap_err();
    }
    response(fields(&[("a", "b")])).unwrap_err();
    response(fields(&[(":status", "200"), (":path", "/")])).unwrap_err();
    response(fields(&[(":status", "200"), (":status", "200")])).unwrap_err();
    response(fields(&[("a", "b"), (":status", "200")])).unwrap_err();
}

#[test]
fn trailers_have_no_pseudo_header_fields() {
    // spec: rfc9114 4.3 none-in-trailers
    assert_eq!(trailers(fields(&[("a", "b")])).unwrap()["a"], "b");
    trailers(fields(&[(":status", "200")])).unwrap_err();
    trailers(fields(&[("connection", "close")])).unwrap_err();
}

#[test]
fn lengths_agree_or_are_refused() {
    let length = |list: &[(&str, &str)]| content_length(&trailers(fields(list)).unwrap());
    assert_eq!(length(&[]), Ok(None));
    assert_eq!(length(&[("content-length", "12")]), Ok(Some(12)));
    assert_eq!(length(&[("content-length", "12"), ("content-length", "12")]), Ok(Some(12)));
    for wrong in ["", "-1", "+1", "1, 1", "0x1", "99999999999999999999", "\u{e4}"] {
        length(&[("content-length", wrong)]).unwrap_err();
    }
    length(&[("content-length", "12"), ("content-length", "13")]).unwrap_err();
}

use std::net::SocketAddr;

use posthaste_service::Protocol;

use super::*;

fn introduction() -> Introduction {
    Introduction::new("edge".to_owned(), Vec::new(), false)
}

fn request(uri: &str, fields: &[(&str, &str)]) -> Parts {
    let mut request = http::Request::builder().uri(uri).version(Version::HTTP_3);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut parts = request.body(()).unwrap().into_parts().0;
    let address: SocketAddr = "192.0.2.7:4000".parse().unwrap();
    parts.extensions.insert(Peer::new(address, Protocol::Http3, None));
    parts
}

/// The lines that the upstream gets, without those that every request has.
fn lines(uri: &str, fields: &[(&str, &str)]) -> Vec<String> {
    let outline = outline(&request(uri, fields), &introduction()).unwrap();
    let usual = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-host", "via"];
    let lines = outline.fields.iter().filter(|(name, _)| !usual.contains(&name.as_str()));
    lines.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
}

fn status(parts: &Parts) -> Option<u16> {
    outline(parts, &introduction()).err().map(|failure| failure.response().status().as_u16())
}

#[test]
fn a_request_is_introduced() {
    let parts = request("https://a.test:8443/x?y", &[("accept", "*/*"), ("x-forwarded-for", "10.0.0.1")]);
    let outline = outline(&parts, &introduction()).unwrap();
    let lines: Vec<_> = outline.fields.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    assert_eq!(
        lines,
        [
            "host: \"a.test:8443\"",
            "accept: \"*/*\"",
            "x-forwarded-for: \"192.0.2.7\"",
            "x-forwarded-proto: \"https\"",
            "x-forwarded-host: \"a.test:8443\"",
            "x-forwarded-port: \"8443\"",
            "via: \"3.0 edge\"",
        ]
    );
    assert_eq!((outline.authority.as_str(), outline.path.as_str()), ("a.test:8443", "/x?y"));
}

#[test]
fn what_speaks_of_the_connection_does_not_go_on() {
    for name in DROPPED.iter().copied().chain(["x-real-ip", "forwarded"]) {
        let value = if name == "via" { "1.1 other" } else { "a.test" };
        assert_eq!(lines("https://a.test/", &[(name, value)]), ["host: a.test"], "{name}");
    }
    let named =
        [("connection", "close, X-A"), ("connection", "x-b"), ("x-a", "1"), ("x-b", "2"), ("x-c", "3")];
    assert_eq!(lines("https://a.test/", &named), ["host: a.test", "x-c: 3"]);
    let te = [("te", "gzip;q=0.5, Trailers")];
    assert_eq!(lines("https://a.test/", &te), ["host: a.test", "te: trailers", "connection: te"]);
}

#[test]
fn underscores_do_not_imitate_fields_that_are_set_here() {
    for name in [
        "x_forwarded_for",
        "X_Forwarded-Proto",
        "transfer_encoding",
        "content_length",
        "early_data",
        "x_real_ip",
    ] {
        assert_eq!(lines("https://a.test/", &[(name, "1")]), ["host: a.test"], "{name}");
    }
    assert_eq!(lines("https://a.test/", &[("my_field", "1")]), ["host: a.test", "my_field: 1"]);
}

#[test]
fn targets_are_in_origin_form_and_unchanged() {
    let target = |uri: &str| outline(&request(uri, &[]), &introduction()).unwrap().path.to_string();
    assert_eq!(target("https://a.test"), "/");
    for path in ["/", "//", "/../a", "/%2e%2e/a?b=/../c", "/a//b?", "/?"] {
        assert_eq!(target(&format!("https://a.test{path}")), path);
    }
}

#[test]
fn requests_that_cannot_be_forwarded_are_refused() {
    assert_eq!(status(&request("https://a.test/", &[])), None);
    assert_eq!(status(&request("http://a.test/", &[])), Some(400));
    assert_eq!(status(&request("https://user@a.test/", &[])), Some(400));
    let mut connect = request("https://a.test/", &[]);
    connect.method = Method::CONNECT;
    assert_eq!(status(&connect), Some(501));
    // As HTTP/1.1 has it.
    let mut plain = request("/x", &[("host", "a.test")]);
    assert_eq!(status(&plain), Some(400), "HTTP/3 has a scheme");
    plain.version = Version::HTTP_11;
    assert_eq!(status(&plain), None);
    for hosts in [
        &[][..],
        &[("host", "a.test"), ("host", "a.test")],
        &[("host", "")],
        &[("host", "a b")],
        &[("host", "u@a")],
    ] {
        let mut plain = request("/x", hosts);
        plain.version = Version::HTTP_11;
        assert_eq!(status(&plain), Some(400), "{hosts:?}");
    }
}

#[test]
fn trailers_are_announced_if_they_may_be_trailers() {
    let parts = request(
        "https://a.test/",
        &[("trailer", "Checksum, Content-Length, host,x_forwarded_for"), ("trailer", "b")],
    );
    let outline = outline(&parts, &introduction()).unwrap();
    assert_eq!(outline.trailers, ["checksum", "b"]);
    let mut fields = HeaderMap::new();
    announce_trailers(&mut fields, &outline.trailers);
    assert_eq!(fields.get_all(header::TRAILER).iter().collect::<Vec<_>>(), ["checksum", "b"]);
}

use super::*;

fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn introduction(trusted: &[&str], forwarded: bool) -> Introduction {
    let trusted = trusted.iter().map(|network| network.parse().unwrap()).collect();
    Introduction::new("edge".to_owned(), trusted, forwarded)
}

fn told(who: &Introduction, came: &HeaderMap, client: &str, authority: &'static str) -> Vec<String> {
    let mut told = HeaderMap::new();
    told.insert(header::HOST, HeaderValue::from_static(authority));
    who.introduce(&mut told, came, Some(client.parse().unwrap()), &Authority::from_static(authority));
    told.remove(header::HOST);
    let mut lines: Vec<_> =
        told.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort();
    lines
}

#[test]
fn a_client_is_introduced_whatever_it_says_of_itself() {
    let lies = fields(&[
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "bank.test"),
        ("x-forwarded-port", "1"),
        ("x-real-ip", "10.0.0.1"),
        ("forwarded", "for=10.0.0.1"),
    ]);
    assert_eq!(
        told(&introduction(&["10.0.0.0/8"], true), &lies, "2001:db8::7", "a.test:8443"),
        [
            "forwarded: for=\"[2001:db8::7]\";host=\"a.test:8443\";proto=https",
            "x-forwarded-for: 2001:db8::7",
            "x-forwarded-host: a.test:8443",
            "x-forwarded-port: 8443",
            "x-forwarded-proto: https",
        ]
    );
}

#[test]
fn a_trusted_proxy_introduces_its_client() {
    let came = fields(&[
        ("x-forwarded-for", "192.0.2.1, 192.0.2.2"),
        ("x-forwarded-proto", "http"),
        ("x-real-ip", "192.0.2.1"),
        ("forwarded", "for=192.0.2.1"),
    ]);
    // An IPv4 address in the form of IPv6 is the IPv4 address.
    for client in ["10.1.2.3", "::ffff:10.1.2.3"] {
        assert_eq!(
            told(&introduction(&["2001:db8::/32", "10.0.0.0/8"], true), &came, client, "a.test"),
            [
                "forwarded: for=192.0.2.1, for=10.1.2.3;host=\"a.test\";proto=https",
                "x-forwarded-for: 192.0.2.1, 192.0.2.2, 10.1.2.3",
                "x-forwarded-host: a.test",
                "x-forwarded-port: 443",
                "x-forwarded-proto: http",
                "x-real-ip: 192.0.2.1",
            ]
        );
    }
}

#[test]
fn via_tells_the_way_and_finds_loops() {
    let who = introduction(&[], false);
    let signed = |came: &HeaderMap, version| {
        let mut signed = HeaderMap::new();
        who.sign(&mut signed, came, version).map(|()| signed[header::VIA].to_str().unwrap().to_owned())
    };
    assert_eq!(signed(&HeaderMap::new(), Version::HTTP_3).unwrap(), "3.0 edge");
    let other = fields(&[("via", "1.1 cdn, HTTP/2.0 edge-2 (a comment)")]);
    assert_eq!(signed(&other, Version::HTTP_11).unwrap(), "1.1 cdn, HTTP/2.0 edge-2 (a comment), 1.1 edge");
    for been in ["3.0 edge", "1.1 cdn, 3.0 EDGE (a comment),1.1 other", "1.1\tcdn , 2.0\tedge"] {
        let failure = signed(&fields(&[("via", been)]), Version::HTTP_3).unwrap_err();
        assert_eq!(failure.response().status(), StatusCode::LOOP_DETECTED, "{been}");
    }
}

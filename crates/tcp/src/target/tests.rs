use super::*;

fn unified(version: Version, method: Method, target: &str, fields: &[(&str, &str)]) -> Result<Parts, u16> {
    let mut request = http::Request::builder().version(version).method(method).uri(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut parts = request.body(()).unwrap().into_parts().0;
    unify(&mut parts, false).map_err(|refused| refused.0.as_u16())?;
    Ok(parts)
}

fn get(version: Version, target: &str, fields: &[(&str, &str)]) -> Result<String, u16> {
    unified(version, Method::GET, target, fields).map(|parts| parts.uri.to_string())
}

#[test]
fn a_request_names_one_host() {
    let h1 = |target, fields: &[_]| get(Version::HTTP_11, target, fields);
    let host = ("host", "a.test");
    assert_eq!(h1("/x?y", &[host]).unwrap(), "https://a.test/x?y");
    assert_eq!(h1("https://A.test/x", &[host]).unwrap(), "https://A.test/x");
    assert_eq!(h1("/", &[("host", "[::1]:8443")]).unwrap(), "https://[::1]:8443/");
    for (target, fields) in [
        ("/", &[][..]),
        ("/", &[host, host]),
        ("/", &[host, ("host", "b.test")]),
        ("https://a.test/", &[]),
        ("https://a.test/", &[("host", "b.test")]),
        ("https://a.test/", &[("host", "a.test:443")]),
        ("http://a.test/", &[host]),
        ("ftp://a.test/", &[host]),
        ("/", &[("host", "")]),
        ("/", &[("host", "u@a.test")]),
        ("/", &[("host", "a.test, b.test")]),
        ("/", &[("host", "a.test/x")]),
        ("/", &[("host", ":443")]),
        ("*", &[host]),
    ] {
        assert_eq!(h1(target, fields), Err(400), "{target} {fields:?}");
    }
}

#[test]
fn http2_names_it_by_either() {
    let h2 = |target, fields: &[_]| get(Version::HTTP_2, target, fields);
    assert_eq!(h2("https://a.test/x", &[]).unwrap(), "https://a.test/x");
    assert_eq!(h2("https://a.test/x", &[("host", "A.test")]).unwrap(), "https://a.test/x");
    assert_eq!(h2("/x", &[("host", "a.test")]).unwrap(), "https://a.test/x");
    assert_eq!(h2("https://a.test/x", &[("host", "b.test")]), Err(400));
    assert_eq!(h2("/x", &[]), Err(400));
}

#[test]
fn other_codings_and_tunnels_are_not_supported() {
    let status = |method, target, fields: &[_]| unified(Version::HTTP_11, method, target, fields).err();
    let host = ("host", "a.test");
    assert_eq!(status(Method::CONNECT, "a.test:443", &[("host", "a.test:443")]), Some(501));
    for coding in ["gzip, chunked", "chunked, chunked", "identity", "\tchunked", "xchunked"] {
        assert_eq!(status(Method::POST, "/", &[host, ("transfer-encoding", coding)]), Some(501), "{coding}");
    }
    let twice = [host, ("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")];
    assert_eq!(status(Method::POST, "/", &twice), Some(501));
    assert_eq!(status(Method::POST, "/", &[host, ("transfer-encoding", "Chunked")]), None);
}

#[test]
fn early_data_of_an_intermediary_is_for_safe_methods() {
    let fields = [("host", "a.test"), ("early-data", "1")];
    assert_eq!(unified(Version::HTTP_11, Method::POST, "/", &fields).err(), Some(425));
    assert!(unified(Version::HTTP_11, Method::GET, "/", &fields).is_ok());
}

#[test]
fn all_of_the_server_may_be_asked_for_its_options() {
    let parts = unified(Version::HTTP_11, Method::OPTIONS, "*", &[("host", "a.test")]).unwrap();
    assert_eq!(parts.uri.path(), "*");
    assert_eq!(parts.uri.authority().unwrap(), "a.test");
}

#[test]
fn cookies_of_http2_become_one_field() {
    let fields = [("cookie", "a=b"), ("cookie", "c=d"), ("cookie", "e=f")];
    let parts = unified(Version::HTTP_2, Method::GET, "https://a.test/", &fields).unwrap();
    let cookies: Vec<_> = parts.headers.get_all("cookie").iter().collect();
    assert_eq!(cookies, ["a=b; c=d; e=f"]);
}

use std::net::SocketAddr;
use std::path::PathBuf;

use posthaste_service::{Body, Peer, Protocol, Request, Response};
use tower_service::Service as _;

use crate::{Config, ConfigError, Edge};

fn nobody(
    _: Option<&std::path::Path>,
) -> Result<std::sync::Arc<dyn rustls::client::danger::ServerCertVerifier>, String> {
    Err("nobody is trusted".to_owned())
}

/// Certificates `a` (a.test, *.a.test) and `b` (b.test), and a folder `www` with `index.html` and `sub/page.html`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, names) in [("a", &["a.test", "*.a.test"][..]), ("b", &["b.test"])] {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let made = rcgen::generate_simple_self_signed(names).unwrap();
            std::fs::write(place.path(&format!("{name}.pem")), made.cert.pem()).unwrap();
            std::fs::write(place.path(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
        }
        std::fs::create_dir_all(place.path("www/sub")).unwrap();
        std::fs::write(place.path("www/index.html"), "index").unwrap();
        std::fs::write(place.path("www/sub/page.html"), "page").unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self, text: &str) -> Result<Config, ConfigError> {
        let mut text = text.replace("WWW", &self.path("www").display().to_string());
        for name in ["a", "b"] {
            let file = self.path(name).display().to_string();
            let certificate = format!("certificate = {{ chain = \"{file}.pem\", key = \"{file}.key\" }}");
            text = text.replace(&format!("CERTIFICATE-{name}"), &certificate);
        }
        Config::parse(&self.path("edge.toml"), text)
    }

    fn edge(&self, text: &str) -> Result<Edge, ConfigError> {
        Edge::new(&self.config(text)?, &nobody)
    }
}

async fn get(edge: &Edge, sni: Option<&str>, url: &str) -> Response {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = url.parse().unwrap();
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    request.extensions_mut().insert(Peer::new(address, Protocol::Http3, sni.map(Into::into)));
    let Ok(response) = edge.clone().call(request).await;
    response
}

async fn body(response: Response) -> String {
    String::from_utf8(response.into_body().collect(1 << 20).await.unwrap().to_vec()).unwrap()
}

const TWO: &str = r#"
[site."a.test"]
CERTIFICATE-a
reply = "200 a"
hsts = "1d"
headers = { set = { "x-site" = "a" }, remove = ["content-type"] }

[[site."a.test".route]]
path = "/doc"
files = "WWW"
headers = { set = { "x-route" = "doc" } }

[[site."a.test".route]]
path = "/old/"
redirect = "https://b.test{path}"

[site."b.test"]
CERTIFICATE-b
reply = "200 b"
"#;

#[tokio::test]
async fn the_authority_chooses_the_site_if_the_certificate_that_was_shown_has_it() {
    let place = Place::new();
    let edge = place.edge(TWO).unwrap();
    for (sni, url, status, text) in [
        (Some("a.test"), "https://a.test/", 200, "a"),
        (Some("A.TEST"), "https://A.test:8443/x", 200, "a"),
        (None, "https://a.test/", 200, "a"),
        (Some("b.test"), "https://b.test/", 200, "b"),
        (Some("a.test"), "https://b.test/", 421, ""),
        (None, "https://b.test/", 421, ""),
        (Some("a.test"), "https://x.a.test/", 404, ""),
        (Some("a.test"), "https://user@a.test/", 400, ""),
        (Some("a.test"), "/", 400, ""),
    ] {
        let response = get(&edge, sni, url).await;
        assert_eq!(response.status(), status, "{sni:?} {url}");
        if status == 200 {
            assert_eq!(body(response).await, text);
        }
    }
}

#[tokio::test]
async fn the_path_chooses_the_answer_and_fields_are_those_of_site_and_route() {
    let place = Place::new();
    let edge = place.edge(TWO).unwrap();
    let response = get(&edge, Some("a.test"), "https://a.test/").await;
    assert_eq!(response.headers()["x-site"], "a");
    assert_eq!(response.headers()["strict-transport-security"], "max-age=86400");
    assert!(!response.headers().contains_key("content-type"));
    let response = get(&edge, Some("a.test"), "https://a.test/doc/sub/page.html?q").await;
    assert_eq!(
        (&response.headers()["x-site"], &response.headers()["x-route"]),
        (&"a".parse().unwrap(), &"doc".parse().unwrap())
    );
    assert_eq!(body(response).await, "page");
    assert_eq!(body(get(&edge, None, "https://a.test/doc/").await).await, "index");
    for (url, location) in [
        ("https://a.test/doc?q", "/doc/?q"),
        ("https://a.test/doc/sub", "/doc/sub/"),
        ("https://a.test/old/x?y", "https://b.test/old/x?y"),
    ] {
        assert_eq!(get(&edge, None, url).await.headers()["location"], location);
    }
    assert_eq!(get(&edge, None, "https://a.test/x/../doc/").await.status(), 400);
    assert_eq!(get(&edge, None, "https://a.test/doc/nothing").await.status(), 404);
}

#[tokio::test]
async fn the_only_site_answers_for_all_names_of_its_certificate() {
    let place = Place::new();
    let edge = place.edge("[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"").unwrap();
    assert_eq!(get(&edge, Some("x.a.test"), "https://x.a.test/").await.status(), 200);
    assert_eq!(get(&edge, None, "https://b.test/").await.status(), 421);
}

#[tokio::test]
async fn a_reload_is_all_or_nothing() {
    let place = Place::new();
    let edge = place.edge(TWO).unwrap();
    let bad = place.config(&TWO.replace("reply = \"200 b\"", "files = \"/nowhere\"")).unwrap();
    let error = edge.reload(&bad, &nobody).unwrap_err().to_string();
    assert!(error.contains("edge.toml:19:9: files \"/nowhere\": "), "{error}");
    assert_eq!(body(get(&edge, None, "https://a.test/").await).await, "a");
    let other = place.config(&TWO.replace("200 a", "200 new")).unwrap();
    edge.reload(&other, &nobody).unwrap();
    assert_eq!(body(get(&edge, None, "https://a.test/").await).await, "new");
}

#[test]
fn errors_name_the_place_and_what_would_be_right() {
    let place = Place::new();
    for (text, expected) in [
        ("", "there is no site"),
        ("[site.\"a.test\"]\nto = \"http://a\"", "site \"a.test\": no certificate is named"),
        ("[site.\"a.test\"]\nCERTIFICATE-a", "site \"a.test\": nothing answers"),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\nto = \"ftp://a\"",
            "edge.toml:3:6: to \"ftp://a\": an upstream's URL begins with http://",
        ),
        ("[site.\"a.test\"]\nCERTIFICATE-a\nbeside = \"https://a\"", "nobody is trusted"),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\nto = \"http://a\"\nreply = \"200\"",
            ":4:9: reply \"200\": `to` answers here already",
        ),
        ("[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"9\"", ":3:9: reply \"9\": begins with a status"),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"\nnames = [\"*\"]",
            ":4:10: names \"*\": is not a name",
        ),
        ("[site.\"a/b\"]\nCERTIFICATE-a\nreply = \"200\"", "is not a name such as example.org"),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"\n[[site.\"a.test\".route]]\npath = \"x\"\nreply=\"200\"",
            ":5:8: path \"x\": is not a path",
        ),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"\n[[site.\"a.test\".route]]\npath = \"/\"\nreply=\"200\"",
            "two answers have this path",
        ),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\n[[site.\"a.test\".route]]\npath = \"/x\"",
            "nothing answers: to, beside",
        ),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\nreply=\"200\"\nheaders = { remove = [\"a b\"] }",
            "headers \"a b\": is not a field's name",
        ),
        (
            "[site.\"a.test\"]\nreply=\"200\"\ncertificate = { chain = \"/nowhere.pem\", key = \"x\" }",
            ":3:15: certificate \"/nowhere.pem\": cannot read certificates",
        ),
        (
            "[site.\"a.test\"]\nCERTIFICATE-a\nreply=\"200\"\n[site.\"b.test\"]\nCERTIFICATE-b\nreply=\"200\"\nnames = [\"a.test\"]",
            "two sites have the name a.test",
        ),
    ] {
        let error = place.edge(text).map(drop).unwrap_err().to_string();
        assert!(error.contains(expected), "`{expected}` in {error}");
    }
}

use std::net::SocketAddr;
use std::path::PathBuf;

use posthaste_service::{
    Body, Early, EarlyHints, Handshake, HandshakeFailed, Peer, Protocol, Remarks, Request, Response,
};
use tokio::sync::watch;
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

fn request(sni: Option<&str>, url: &str) -> Request {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = url.parse().unwrap();
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    request.extensions_mut().insert(Peer::new(address, Protocol::Http3, sni.map(Into::into)));
    request
}

async fn get(edge: &Edge, sni: Option<&str>, url: &str) -> Response {
    answer(edge, request(sni, url)).await
}

async fn answer(edge: &Edge, request: Request) -> Response {
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

/// An upstream that answers one request with 200 once it has come up to `end`, and what it was sent.
fn upstream(end: &'static str) -> (String, std::thread::JoinHandle<String>) {
    use std::io::{Read as _, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        let mut piece = [0; 1000];
        while !sent.ends_with(end.as_bytes()) {
            match stream.read(&mut piece).unwrap_or(0) {
                0 => return String::from_utf8(sent).unwrap(),
                length => sent.extend_from_slice(&piece[..length]),
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        String::from_utf8(sent).unwrap()
    });
    (url, sent)
}

#[tokio::test]
async fn the_log_the_upstream_and_the_client_know_a_request_by_one_id() {
    let place = Place::new();
    let (url, sent) = upstream("\r\n\r\n");
    let text = format!(
        "[edge]\ntrusted = [\"127.0.0.1\"]\nrequest-id = {{ accept = true }}\n\
         [site.\"a.test\"]\nCERTIFICATE-a\nto = \"{url}\"\n\
         [[site.\"a.test\".route]]\npath = \"/reply\"\nreply = \"200\"\n"
    );
    let edge = place.edge(&text).unwrap();
    let mut asked = request(None, "https://a.test/x");
    let remarks = Remarks::default();
    asked.extensions_mut().insert(remarks.clone());
    let response = answer(&edge, asked).await;
    let id = remarks.request_id().unwrap().to_owned();
    assert_eq!(response.headers()["x-request-id"], id);
    assert!(sent.join().unwrap().contains(&format!("x-request-id: {id}\r\n")));
    assert_eq!(remarks.site().map(AsRef::as_ref), Some("a.test"));
    // Trusted clients name their requests, and answers without an upstream, or of no site, have ids, too.
    let mut named = request(None, "https://a.test/reply");
    named.headers_mut().insert("x-request-id", "theirs".parse().unwrap());
    assert_eq!(answer(&edge, named).await.headers()["x-request-id"], "theirs");
    assert!(get(&edge, None, "https://c.test/").await.headers().contains_key("x-request-id"));
    // Nobody but the log is told unless the file says so.
    let edge = place.edge("[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"").unwrap();
    assert!(!get(&edge, None, "https://a.test/").await.headers().contains_key("x-request-id"));
}

#[tokio::test]
async fn a_body_above_the_limit_is_413_announced_or_not() {
    let place = Place::new();
    for (announced, length, status) in [(true, 8, 200), (true, 9, 413), (false, 8, 200), (false, 9, 413)] {
        let (url, _) = upstream(if announced { "\r\n\r\nxxxxxxxx" } else { "\r\n0\r\n\r\n" });
        let text = format!(
            "[edge.limits]\nbody = \"1MiB\"\n[site.\"a.test\"]\nCERTIFICATE-a\nto = \"{url}\"\nmax-body = \"8B\""
        );
        let edge = place.edge(&text).unwrap();
        let mut post = request(None, "https://a.test/");
        *post.method_mut() = http::Method::POST;
        if announced {
            post.headers_mut().insert("content-length", length.into());
            *post.body_mut() = Body::from(vec![b'x'; length]);
        } else {
            let (sender, body) = Body::channel();
            *post.body_mut() = body;
            tokio::spawn(async move {
                for _ in 0..length {
                    // The other end may have left.
                    let _ = sender.send("x").await;
                }
                let _ = sender.finish().await;
            });
        }
        assert_eq!(answer(&edge, post).await.status(), status, "{announced} {length}");
    }
}

#[test]
fn errors_of_upstreams_name_their_place() {
    let place = Place::new();
    for (answer, expected) in [
        ("to = []", "edge.toml:3:6: to \"\": the list has no URL"),
        ("to = [\"http://a\", \"x\"]", "edge.toml:3:6: to \"http://a, x\": an upstream's URL begins with"),
        (
            "to = \"unix:app.sock\"",
            "edge.toml:3:6: to \"unix:app.sock\": a Unix socket is named by its whole path",
        ),
        ("to = 3", "edge.toml:3:6: expected a URL such as \"http://127.0.0.1:3000\", or a list of URLs"),
        ("to = \"http://a\"\nhealth = { path = \"x\" }", "edge.toml:4:10: health \"x\": is not a path"),
        (
            "to = \"http://a\"\nhealth = { path = \"/\", failures = 0 }",
            "edge.toml:4:10: health \"/\": `failures` is at least 1",
        ),
    ] {
        let text = format!("[site.\"a.test\"]\nCERTIFICATE-a\n{answer}");
        let error = place.edge(&text).map(drop).unwrap_err().to_string();
        assert!(error.contains(expected), "`{expected}` in {error}");
    }
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
            "[site.\"a.test\"]\nCERTIFICATE-a\nreply=\"200\"\nearly-hints = [\"</a>; rel=preload\", \"/b\"]",
            ":4:37: early-hints \"/b\": is not a link",
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

#[test]
fn errors_of_settings_name_the_place_and_what_would_be_right() {
    let place = Place::new();
    for (text, expected) in [
        (
            "[edge]\nadmin = \"0.0.0.0:9443\"\n[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"",
            "edge.toml:2:9: admin \"0.0.0.0:9443\": other machines could read",
        ),
        (
            "[edge]\ntrusted = [\"10.0.0.0/33\"]\n[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"",
            "edge.toml:2:12: trusted \"10.0.0.0/33\": is not a network",
        ),
        (
            "[edge.request-id]\nheader = \"host\"\n[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"",
            "edge.toml:2:10: header \"host\": is not the name of an id",
        ),
        (
            "[edge.request-id]\naccept = true\n[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"",
            "needs `trusted`",
        ),
    ] {
        let error = place.edge(text).map(drop).unwrap_err().to_string();
        assert!(error.contains(expected), "`{expected}` in {error}");
    }
}

#[tokio::test]
async fn pages_are_hinted_at_as_site_and_route_say() {
    let place = Place::new();
    let edge = place.edge(
        "[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"\nearly-hints = [\"</a>; rel=preload\"]\n\
         [[site.\"a.test\".route]]\npath = \"/b\"\nreply = \"200\"\nearly-hints = [\"</b>; rel=preload\"]\n\
         [[site.\"a.test\".route]]\npath = \"/none\"\nreply = \"200\"\nearly-hints = []",
    );
    let edge = edge.unwrap();
    for (path, mode, expected) in [
        ("/", "navigate", Some("</a>; rel=preload")),
        ("/b", "navigate", Some("</b>; rel=preload")),
        ("/none", "navigate", None),
        ("/", "cors", None),
    ] {
        let (hints, mut hinted) = EarlyHints::channel();
        let mut request = request(Some("a.test"), &format!("https://a.test{path}"));
        request.headers_mut().insert("sec-fetch-mode", mode.parse().unwrap());
        request.extensions_mut().insert(hints);
        answer(&edge, request).await;
        let fields = hinted.try_next();
        assert_eq!(
            fields.map(|fields| fields["link"].to_str().unwrap().to_owned()).as_deref(),
            expected,
            "{path}"
        );
    }
}

#[tokio::test]
async fn responses_are_compressed_as_site_and_route_say() {
    let place = Place::new();
    let text = "lines and lines of text ".repeat(100);
    std::fs::write(place.path("www/long.txt"), &text).unwrap();
    std::fs::write(place.path("www/long.png"), &text).unwrap();
    std::fs::write(place.path("www/long.txt.br"), "prepared").unwrap();
    let edge = place.edge(
        r#"
[site."a.test"]
CERTIFICATE-a
files = "WWW"

[[site."a.test".route]]
path = "/gzip"
files = "WWW"
compress = ["gzip"]

[[site."a.test".route]]
path = "/plain"
files = "WWW"
compress = []

[[site."a.test".route]]
path = "/prepared"
files = "WWW"
compress = ["gzip"]
precompressed = true
"#,
    );
    let edge = edge.unwrap();
    for (path, coding) in [
        ("/long.txt", Some("zstd")),
        ("/index.html", None),
        ("/long.png", None),
        ("/gzip/long.txt", Some("gzip")),
        ("/plain/long.txt", None),
        ("/prepared/long.txt", Some("br")),
    ] {
        let mut request = request(None, &format!("https://a.test{path}"));
        request.headers_mut().insert("accept-encoding", "gzip, deflate, br, zstd".parse().unwrap());
        let response = answer(&edge, request).await;
        let told = response.headers().get("content-encoding").map(|coding| coding.to_str().unwrap());
        assert_eq!(told, coding, "{path}");
        let length = response.into_body().collect(1 << 20).await.unwrap().len();
        assert_eq!(length < 100, coding.is_some() || path == "/index.html", "{path}: {length}");
    }
}

#[test]
fn an_unknown_coding_is_an_error() {
    let place = Place::new();
    let edge =
        place.edge("[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200\"\ncompress = [\"br\", \"lzma\"]\n");
    let error = edge.unwrap_err().message().to_owned();
    assert!(error.contains("compress \"lzma\": is not \"zstd\", \"br\" or \"gzip\""), "{error}");
    assert!(error.contains("edge.toml:4:"), "{error}");
}

/// A handshake that ends when the test wants; `None`: it fails.
struct Pending(watch::Receiver<Option<bool>>);

impl Handshake for Pending {
    fn is_complete(&self) -> bool {
        *self.0.borrow() == Some(true)
    }

    fn completed(&self) -> std::pin::Pin<Box<dyn Future<Output = Result<(), HandshakeFailed>> + Send + '_>> {
        let mut word = self.0.clone();
        Box::pin(async move {
            let ended = word.wait_for(Option::is_some).await.map(|ended| *ended);
            if matches!(ended, Ok(Some(true))) { Ok(()) } else { Err(HandshakeFailed::new("it is over")) }
        })
    }
}

/// What a request that comes as early data gets: at once, or else when the handshake has ended.
async fn early_answer(edge: &Edge, path: &str, succeeds: bool) -> (bool, u16) {
    let (handshake, word) = watch::channel(None);
    let mut request = request(Some("a.test"), &format!("https://a.test{path}"));
    request.extensions_mut().insert(Early::new(Pending(word)));
    let mut answering = std::pin::pin!(answer(edge, request));
    let at_once = tokio::select! {
        biased;
        response = &mut answering => Some(response),
        () = std::future::ready(()) => None,
    };
    let waited = at_once.is_none();
    let response = if let Some(response) = at_once {
        response
    } else {
        handshake.send(Some(succeeds)).unwrap();
        answering.await
    };
    (waited, response.status().as_u16())
}

#[tokio::test]
async fn early_data_wait_for_the_handshake_where_the_site_says_so() {
    let place = Place::new();
    for (early_data, own, forwarded) in [
        ("", (false, 200), None),
        ("early-data = \"safe\"", (false, 200), None),
        ("early-data = \"files\"", (false, 200), Some(425)),
        ("early-data = \"off\"", (true, 200), Some(425)),
    ] {
        let text = format!(
            "[site.\"a.test\"]\nCERTIFICATE-a\nreply = \"200 a\"\n{early_data}\n\
             [[site.\"a.test\".route]]\npath = \"/app\"\nto = \"http://127.0.0.1:1\""
        );
        let edge = place.edge(&text).unwrap();
        assert_eq!(early_answer(&edge, "/", true).await, own, "{early_data}");
        if let Some(status) = forwarded {
            // Nobody listens there: 502 says that the upstream was asked, behind the handshake.
            assert_eq!(early_answer(&edge, "/app", true).await, (true, 502), "{early_data}");
            assert_eq!(early_answer(&edge, "/app", false).await, (true, status), "{early_data}");
        }
        let mut told = request(Some("a.test"), "https://a.test/app");
        told.headers_mut().insert("early-data", "1".parse().unwrap());
        let status = answer(&edge, told).await.status().as_u16();
        assert_eq!(status, forwarded.unwrap_or(502), "{early_data}, by an intermediary");
    }
}

use std::time::{Duration, UNIX_EPOCH};

use super::*;

/// 1994-11-06 08:49:37 UTC: what every file of a [`Site`] was modified at.
const MODIFIED: u64 = 784_111_777;
const MODIFIED_DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

struct Site {
    guard: tempfile::TempDir,
    files: StaticFiles,
}

fn site(listing: bool) -> Site {
    let guard = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = guard.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(MODIFIED)).unwrap();
    };
    write("hello.txt", "0123456789");
    write("empty.bin", "");
    write("docs/index.html", "<p>index");
    write("bare/one.txt", "1");
    write("bare/.env", "SECRET=1");
    write(".git/config", "[core]");
    write(".well-known/change-password", "here");
    write(".well-known/.key", "secret");
    let files = StaticFiles::new(guard.path(), listing).unwrap();
    Site { guard, files }
}

/// Asks and reads the whole body.
async fn ask(site: &Site, method: &str, uri: &str, fields: &[(&str, &str)]) -> (http::Response<()>, String) {
    let mut request = http::Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let Ok(response) = site.files.clone().call(request.body(()).unwrap()).await;
    let (head, body) = response.into_parts();
    let body = body.collect(usize::MAX).await.unwrap();
    (http::Response::from_parts(head, ()), String::from_utf8(body.to_vec()).unwrap())
}

fn field<'a>(head: &'a http::Response<()>, name: &str) -> Option<&'a str> {
    head.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_file_is_served_with_what_describes_it() {
    let site = site(false);
    let (head, body) = ask(&site, "GET", "/hello.txt", &[]).await;
    assert_eq!((head.status(), body.as_str()), (StatusCode::OK, "0123456789"));
    assert_eq!(field(&head, "content-length"), Some("10"));
    assert_eq!(field(&head, "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(field(&head, "last-modified"), Some(MODIFIED_DATE));
    assert_eq!(field(&head, "accept-ranges"), Some("bytes"));
    assert_eq!(field(&head, "cache-control"), Some("no-cache"));
    assert!(field(&head, "etag").unwrap().starts_with('"'), "an old file has a strong tag");
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let site = site(true);
    for uri in ["/hello.txt", "/empty.bin", "/docs/", "/missing"] {
        let (get, _) = ask(&site, "GET", uri, &[]).await;
        let (head, body) = ask(&site, "HEAD", uri, &[("range", "bytes=0-1")]).await;
        assert_eq!(get.status(), head.status());
        assert_eq!(get.headers(), head.headers(), "{uri}: a range means nothing to HEAD");
        // The server drops what a handler answers to HEAD; a file is not even read.
        assert!(body.is_empty() || uri == "/missing");
    }
}

#[tokio::test]
async fn ranges() {
    let site = site(false);
    for (range, status, content_range, expected) in [
        ("bytes=2-4", 206, Some("bytes 2-4/10"), "234"),
        ("bytes=-3", 206, Some("bytes 7-9/10"), "789"),
        ("bytes=8-", 206, Some("bytes 8-9/10"), "89"),
        ("bytes=0-99", 206, Some("bytes 0-9/10"), "0123456789"),
        ("bytes=0-1,3-4", 200, None, "0123456789"),
        ("bytes=4-2", 200, None, "0123456789"),
        ("pages=1", 200, None, "0123456789"),
        ("bytes=10-", 416, Some("bytes */10"), "416 Range Not Satisfiable\nthe file has no such bytes\n"),
    ] {
        let (head, body) = ask(&site, "GET", "/hello.txt", &[("range", range)]).await;
        assert_eq!(
            (head.status().as_u16(), field(&head, "content-range")),
            (status, content_range),
            "{range}"
        );
        assert_eq!(body, expected, "{range}");
        assert_eq!(field(&head, "content-length"), Some(body.len().to_string().as_str()));
    }
    let (head, _) = ask(&site, "GET", "/empty.bin", &[("range", "bytes=0-")]).await;
    assert_eq!(head.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    let two = [("range", "bytes=0-1"), ("range", "bytes=3-4")];
    assert_eq!(ask(&site, "GET", "/hello.txt", &two).await.0.status(), StatusCode::OK);
}

#[tokio::test]
async fn preconditions() {
    let site = site(false);
    let (head, _) = ask(&site, "GET", "/hello.txt", &[]).await;
    let etag = field(&head, "etag").unwrap();
    for (fields, status) in [
        (vec![("if-none-match", etag)], 304),
        (vec![("if-modified-since", MODIFIED_DATE)], 304),
        (vec![("if-none-match", "\"other\""), ("if-modified-since", MODIFIED_DATE)], 200),
        (vec![("if-match", "\"other\"")], 412),
        (vec![("if-match", etag), ("range", "bytes=0-0")], 206),
        (vec![("if-range", etag), ("range", "bytes=0-0")], 206),
        (vec![("if-range", MODIFIED_DATE), ("range", "bytes=0-0")], 206),
        (vec![("if-range", "\"other\""), ("range", "bytes=0-0")], 200),
        (vec![("if-range", "\"other\""), ("range", "bytes=99-")], 200),
        (vec![("if-none-match", etag), ("range", "bytes=99-")], 304),
    ] {
        let (head, body) = ask(&site, "GET", "/hello.txt", &fields).await;
        assert_eq!(head.status().as_u16(), status, "{fields:?}");
        assert_eq!(field(&head, "etag"), Some(etag));
        if status == 304 {
            assert!(body.is_empty() && field(&head, "content-length").is_none());
            assert_eq!(field(&head, "cache-control"), Some("no-cache"));
        }
    }
}

#[tokio::test]
async fn hidden_names_are_served_only_if_that_is_wanted() {
    let site = site(true);
    let secrets = ["/.git/config", "/.git/", "/bare/.env", "/bare/%2eenv", "/.well-known/.key"];
    for uri in secrets {
        assert_eq!(ask(&site, "GET", uri, &[]).await.0.status(), StatusCode::NOT_FOUND, "{uri}");
    }
    assert_eq!(ask(&site, "GET", "/.well-known/change-password", &[]).await.1, "here");
    let (_, page) = ask(&site, "GET", "/bare/", &[]).await;
    assert!(page.contains("one.txt") && !page.contains(".env"), "{page}");
    let site = Site { files: site.files.with_hidden_files(), ..site };
    for uri in secrets {
        assert_eq!(ask(&site, "GET", uri, &[]).await.0.status(), StatusCode::OK, "{uri}");
    }
}

#[tokio::test]
async fn directories() {
    let (plain, listed) = (site(false), site(true));
    let (head, body) = ask(&plain, "GET", "/docs/", &[]).await;
    assert_eq!((head.status(), body.as_str()), (StatusCode::OK, "<p>index"));
    assert_eq!(field(&head, "content-type"), Some("text/html; charset=utf-8"));

    let (head, _) = ask(&plain, "GET", "/docs?a=b", &[]).await;
    assert_eq!((head.status().as_u16(), field(&head, "location")), (301, Some("/docs/?a=b")));
    let (head, _) = ask(&plain, "GET", "//docs", &[]).await;
    assert_eq!(field(&head, "location"), Some("/docs/"), "`//docs/` would be another host");

    assert_eq!(ask(&plain, "GET", "/bare/", &[]).await.0.status(), StatusCode::NOT_FOUND);
    let (head, body) = ask(&listed, "GET", "/bare/", &[]).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert!(body.contains("one.txt") && body.contains("../"));
    let (_, body) = ask(&listed, "GET", "/", &[]).await;
    assert!(body.contains("docs/") && !body.contains("../"), "the root has no parent");
    assert_eq!(ask(&listed, "GET", "/hello.txt/", &[]).await.0.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn refusals() {
    let site = site(true);
    for (method, uri, status) in [
        ("GET", "/missing", 404),
        ("GET", "/hello.txt/more", 404),
        ("GET", "/%2e%2e/secret", 400),
        ("GET", "/a%00", 400),
        ("GET", "/a%2fb", 400),
        ("POST", "/hello.txt", 405),
        ("DELETE", "/", 405),
        ("OPTIONS", "*", 405),
    ] {
        let (head, _) = ask(&site, method, uri, &[]).await;
        assert_eq!(head.status().as_u16(), status, "{method} {uri}");
        assert_eq!(field(&head, "allow"), (status == 405).then_some("GET, HEAD"));
    }
}

#[test]
fn a_root_must_be_a_directory() {
    let guard = tempfile::tempdir().unwrap();
    let file = guard.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.as_path(), Path::new("/does/not/exist")] {
        StaticFiles::new(path, false).unwrap_err();
    }
}

#[test]
fn types_by_extension() {
    for (name, expected) in [
        ("a.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.json", "application/json; charset=utf-8"),
        ("a.svg", "image/svg+xml; charset=utf-8"),
        ("a.PNG", "image/png"),
        ("a.wasm", "application/wasm"),
        ("a.mp4", "video/mp4"),
        ("a", "application/octet-stream"),
        ("a.unheard-of", "application/octet-stream"),
    ] {
        assert_eq!(described::content_type(Path::new(name)), expected, "{name}");
    }
}

/// A file of 10 bytes with two more next to it, of which the one by gzip is older. The content says what it is.
fn coded_site(clock: u64) -> Site {
    let guard = tempfile::tempdir().unwrap();
    for (name, modified) in
        [("app.js", clock), ("app.js.br", clock + 1), ("app.js.gz", clock - 1), ("b.js", clock)]
    {
        let path = guard.path().join(name);
        std::fs::write(&path, name).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(modified)).unwrap();
    }
    let files = StaticFiles::new(guard.path(), false).unwrap().with_precompressed();
    Site { guard, files }
}

#[tokio::test]
async fn a_file_that_is_compressed_already_answers_for_the_other() {
    let site = coded_site(MODIFIED);
    // Twice: from the file, and perhaps from memory.
    for _ in 0..2 {
        for (accepts, coding, content) in [
            ("gzip, br, zstd", Some("br"), "app.js.br"),
            ("zstd", None, "app.js"),
            ("gzip", None, "app.js"),
            ("", None, "app.js"),
        ] {
            let (head, body) = ask(&site, "GET", "/app.js", &[("accept-encoding", accepts)]).await;
            assert_eq!((field(&head, "content-encoding"), body.as_str()), (coding, content), "{accepts}");
            assert_eq!(field(&head, "content-type"), Some("text/javascript; charset=utf-8"));
            assert_eq!(field(&head, "vary"), Some("accept-encoding"));
            assert_eq!(field(&head, "content-length"), Some(content.len().to_string().as_str()));
        }
        let (head, body) = ask(&site, "GET", "/b.js", &[("accept-encoding", "br")]).await;
        assert_eq!((field(&head, "content-encoding"), body.as_str()), (None, "b.js"));
    }
}

#[tokio::test]
async fn what_a_client_accepts_chooses_its_file_whoever_asked_before() {
    let site = coded_site(MODIFIED);
    let path = site.guard.path().join("app.js.zst");
    std::fs::write(&path, "app.js.zst").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(MODIFIED)).unwrap();
    // Until what is read is kept.
    tokio::time::sleep(stamp::FINE_TICK * 2).await;
    for (accepts, content) in
        [("gzip", "app.js"), ("zstd", "app.js.zst"), ("gzip, zstd", "app.js.zst"), ("zstd, br", "app.js.br")]
    {
        let (_, body) = ask(&site, "GET", "/app.js", &[("accept-encoding", accepts)]).await;
        assert_eq!(body, content, "{accepts}");
    }
}

#[tokio::test]
async fn each_form_of_a_file_has_a_tag_of_its_own() {
    let site = coded_site(MODIFIED);
    let tag = async |accepts| {
        let (head, _) = ask(&site, "GET", "/app.js", &[("accept-encoding", accepts)]).await;
        field(&head, "etag").unwrap().to_owned()
    };
    let (coded, plain) = (tag("br").await, tag("").await);
    assert_ne!(coded, plain);
    for (accepts, known, status) in
        [("br", &coded, 304), ("", &plain, 304), ("br", &plain, 200), ("", &coded, 200)]
    {
        let fields = [("accept-encoding", accepts), ("if-none-match", known)];
        let (head, _) = ask(&site, "GET", "/app.js", &fields).await;
        assert_eq!(
            (head.status().as_u16(), field(&head, "vary")),
            (status, Some("accept-encoding")),
            "{accepts}"
        );
    }
}

#[tokio::test]
async fn a_change_of_the_file_puts_its_other_forms_out_of_use() {
    let site = coded_site(MODIFIED);
    let coding = async || {
        let (head, _) = ask(&site, "GET", "/app.js", &[("accept-encoding", "br, gzip")]).await;
        field(&head, "content-encoding").map(str::to_owned)
    };
    assert_eq!(coding().await.as_deref(), Some("br"));
    std::fs::write(site.guard.path().join("app.js"), "another").unwrap();
    // A state is taken for what was last seen for some milliseconds.
    tokio::time::sleep(cache::FRESH).await;
    assert_eq!(coding().await, None);
    std::fs::write(site.guard.path().join("app.js.gz"), "another").unwrap();
    let began = Instant::now();
    while coding().await.as_deref() != Some("gzip") {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not noticed");
        tokio::time::sleep(cache::FRESH).await;
    }
}

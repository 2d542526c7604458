//! Responses as clients get them.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;

use super::*;

fn page() -> String {
    let lines: Vec<_> =
        (0..2000).map(|n| format!("<li>The line with number {n}, and {}.</li>", n * n)).collect();
    lines.join("\n")
}

fn html(content: impl Into<Body>) -> Response {
    http::Response::builder().header("content-type", "text/html").body(content.into()).unwrap()
}

fn request(accepts: &str) -> Request {
    http::Request::builder().header("accept-encoding", accepts).body(Body::empty()).unwrap()
}

fn compression() -> Compression {
    Compression::new(&Coding::ALL)
}

/// As far as it can be decoded.
fn decoded(coding: Coding, bytes: &[u8]) -> String {
    let mut content = Vec::new();
    let read = match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut content),
        Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut content),
        Coding::Zstd => zstd::stream::read::Decoder::new(bytes).unwrap().read_to_end(&mut content),
    };
    drop(read);
    String::from_utf8(content).unwrap()
}

async fn whole(response: Response) -> Vec<u8> {
    response.into_body().collect(usize::MAX).await.unwrap().to_vec()
}

#[tokio::test]
async fn each_coding_gives_the_same_content_shorter() {
    for coding in Coding::ALL {
        let mut response = html(page());
        response.headers_mut().insert("content-length", page().len().into());
        response.headers_mut().insert("accept-ranges", HeaderValue::from_static("bytes"));
        compression().negotiate(&request(coding.name())).apply(&mut response);
        let fields = response.headers().clone();
        assert_eq!(fields["content-encoding"], coding.name());
        assert_eq!(fields["vary"], "accept-encoding");
        assert!(!fields.contains_key("content-length") && !fields.contains_key("accept-ranges"));
        let bytes = whole(response).await;
        assert!(bytes.len() * 3 < page().len(), "{coding}: {} of {}", bytes.len(), page().len());
        assert!(decoded(coding, &bytes) == page(), "{coding}");
    }
}

#[tokio::test]
async fn what_the_client_does_not_accept_goes_out_as_it_is() {
    let mut response = html(page());
    response.headers_mut().insert("vary", HeaderValue::from_static("cookie"));
    compression().negotiate(&request("identity")).apply(&mut response);
    assert!(!response.headers().contains_key("content-encoding"));
    // Caches must know it all the same.
    let vary: Vec<_> = response.headers().get_all("vary").iter().collect();
    assert_eq!(vary, ["cookie", "accept-encoding"]);
    assert!(whole(response).await == page().as_bytes());
}

#[tokio::test]
async fn content_that_pauses_is_not_held_back() {
    for coding in Coding::ALL {
        let (sender, body) = Body::channel();
        let mut response = html(body);
        compression().negotiate(&request(coding.name())).apply(&mut response);
        let mut body = response.into_body();
        let mut got = Vec::new();
        let mut sent = String::new();
        for piece in ["<h1>First</h1>", "<p>second", "</p>"] {
            sender.send(Bytes::from(piece)).await.unwrap();
            sent.push_str(piece);
            while decoded(coding, &got) != sent {
                let chunk = tokio::time::timeout(Duration::from_secs(60), body.chunk());
                got.extend_from_slice(&chunk.await.expect("content is held back").unwrap().unwrap());
            }
        }
        sender.finish().await.unwrap();
        while let Some(bytes) = body.chunk().await.unwrap() {
            got.extend_from_slice(&bytes);
        }
        assert_eq!(decoded(coding, &got), sent);
    }
}

#[tokio::test]
async fn trailers_follow_the_content() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", HeaderValue::from_static("7"));
    let frames = [
        Ok::<_, posthaste_service::BodyError>(Frame::data(Bytes::from(page()))),
        Ok(Frame::trailers(trailers.clone())),
    ];
    let source = Body::new(http_body_util::StreamBody::new(futures::stream::iter(frames)));
    let mut response = html(source);
    compression().negotiate(&request("zstd")).apply(&mut response);
    let collected = BodyExt::collect(response.into_body()).await.unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    assert!(decoded(Coding::Zstd, &collected.to_bytes()) == page());
}

#[tokio::test]
async fn content_that_is_not_whole_does_not_look_so() {
    let (sender, body) = Body::channel();
    let mut response = html(body);
    compression().negotiate(&request("gzip")).apply(&mut response);
    sender.send(Bytes::from("<p>half")).await.unwrap();
    drop(sender);
    assert!(response.into_body().collect(usize::MAX).await.is_err());
}

#[tokio::test]
async fn encoders_are_bounded_and_return() {
    let compression = compression();
    let respond = || {
        let mut response = html(page());
        compression.with_codings(&[Coding::Gzip]).negotiate(&request("gzip")).apply(&mut response);
        response
    };
    let mut busy: Vec<_> = (0..ENCODERS).map(|_| respond()).collect();
    let plain = respond();
    assert!(!plain.headers().contains_key("content-encoding"), "no encoder is left");
    assert!(whole(plain).await == page().as_bytes());
    whole(busy.pop().unwrap()).await;
    assert_eq!(respond().headers()["content-encoding"], "gzip");
    drop(busy.pop());
    assert_eq!(respond().headers()["content-encoding"], "gzip");
}

#[test]
fn a_response_to_head_has_the_fields_of_the_one_to_get() {
    let mut head = request("br");
    *head.method_mut() = Method::HEAD;
    let mut response = html(Body::empty());
    response.headers_mut().insert("content-length", 4000.into());
    compression().negotiate(&head).apply(&mut response);
    assert_eq!(response.headers()["content-encoding"], "br");
    assert!(!response.headers().contains_key("content-length"));
    assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(0));
}

#[test]
fn other_bytes_have_a_weak_tag_that_is_told_again() {
    let tagged = |tag: &'static str| {
        let mut response = html(page());
        response.headers_mut().insert("etag", HeaderValue::from_static(tag));
        compression().negotiate(&request("zstd")).apply(&mut response);
        response.headers()["etag"].clone()
    };
    assert_eq!(tagged("\"v1\""), "W/\"v1\"");
    assert_eq!(tagged("W/\"v1\""), "W/\"v1\"");

    let validated = |known: &str| {
        let mut request = request("zstd");
        request.headers_mut().insert("if-none-match", known.parse().unwrap());
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().insert("etag", HeaderValue::from_static("\"v1\""));
        compression().negotiate(&request).apply(&mut response);
        (response.headers()["etag"].clone(), response.headers().contains_key("vary"))
    };
    assert_eq!(validated("\"v0\", W/\"v1\""), (HeaderValue::from_static("W/\"v1\""), true));
    assert_eq!(validated("\"v1\""), (HeaderValue::from_static("\"v1\""), false));
}

//! Bodies that are not what their heads announce, and frames out of order: what reaches the upstream is one whole request,
//! or a fragment on a connection that ends with it.

use crate::raw::{End, Raw, data, end, request};
use crate::recorder::Reply;
use crate::scene::Scene;

const MESSAGE_ERROR: u64 = 0x10e;
const FRAME_UNEXPECTED: u64 = 0x105;

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_contradict_their_length_never_look_whole() {
    // Pieces of the body; each arrives by itself.
    for pieces in [&["four"][..], &["fo", "ur"], &["sixsix"], &["five5", "6"], &["five", "five"], &["f"]] {
        let scene = Scene::new(|message| Reply::ok(&message.body)).await;
        let raw = Raw::connect(&scene.server).await;
        let (mut send, recv) = raw.open().await;
        send.write_all(&request("POST", &[("content-length", "5")])).await.unwrap();
        for piece in pieces {
            send.write_bytes(data(piece)).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        send.finish();
        assert_eq!(end(recv).await, End::Reset(MESSAGE_ERROR), "{pieces:?}");
        let closed = |links: &[crate::recorder::Link]| links.iter().all(|link| link.is_closed);
        let links = scene.upstream.wait("the connection ends", closed).await;
        assert!(links.iter().all(|link| link.messages().is_empty()), "{pieces:?}: {links:?}");
        for link in links {
            let text = String::from_utf8(link.bytes).unwrap();
            let body = text.split_once("\r\n\r\n").map_or("", |parts| parts.1);
            assert!(body.len() < 5, "{pieces:?}: {text}");
        }
        // The next one's request is its own.
        scene.is_well().await;
        assert_eq!(scene.upstream.messages().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_length_without_a_body_is_not_forwarded() {
    let scene = Scene::new(|_| Reply::ok(b"")).await;
    let raw = Raw::connect(&scene.server).await;
    // CVE-2026-33555: at once, and behind a pause.
    for pause in [0, 30] {
        let (mut send, recv) = raw.open().await;
        send.write_all(&request("POST", &[("content-length", "5")])).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        send.finish();
        assert_eq!(end(recv).await, End::Reset(MESSAGE_ERROR));
    }
    assert!(scene.upstream.links().is_empty(), "nothing is sent, no connection is made");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lengths_are_one_if_they_are_equal() {
    let scene = Scene::new(|message| Reply::ok(&message.body)).await;
    let raw = Raw::connect(&scene.server).await;
    let ask = |lengths: &'static [&'static str]| {
        let fields: Vec<_> = lengths.iter().map(|length| ("content-length", *length)).collect();
        [&request("POST", &fields)[..], &data("five5")].concat()
    };
    assert_eq!(raw.ask(&ask(&["5", "5"])).await, End::Status(200));
    assert_eq!(scene.upstream.messages()[0].all("content-length"), ["5"]);
    for wrong in
        [&["5", "6"][..], &["+5"], &["5,5"], &[""], &["0x5"], &["18446744073709551616"], &["-5"], &["5 "]]
    {
        assert_eq!(raw.ask(&ask(wrong)).await, End::Reset(MESSAGE_ERROR), "{wrong:?}");
    }
    assert_eq!(scene.upstream.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_out_of_order_end_the_connection() {
    let scene = Scene::new(|_| Reply::ok(b"")).await;
    let head = request("POST", &[]);
    let trailers = crate::raw::headers(&[("x", "1")]);
    let five = data("five5");
    for frames in [
        vec![&five[..], &head],
        vec![&head, &five, &trailers, &five],
        vec![&head, &trailers, &trailers],
        vec![&head, &trailers, &five],
    ] {
        let raw = Raw::connect(&scene.server).await;
        let (mut send, mut recv) = raw.open().await;
        send.write_all(&frames.concat()).await.unwrap();
        send.finish();
        let reading = tokio::time::timeout(crate::common::PATIENCE, recv.read_to_end(10_000)).await;
        let error = reading.expect("nothing comes").expect_err("no response is due");
        let code = format!("{FRAME_UNEXPECTED:#x}");
        assert!(format!("{error:?}").contains(&FRAME_UNEXPECTED.to_string()), "{error:?} is not {code}");
    }
    scene.is_well().await;
    let closed = |links: &[crate::recorder::Link]| {
        links.iter().all(|link| link.is_closed || link.messages().len() == 1)
    };
    scene.upstream.wait("connections with fragments end", closed).await;
    let targets: Vec<_> = scene.upstream.messages().iter().map(|message| message.target.clone()).collect();
    assert_eq!(targets, ["/well"]);
}

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, StreamBody};

use super::*;

#[tokio::test]
async fn a_body_knows_its_length_and_its_end() {
    for (body, length) in [(Body::empty(), 0), (Body::from("four"), 4), (Body::from(Vec::new()), 0)] {
        assert_eq!(body.size_hint().exact(), Some(length));
        assert_eq!(body.is_end_stream(), length == 0);
        assert_eq!(body.collect(10).await.unwrap().len() as u64, length);
    }
}

#[tokio::test]
async fn a_body_of_this_type_is_not_wrapped_again() {
    let body = Body::new(Body::from("four"));
    assert_eq!(format!("{body:?}"), "Body(4 bytes)");
    assert_eq!(format!("{:?}", Body::new(http_body_util::Full::new(Bytes::new()))), "Body(stream)");
}

#[tokio::test]
async fn a_body_longer_than_the_limit_is_an_error() {
    let (sender, body) = Body::channel();
    let feed = tokio::spawn(async move {
        for _ in 0..3 {
            sender.send("four").await?;
        }
        sender.finish().await
    });
    assert!(matches!(body.collect(11).await, Err(BodyError::TooLong { limit: 11 })));
    assert_eq!(feed.await.unwrap(), Err(BodyGone));
}

#[tokio::test]
async fn a_sender_that_leaves_before_the_end_is_an_error() {
    let (sender, mut body) = Body::channel();
    sender.send("half").await.unwrap();
    drop(sender);
    assert_eq!(body.chunk().await.unwrap().unwrap(), "half");
    assert!(matches!(body.chunk().await, Err(BodyError::Unfinished)));
    assert!(body.chunk().await.unwrap().is_none(), "an error comes once");
}

#[tokio::test]
async fn trailers_come_behind_the_data() {
    let (sender, body) = Body::channel();
    let feed = async {
        sender.send("data").await.unwrap();
        let trailers = [(header::ETAG, HeaderValue::from_static("x"))].into_iter().collect();
        sender.finish_with(trailers).await.unwrap();
    };
    let (collected, ()) = tokio::join!(BodyExt::collect(body), feed);
    let collected = collected.unwrap();
    assert_eq!(collected.trailers().unwrap()[header::ETAG], "x");
    assert_eq!(collected.to_bytes(), "data");
}

#[tokio::test]
async fn errors_of_other_bodies_keep_their_text_and_ours_their_kind() {
    let fails = |error: BoxError| Body::new(StreamBody::new(futures::stream::iter([Err(error)])));
    let error = fails("the disk is gone".into()).chunk().await.unwrap_err();
    assert!(matches!(error, BodyError::Source(_)));
    assert_eq!(error.to_string(), "the disk is gone");
    let error = fails(Box::new(BodyError::Reset(7))).chunk().await.unwrap_err();
    assert!(matches!(error, BodyError::Reset(7)));
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

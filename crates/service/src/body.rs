//! A message body of any origin behind one type.

use std::any::Any;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};

use super::channel::{self, BodySender};
use super::error::{BodyError, BoxError};

/// A message body: nothing, bytes in memory, or frames as they come.
///
/// It is an `http_body::Body`, so the ecosystem's tools (`http-body-util`, tower, axum) work with it. Dropping it gives the
/// rest up.
///
/// # Example
/// ```
/// use posthaste_service::Body;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut body = Body::from("hello");
/// assert_eq!(body.chunk().await.unwrap().as_deref(), Some(b"hello".as_slice()));
/// assert_eq!(body.chunk().await.unwrap(), None);
/// # });
/// ```
#[derive(Default)]
pub struct Body(Kind);

type Stream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError> + Send>>;

#[derive(Default)]
enum Kind {
    #[default]
    Empty,
    Full(Bytes),
    Stream(Stream),
}

impl Body {
    /// No body.
    pub const fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// A body of another type. Its errors become [`BodyError::Source`].
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // A body of this type need not be put into a box.
        let mut body = Some(body);
        if let Some(own) = (&mut body as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return own.take().unwrap_or_default();
        }
        body.map_or_else(Self::empty, |body| Self(Kind::Stream(Box::pin(AnyBody(Box::pin(body))))))
    }

    /// A body that another task feeds, and the end to feed it by. One frame waits between them.
    pub fn channel() -> (BodySender, Self) {
        let (sender, body) = channel::channel();
        (sender, Self(Kind::Stream(Box::pin(body))))
    }

    /// The next data, or `None` at the end. Trailers are passed over. Cancel safe.
    ///
    /// # Errors
    /// The body is not whole.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            match self.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The next data or the trailers, or `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// The body is not whole.
    pub async fn frame(&mut self) -> Option<Result<Frame<Bytes>, BodyError>> {
        poll_fn(|cx| http_body::Body::poll_frame(Pin::new(self), cx)).await
    }

    /// The whole body, without its trailers.
    ///
    /// # Errors
    /// [`BodyError::TooLong`] as soon as there are more than `limit` bytes; others if the body is not whole.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, BodyError> {
        let mut all = BytesMut::new();
        let mut first = Bytes::new();
        while let Some(chunk) = self.chunk().await? {
            if first.len() + all.len() + chunk.len() > limit {
                return Err(BodyError::TooLong { limit });
            }
            // One piece needs no copy.
            if first.is_empty() && all.is_empty() {
                first = chunk;
                continue;
            }
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&chunk);
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }
}

/// What polling a body of this crate for its next frame answers.
pub type PolledFrame = Poll<Option<Result<Frame<Bytes>, BodyError>>>;

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Kind::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Kind::Stream(stream) => stream.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(stream) => stream.size_hint(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Empty => f.write_str("Body(empty)"),
            Kind::Full(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(if bytes.is_empty() { Kind::Empty } else { Kind::Full(bytes) })
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

/// Gives a body the error type of this crate.
struct AnyBody<B>(Pin<Box<B>>);

impl<B> http_body::Body for AnyBody<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let frame = self.0.as_mut().poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map_err(|error| BodyError::of_source(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

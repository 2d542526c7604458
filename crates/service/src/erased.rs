//! Services without their types, so that the server is compiled once.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;

use bytes::Bytes;
use tower_service::Service;

use super::error::BoxError;
use super::{Body, Request, Response};

/// What a service makes of one request.
pub type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A service whose type is forgotten. A clone of it answers one request.
pub trait AnyService: Send {
    /// Another one of the same service.
    fn another(&self) -> Box<dyn AnyService>;

    /// Waits until the service is ready, and has it answer.
    fn answer(self: Box<Self>, request: Request) -> Answer;
}

/// Forgets the service's type.
pub fn erase<S, B>(service: S) -> Box<dyn AnyService>
where
    S: Service<Request, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Box::new(Erased(service))
}

struct Erased<S>(S);

impl<S, B> AnyService for Erased<S>
where
    S: Service<Request, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn another(&self) -> Box<dyn AnyService> {
        Box::new(Self(self.0.clone()))
    }

    fn answer(mut self: Box<Self>, request: Request) -> Answer {
        Box::pin(async move {
            let Ok(()) = poll_fn(|cx| self.0.poll_ready(cx)).await;
            let Ok(response) = self.0.call(request).await;
            response.map(Body::new)
        })
    }
}

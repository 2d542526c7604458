//! Requests by the connections to one upstream.

use std::time::Duration;

use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connector::{Connector, TooSlow};
use crate::failure::{BoxError, Failure};
use crate::http1::Http1;
use crate::limits::{CONNECTION_WINDOW, RESPONSE_HEAD, STREAM_WINDOW};
use crate::options::ProxyOptions;
use crate::received::Received;
use crate::upload::Outgoing;
use crate::upstream::Upstream;

/// How often an upstream over HTTP/2 is asked whether it is still there while it has requests, and its time to answer.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const ALIVE_WITHIN: Duration = Duration::from_secs(10);

/// The connections to one upstream.
pub(crate) enum Pool {
    Http1(Box<Http1>),
    Http2(Box<Client<Connector, Outgoing>>),
}

impl Pool {
    /// A pool without connections.
    pub(crate) fn new(upstream: &Upstream, options: &ProxyOptions) -> Self {
        let connector = Connector::new(upstream, options.connect_timeout);
        if !upstream.is_http2() {
            return Self::Http1(Box::new(Http1::new(connector, options)));
        }
        let client = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_max_header_list_size(RESPONSE_HEAD as u32)
            .http2_keep_alive_interval(ALIVE_EVERY)
            .http2_keep_alive_timeout(ALIVE_WITHIN)
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.keep_timeout)
            .pool_max_idle_per_host(options.max_idle)
            .set_host(false)
            .build(connector);
        Self::Http2(Box::new(client))
    }

    /// The head of the response, and its body as it comes. The request's URI is its whole [target](Upstream::target).
    ///
    /// # Errors
    /// There is no connection, or no response.
    pub(crate) async fn request(
        &self,
        request: http::Request<Outgoing>,
    ) -> Result<http::Response<Received>, Failure> {
        match self {
            Self::Http1(http1) => http1.request(request).await,
            Self::Http2(client) => {
                let response = client.request(request).await.map_err(failure)?;
                Ok(response.map(Received::driven_elsewhere))
            }
        }
    }
}

fn failure(error: Error) -> Failure {
    let is_connect = error.is_connect();
    let error: BoxError = error.into();
    match find::<TooSlow>(&*error) {
        Some(slow) => Failure::ConnectTimeout(slow.0),
        None if is_connect => Failure::Connect(error),
        None => Failure::NoResponse(error),
    }
}

/// The first cause of this type.
fn find<'a, T: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

//! The service: one request in, one request to the upstream out.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

use http::header::{self, HeaderMap};
use http::{Method, StatusCode, Version};
use posthaste_service::{Body, Early, EarlyHints, Request, Response, Upgrade};
use tokio::time::Instant;
use tower_service::Service;

use crate::attempt::Attempt;
use crate::balance::{Group, Lease};
use crate::download::Download;
use crate::failure::Failure;
use crate::forwarded::Introduction;
use crate::framing::{self, Begun, Framing};
use crate::from_upstream;
use crate::health::watch;
use crate::observer::UpstreamState;
use crate::options::ProxyOptions;
use crate::patience::Patience;
use crate::received::Received;
use crate::to_upstream::{Outline, outline};
use crate::tunnel::tunnel;
use crate::upload::Upload;
use crate::upstream::Upstream;
use crate::websocket::{Handshake, wanted};

/// A reverse proxy: a service that has its requests answered by an [`Upstream`], or one of several.
///
/// Clones share their connections, [others](Self::another) do not.
#[derive(Clone)]
pub struct Proxy(Arc<Shared>);

/// A proxy's name is not a token (RFC 9110 section 5.6.2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name for Via: letters, digits, hyphens and dots are")]
pub struct InvalidName(String);

struct Shared {
    group: Arc<Group>,
    introduction: Introduction,
    options: ProxyOptions,
    /// Health checks begin with the first request.
    watched: Arc<Once>,
}

impl Proxy {
    /// A proxy in front of `upstream`. It connects when the first request comes.
    ///
    /// # Errors
    /// [`ProxyOptions::name`] cannot stand in `Via`.
    pub fn new(upstream: Upstream, options: ProxyOptions) -> Result<Self, InvalidName> {
        Self::balanced([upstream], options)
    }

    /// A proxy in front of several upstreams that serve the same. Without any, all requests are answered with 503.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn balanced(
        upstreams: impl IntoIterator<Item = Upstream>,
        options: ProxyOptions,
    ) -> Result<Self, InvalidName> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if options.name.is_empty() || !options.name.bytes().all(is_name) {
            return Err(InvalidName(options.name));
        }
        let introduction =
            Introduction::new(options.name.clone(), options.trusted.clone(), options.forwarded);
        let group = Arc::new(Group::new(upstreams, &options));
        Ok(Self(Arc::new(Shared { group, introduction, options, watched: Arc::new(Once::new()) })))
    }

    /// A proxy in front of the same upstreams, with connections of its own to them, for another runtime: a connection is
    /// driven by the one that made it. What is known of the upstreams is common: open requests, failures, health.
    #[must_use]
    pub fn another(&self) -> Self {
        let Shared { group, introduction, options, watched } = &*self.0;
        let (introduction, options) = (introduction.clone(), options.clone());
        let group = Arc::new(group.another(&options));
        Self(Arc::new(Shared { group, introduction, options, watched: Arc::clone(watched) }))
    }

    /// How the upstreams are, in the order in which they were given.
    pub fn upstreams(&self) -> Vec<UpstreamState> {
        self.0.group.states(Instant::now()).collect()
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({})", self.0.group)
    }
}

impl Service<Request> for Proxy {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let shared = Arc::clone(&self.0);
        if let Some(check) = &shared.options.health {
            shared.watched.call_once(|| watch(&shared.group, check.clone()));
        }
        Box::pin(async move {
            let forwarded = shared.forward(request).await;
            Ok(forwarded.unwrap_or_else(|failure| {
                let (upstream, failed) = (&shared.group, failure.detail());
                if failure.is_of_upstream() {
                    tracing::warn!(%upstream, failed, "no response");
                } else {
                    tracing::debug!(%upstream, failed, "a request was not forwarded");
                }
                failure.response()
            }))
        })
    }
}

impl Shared {
    async fn forward(&self, request: Request) -> Result<Response, Failure> {
        let (parts, body) = request.into_parts();
        let outline = outline(&parts, &self.introduction)?;
        if let Some(upgrade) = wanted(parts.extensions.get::<Upgrade>(), parts.version)? {
            return self.connect(upgrade, parts.version, outline).await;
        }
        let wait = self.options.first_frame_timeout;
        let (framing, body) =
            framing::decide(&outline.method, &parts.headers, &outline.trailers, body, wait).await?;
        let upload = Upload::new(body);
        let attempt = Attempt {
            group: &self.group,
            outline: &outline,
            framing,
            upload: &upload,
            hints: parts.extensions.get::<EarlyHints>(),
            patience: self.options.head_timeout,
        };
        // A client that gives up drops this future: the upload must end with it.
        let mut guard = GiveUp(Some(&upload));
        // By now the handshake may be complete.
        let early = parts.extensions.get::<Early>().filter(|early| !early.is_settled());
        let (mut response, mut lease) = attempt.make(early.is_some() || outline.was_early).await?;
        if let Some(early) = early.filter(|_| !outline.was_early)
            && response.status() == StatusCode::TOO_EARLY
            && upload.is_untouched()
            && early.settled().await.is_ok()
        {
            // RFC 8470 section 5.2: the request is no repetition, which the upstream could not know.
            (response, lease) = attempt.make(false).await?;
        }
        let response = self.respond(&outline.method, response, &upload, lease)?;
        // From here on the response's body decides.
        guard.0 = None;
        Ok(response)
    }

    /// Forwards the question for another protocol, and joins both ends if the upstream agrees.
    async fn connect(
        &self,
        upgrade: &Upgrade,
        version: Version,
        mut outline: Outline,
    ) -> Result<Response, Failure> {
        if self.group.has_http2() {
            let detail = "the server behind this one speaks HTTP/2, by which WebSocket is not forwarded";
            return Err(Failure::Refused(StatusCode::NOT_IMPLEMENTED, detail));
        }
        let handshake = Handshake::begin(version, &mut outline.fields)?;
        let upload = Upload::new(Begun { first: None, rest: Body::empty() });
        let attempt = Attempt {
            group: &self.group,
            outline: &outline,
            framing: Framing::None,
            upload: &upload,
            hints: None,
            patience: self.options.head_timeout,
        };
        let (mut response, lease) = attempt.make(false).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            handshake.declined(response.status())?;
            return self.respond(&outline.method, response, &upload, lease);
        }
        handshake.finish(response.headers_mut())?;
        let stream = hyper::upgrade::on(&mut response);
        response.body_mut().detach();
        let stream = stream.await.map_err(|error| Failure::NoResponse(error.into()))?;
        let parts = from_upstream::any_head(response.into_parts().0)?;
        let received = upgrade.accept().ok_or(Failure::Switched)?;
        let body = tunnel(received, stream, self.options.tunnel_timeout, lease);
        Ok(Response::from_parts(parts, body))
    }

    fn respond(
        &self,
        method: &Method,
        response: http::Response<Received>,
        upload: &Arc<Upload>,
        lease: Lease,
    ) -> Result<Response, Failure> {
        let (parts, body) = response.into_parts();
        let parts = from_upstream::head(parts).inspect_err(|failure| lease.failed(failure.reason()))?;
        if parts.status.is_client_error() || parts.status.is_server_error() {
            upload.hold();
        }
        let patience =
            (!is_event_stream(&parts.headers)).then(|| Patience::new(self.options.idle_timeout, upload));
        let download = Download::new(body, Arc::clone(upload), patience, lease);
        // What has no content by its method has none whatever the upstream sends.
        let body = if *method == Method::HEAD { Body::empty() } else { Body::new(download) };
        Ok(Response::from_parts(parts, body))
    }
}

/// Gives an upload up when dropped.
struct GiveUp<'a>(Option<&'a Upload>);

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if let Some(upload) = self.0 {
            upload.give_up();
        }
    }
}

fn is_event_stream(fields: &HeaderMap) -> bool {
    let kind = fields.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let name = b"text/event-stream";
    kind.get(..name.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(name))
}

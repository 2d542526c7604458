//! One request and its response.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use hyper::body::Incoming;
use posthaste_service::{AnyService, Body, Outcome, Peer, Protocol, Request, Response, text};

use crate::activity::{Activity, Open};
use crate::record::Record;
use crate::request_body::RequestBody;
use crate::response_body::ResponseBody;
use crate::server::Shared;
use crate::target::unify;

/// Fields of a response that speak of the connection, which is not the service's matter (RFC 9110 section 7.6.1).
const OF_CONNECTION: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What the requests of one connection share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) server_name: Option<Arc<str>>,
    pub(crate) activity: Arc<Activity>,
}

/// Has a request answered. A client that gives up drops this, and with it the service's work.
pub(crate) async fn answer(
    context: Context,
    service: Box<dyn AnyService>,
    request: http::Request<Incoming>,
) -> Result<http::Response<ResponseBody>, Infallible> {
    let options = &context.shared.options;
    let open = Open::new(&context.activity);
    let (mut parts, body) = request.into_parts();
    let unified = unify(&mut parts);
    let is_refused = unified.is_err();
    let log = options.access_log.clone();
    let (method, target) = (parts.method.clone(), parts.uri.clone());
    let mut record = Record::new(log, context.client, context.protocol, method.clone(), target);
    let (mut response, slot) = if let Err((status, detail)) = unified {
        (refuse(&context, status, detail), None)
    } else {
        // It is never closed.
        let slot = Arc::clone(&context.shared.slots).acquire_owned().await.ok();
        let peer = Peer::new(context.client, context.protocol, context.server_name.clone());
        parts.extensions.clear();
        parts.extensions.insert(peer);
        let body = Body::new(RequestBody::new(body, options.stall_timeout));
        (call(&context, service, Request::from_parts(parts, body), &mut record).await, slot)
    };
    complete(&method, &mut response);
    if is_refused && context.protocol == Protocol::Http1 {
        // What follows may be part of a trick on a proxy in between.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let alternative = context.shared.alternative.as_ref();
    if let Some(alternative) = alternative.filter(|it| it.is_of(&record.target)) {
        alternative.tell(response.headers_mut());
    }
    record.status = Some(response.status());
    Ok(response.map(|body| ResponseBody::new(body, record, open, slot)))
}

/// What the service answers; a failure of it is status 500.
async fn call(
    context: &Context,
    service: Box<dyn AnyService>,
    request: Request,
    record: &mut Record,
) -> Response {
    let failure = match AssertUnwindSafe(service.answer(request)).catch_unwind().await {
        // The client would wait for the response that follows.
        Ok(response) if response.status().is_informational() => {
            "the service's response is an informational one"
        }
        Ok(response) => return response,
        Err(_) => "the service panicked",
    };
    tracing::error!(client = %context.client, failure, "a request could not be answered");
    record.outcome = Some(Outcome::Failed(failure.to_owned()));
    text(StatusCode::INTERNAL_SERVER_ERROR, "")
}

/// The answer to a request that no service sees.
fn refuse(context: &Context, status: StatusCode, detail: &'static str) -> Response {
    tracing::debug!(client = %context.client, detail, "a request was refused");
    text(status, detail)
}

/// Makes a response what HTTP wants of it, whatever the service left out.
fn complete(method: &Method, response: &mut Response) {
    let (status, body) = (response.status(), response.body());
    // RFC 9110 section 6.4.1.
    let has_content = !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = http_body::Body::size_hint(body).exact();
    for name in &OF_CONNECTION {
        response.headers_mut().remove(name);
    }
    if let (true, true, Some(length)) = (has_content, *method != Method::HEAD, length) {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    if *method == Method::HEAD || !has_content {
        *response.body_mut() = Body::empty();
    }
}

//! One request and its response.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use posthaste_service::{
    AnyService, Body, Outcome, Peer, Protocol, Request, Response, Upgrade, complete, text,
};

use crate::activity::{Activity, Open};
use crate::io::Cut;
use crate::record::Record;
use crate::request_body::RequestBody;
use crate::response_body::ResponseBody;
use crate::server::Shared;
use crate::target::unify;
use crate::upgrade::{self, Held};

/// What the requests of one connection share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) server_name: Option<Arc<str>>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) cut: Arc<Cut>,
}

/// A response as hyper gets it; the bytes of a tunnel go another way.
type Answer = http::Response<Either<ResponseBody, Empty<Bytes>>>;

/// Has a request answered. A client that gives up drops this, and with it the service's work.
pub(crate) async fn answer(
    context: Context,
    service: Box<dyn AnyService>,
    mut request: http::Request<Incoming>,
) -> Result<Answer, Infallible> {
    let options = &context.shared.options;
    let open = Open::new(&context.activity);
    let asked = if options.upgrades { upgrade::asked(&mut request) } else { None };
    let upgrade = asked.as_ref().map(|asked| asked.upgrade.clone());
    let (mut parts, body) = request.into_parts();
    let version = parts.version;
    let unified = unify(&mut parts, asked.is_some());
    let is_refused = unified.is_err();
    let log = options.access_log.clone();
    let (method, target) = (parts.method.clone(), parts.uri.clone());
    let mut record = Record::new(log, context.client, context.protocol, method.clone(), target);
    let (mut response, slot) = if let Err((status, detail)) = unified {
        (refuse(&context, status, detail), None)
    } else {
        // It is never closed.
        let slot = Arc::clone(&context.shared.budget.requests).acquire_owned().await.ok();
        let peer = Peer::new(context.client, context.protocol, context.server_name.clone());
        parts.extensions.clear();
        parts.extensions.insert(peer);
        if let Some(remarks) = record.remarks() {
            parts.extensions.insert(remarks);
        }
        let body = match &upgrade {
            None => Body::new(RequestBody::new(body, options.stall_timeout)),
            Some(upgrade) => {
                parts.method = Method::GET;
                parts.extensions.insert(upgrade.clone());
                Body::empty()
            }
        };
        let request = Request::from_parts(parts, body);
        (call(&context, service, request, upgrade.as_ref(), &mut record).await, slot)
    };
    let tunnel = asked.filter(|asked| asked.upgrade.conclude(version, &mut response));
    if tunnel.is_none() {
        complete(&method, &mut response);
    }
    if is_refused && context.protocol == Protocol::Http1 {
        // What follows may be part of a trick on a proxy in between.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let alternative = context.shared.alternative.as_ref();
    if let Some(alternative) = alternative.filter(|it| it.is_of(&record.target)) {
        record.tells_http3 = alternative.tell(response.headers_mut());
    }
    record.on_response(response.status());
    let Some(tunnel) = tunnel else {
        return Ok(response.map(|body| Either::Left(ResponseBody::new(body, record, open, slot))));
    };
    if context.protocol == Protocol::Http1 {
        context.cut.becomes_tunnel();
    }
    let (head, body) = response.into_parts();
    tunnel.carry(body, Held { record, open, _slot: slot }, Arc::clone(&context.cut));
    Ok(http::Response::from_parts(head, Either::Right(Empty::new())))
}

/// What the service answers; a failure of it is status 500.
async fn call(
    context: &Context,
    service: Box<dyn AnyService>,
    request: Request,
    upgrade: Option<&Upgrade>,
    record: &mut Record,
) -> Response {
    let failure = match AssertUnwindSafe(service.answer(request)).catch_unwind().await {
        Ok(response) if upgrade.is_some_and(|upgrade| upgrade.is_agreed(&response)) => return response,
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

//! Connections over HTTP/1.1 to one upstream, and which of them are kept.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use hyper::client::conn::http1::Builder;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use tower_service::Service;

use crate::connector::{Connector, TooSlow};
use crate::driven::{Driven, Owner};
use crate::failure::{BoxError, Failure};
use crate::limits::{RESPONSE_FIELDS, RESPONSE_HEAD};
use crate::options::ProxyOptions;
use crate::received::Received;
use crate::upload::Outgoing;

/// Longest time for which a connection can be kept: a moment behind it has no name.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Sends requests by connections that are kept, or by new ones.
pub(crate) struct Http1 {
    connector: Connector,
    builder: Builder,
    kept: Arc<Kept>,
}

/// Connections without an exchange. A task sees to it that those which the upstream ends, or nobody uses, are closed.
pub(crate) struct Kept {
    idle: Mutex<Idle>,
    /// Time for which one is kept.
    time: Duration,
    /// How many, at most.
    most: usize,
    watcher: Arc<Owner>,
    /// That of `watcher`.
    waker: Waker,
}

#[derive(Default)]
struct Idle {
    /// Since when they are idle; the last came last.
    links: VecDeque<(Instant, Driven)>,
    /// The task is there.
    is_watched: bool,
}

impl Http1 {
    pub(crate) fn new(connector: Connector, options: &ProxyOptions) -> Self {
        let mut builder = Builder::new();
        builder.max_buf_size(RESPONSE_HEAD).max_headers(RESPONSE_FIELDS);
        let watcher = Arc::<Owner>::default();
        let kept = Kept {
            idle: Mutex::default(),
            time: options.keep_timeout.min(LONGEST),
            most: options.max_idle,
            waker: Arc::clone(&watcher).into(),
            watcher,
        };
        Self { connector, builder, kept: Arc::new(kept) }
    }

    /// As [`Pool::request`](crate::pool::Pool::request). What a kept connection has not begun to send goes by another one.
    pub(crate) async fn request(
        &self,
        mut request: http::Request<Outgoing>,
    ) -> Result<http::Response<Received>, Failure> {
        let target = std::mem::take(request.uri_mut()).into_parts();
        let scheme = target.scheme.unwrap_or(Scheme::HTTP);
        let name = target.authority.unwrap_or_else(|| Authority::from_static("localhost"));
        // The form of a request to an origin.
        *request.uri_mut() = target.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/")).into();
        let upload = Arc::clone(request.body().upload());
        loop {
            let kept = self.kept.take(&name);
            let is_kept = kept.is_some();
            let mut link = match kept {
                Some(link) => link,
                None => self.connect(&scheme, &name).await?,
            };
            let mut sending = pin!(link.sender().try_send_request(request));
            let sent = poll_fn(|cx| link.poll_until(cx, |cx| sending.as_mut().poll(cx))).await;
            let mut error = match sent {
                Some(Ok(response)) if upload.is_over() => {
                    let kept = Arc::clone(&self.kept);
                    return Ok(response.map(|body| Received::driven_by(link, body, kept)));
                }
                Some(Ok(response)) => {
                    // The upload must go on even if the client takes nothing of the response.
                    link.detach();
                    return Ok(response.map(Received::driven_elsewhere));
                }
                Some(Err(error)) => error,
                None => return Err(Failure::NoResponse("the connection ended".into())),
            };
            match error.take_message() {
                Some(unsent) if is_kept => request = unsent,
                _ => return Err(Failure::NoResponse(error.into_error().into())),
            }
        }
    }

    async fn connect(&self, scheme: &Scheme, name: &Authority) -> Result<Driven, Failure> {
        let target = Uri::builder().scheme(scheme.clone()).authority(name.clone()).path_and_query("/");
        let target = target.build().map_err(|error| Failure::Connect(error.into()))?;
        let mut connector = self.connector.clone();
        poll_fn(|cx| connector.poll_ready(cx)).await.map_err(failure)?;
        let link = connector.call(target).await.map_err(failure)?;
        let begun = self.builder.handshake(link).await;
        let (sender, connection) = begun.map_err(|error| Failure::Connect(error.into()))?;
        Ok(Driven::new(name.clone(), sender, connection))
    }
}

fn failure(error: BoxError) -> Failure {
    match error.downcast_ref::<TooSlow>() {
        Some(slow) => Failure::ConnectTimeout(slow.0),
        None => Failure::Connect(error),
    }
}

impl Kept {
    /// The connection for this name that was used last and can take a request.
    fn take(&self, name: &Authority) -> Option<Driven> {
        loop {
            let (since, mut link) = {
                let mut idle = self.lock();
                let at = idle.links.iter().rposition(|(_, link)| link.name == *name)?;
                idle.links.remove(at)?
            };
            if since.elapsed() < self.time && link.settle(Waker::noop()) {
                return Some(link);
            }
        }
    }

    /// Keeps a connection whose exchange has ended, if it can take another.
    pub(crate) fn put(self: &Arc<Self>, mut link: Driven) {
        // Where there is no runtime nobody could watch it.
        let Ok(runtime) = Handle::try_current() else { return };
        if !link.settle(&self.waker) {
            return;
        }
        let mut idle = self.lock();
        if idle.links.len() >= self.most {
            drop(idle);
            return link.detach();
        }
        idle.links.push_back((Instant::now(), link));
        if !std::mem::replace(&mut idle.is_watched, true) {
            runtime.spawn(watch(Arc::downgrade(self), Arc::clone(&self.watcher)));
        }
    }

    /// Closes what need not be kept; says until when there is nothing more to do. `None` if nothing is left to watch.
    fn sweep(&self) -> Option<Instant> {
        let mut closed = Vec::new();
        let mut idle = self.lock();
        let now = Instant::now();
        let mut at = 0;
        while let Some((since, link)) = idle.links.get_mut(at) {
            let is_good = now < *since + self.time && (!link.is_due() || link.settle(&self.waker));
            if is_good {
                at += 1;
            } else {
                closed.extend(idle.links.remove(at));
            }
        }
        let next = idle.links.front().map(|(since, _)| *since + self.time);
        idle.is_watched = next.is_some();
        drop(idle);
        for (_, link) in closed {
            link.detach();
        }
        next
    }

    /// The connections are whole after every call.
    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches idle connections as long as there are some.
async fn watch(kept: Weak<Kept>, watcher: Arc<Owner>) {
    let mut timer = pin!(sleep_until(Instant::now()));
    poll_fn(|cx| {
        loop {
            watcher.set(cx.waker());
            let Some(next) = kept.upgrade().and_then(|kept| kept.sweep()) else { return Poll::Ready(()) };
            timer.as_mut().reset(next);
            ready!(timer.as_mut().poll(cx));
        }
    })
    .await;
}

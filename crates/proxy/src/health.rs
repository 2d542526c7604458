//! Health checks: upstreams that are asked now and then how they are.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use http::Version;
use http::header::{self, HeaderValue};
use http::uri::PathAndQuery;
use posthaste_service::Body;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::balance::Group;
use crate::framing::{Begun, Framing};
use crate::upload::{Outgoing, Upload};

/// Checks are not made more often than this.
const LEAST_EVERY: Duration = Duration::from_millis(10);

/// What the checks call themselves.
const USER_AGENT: HeaderValue = HeaderValue::from_static("posthaste-health");

/// How upstreams are asked whether they are well: by a GET of `path`, which is to be answered with a status below 400.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// Path and query.
    pub path: PathAndQuery,
    /// Time between two checks of an upstream.
    pub every: Duration,
    /// Time for a check.
    pub timeout: Duration,
    /// Checks in a row that fail before an upstream gets no more requests; one that succeeds brings it back. At least 1.
    pub failures: u32,
}

/// Checks the upstreams from now on, as long as somebody else has the group.
pub(crate) fn watch(group: &Arc<Group>, check: HealthCheck) {
    tokio::spawn(run(Arc::downgrade(group), check));
}

async fn run(group: Weak<Group>, check: HealthCheck) {
    let mut ticks = interval(check.every.max(LEAST_EVERY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failures = Vec::new();
    loop {
        ticks.tick().await;
        let Some(group) = group.upgrade() else { return };
        failures.resize(group.len(), 0_u32);
        let looks = (0..group.len()).map(|at| is_well(&group, at, &check));
        let all = join_all(looks).await;
        for (at, (is_well, failed)) in all.into_iter().zip(&mut failures).enumerate() {
            *failed = if is_well { 0 } else { failed.saturating_add(1) };
            if is_well || *failed >= check.failures.max(1) {
                group.set_down(at, !is_well);
            }
        }
    }
}

async fn is_well(group: &Group, at: usize, check: &HealthCheck) -> bool {
    let Some((upstream, pool)) = group.get(at) else { return false };
    let upload = Upload::new(Begun { first: None, rest: Body::empty() });
    let mut request = http::Request::new(Outgoing::new(&upload, Framing::None));
    let authority = upstream.authority();
    *request.uri_mut() = upstream.target(authority, check.path.clone());
    if upstream.is_http2() {
        *request.version_mut() = Version::HTTP_2;
    } else if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
        request.headers_mut().insert(header::HOST, host);
    }
    request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
    match timeout(check.timeout, pool.request(request)).await {
        Ok(Ok(response)) => response.status().as_u16() < 400,
        Ok(Err(failure)) => {
            let failed = failure.detail();
            tracing::debug!(%upstream, failed, "a health check failed");
            false
        }
        Err(_) => {
            tracing::debug!(%upstream, "a health check took too long");
            false
        }
    }
}

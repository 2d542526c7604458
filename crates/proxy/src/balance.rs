//! Which of several upstreams gets a request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::observer::{UpstreamFailure, UpstreamHealth, UpstreamState};
use crate::options::ProxyOptions;
use crate::pool::Pool;
use crate::upstream::Upstream;

/// Connections in a row that fail before an upstream is left out.
const FAILURES: u32 = 3;

/// For how long it is left out; each time the double of the time before, up to the last.
const FIRST_EJECTION: Duration = Duration::from_secs(1);
const LAST_EJECTION: Duration = Duration::from_secs(60);

/// The upstreams of a proxy. Of those that can be asked, the one with the fewest requests gets the next, the first of them
/// if there are several: the choice depends on nothing else.
///
/// Groups that were made of one another have what is known of the upstreams in common, and connections of their own.
pub(crate) struct Group {
    backends: Arc<[Backend]>,
    /// By the places of their upstreams.
    pools: Box<[Pool]>,
}

struct Backend {
    upstream: Upstream,
    /// Requests whose responses have not ended.
    open: AtomicUsize,
    standing: Mutex<Standing>,
}

/// What is known of an upstream.
#[derive(Debug, Default)]
struct Standing {
    /// Connections that have failed since one was made.
    failures: u32,
    /// How often it has been left out since then.
    ejections: u32,
    /// Until when it is left out.
    until: Option<Instant>,
    /// Health checks say that it is down.
    is_down: bool,
}

impl Standing {
    fn is_ejected(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// An upstream that works on a request until this is dropped.
pub(crate) struct Lease {
    group: Arc<Group>,
    at: usize,
}

impl Group {
    pub(crate) fn new(upstreams: impl IntoIterator<Item = Upstream>, options: &ProxyOptions) -> Self {
        let backend =
            |upstream: Upstream| Backend { upstream, open: AtomicUsize::new(0), standing: Mutex::default() };
        Self::of(upstreams.into_iter().map(backend).collect(), options)
    }

    /// The same upstreams by other connections.
    pub(crate) fn another(&self, options: &ProxyOptions) -> Self {
        Self::of(Arc::clone(&self.backends), options)
    }

    fn of(backends: Arc<[Backend]>, options: &ProxyOptions) -> Self {
        let pools = backends.iter().map(|backend| Pool::new(&backend.upstream, options)).collect();
        Self { backends, pools }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.backends.len()
    }

    /// True if one of them speaks HTTP/2.
    pub(crate) fn has_http2(&self) -> bool {
        self.backends.iter().any(|backend| backend.upstream.is_http2())
    }

    /// The upstream for a request. If all that health checks find well are left out, it is the one whose time ends first:
    /// to try is better than to refuse. `None` if none is well.
    pub(crate) fn choose(self: &Arc<Self>, now: Instant) -> Option<Lease> {
        let ejected = || {
            let well = self.well().filter_map(|(at, backend)| Some((backend.lock().until?, at)));
            well.min().map(|(_, at)| at)
        };
        self.available(now, None).or_else(ejected).map(|at| self.lease(at))
    }

    /// Another upstream for the second attempt at a request.
    pub(crate) fn choose_other(self: &Arc<Self>, now: Instant, first: &Lease) -> Option<Lease> {
        self.available(now, Some(first.at)).map(|at| self.lease(at))
    }

    fn available(&self, now: Instant, except: Option<usize>) -> Option<usize> {
        let others = self.well().filter(|(at, _)| Some(*at) != except);
        let available = others.filter(|(_, backend)| !backend.lock().is_ejected(now));
        available.map(|(at, backend)| (backend.open.load(Ordering::Relaxed), at)).min().map(|(_, at)| at)
    }

    /// Those that no health check has found down.
    fn well(&self) -> impl Iterator<Item = (usize, &Backend)> {
        self.backends.iter().enumerate().filter(|(_, backend)| !backend.lock().is_down)
    }

    /// The upstream at this place, and its connections.
    pub(crate) fn get(&self, at: usize) -> Option<(&Upstream, &Pool)> {
        Some((&self.backends.get(at)?.upstream, self.pools.get(at)?))
    }

    /// The upstream at this place, for a request.
    fn lease(self: &Arc<Self>, at: usize) -> Lease {
        self.backends[at].open.fetch_add(1, Ordering::Relaxed);
        Lease { group: Arc::clone(self), at }
    }

    /// How the upstreams are.
    pub(crate) fn states(&self, now: Instant) -> impl Iterator<Item = UpstreamState> {
        self.backends.iter().map(move |backend| {
            let standing = backend.lock();
            let health = match (standing.is_down, standing.is_ejected(now)) {
                (true, _) => UpstreamHealth::Down,
                (false, true) => UpstreamHealth::LeftOut,
                (false, false) => UpstreamHealth::Well,
            };
            let open = backend.open.load(Ordering::Relaxed);
            UpstreamState { url: backend.upstream.to_string(), open, health }
        })
    }

    /// Notes what a health check has found.
    pub(crate) fn set_down(&self, at: usize, is_down: bool) {
        let Some(backend) = self.backends.get(at) else { return };
        let mut standing = backend.lock();
        if standing.is_down != is_down {
            if is_down {
                tracing::warn!(upstream = %backend.upstream, "health checks fail: it gets no requests");
            } else {
                tracing::info!(upstream = %backend.upstream, "health checks succeed: it gets requests again");
            }
        }
        if is_down {
            standing.is_down = true;
        } else if standing.is_down {
            // It begins anew.
            *standing = Standing::default();
        }
    }
}

impl Backend {
    /// The standing is whole after every call.
    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub(crate) fn upstream(&self) -> &Upstream {
        &self.group.backends[self.at].upstream
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.group.pools[self.at]
    }

    /// A connection was made, or there was one.
    pub(crate) fn connected(&self) {
        let mut standing = self.group.backends[self.at].lock();
        (standing.failures, standing.ejections, standing.until) = (0, 0, None);
    }

    /// The head of a response has come in this time.
    pub(crate) fn answered(&self, time: Duration) {
        if let Some(log) = self.upstream().log() {
            log.answered(time);
        }
    }

    /// A request has failed there, if a reason says so.
    pub(crate) fn failed(&self, reason: Option<UpstreamFailure>) {
        if let Some((log, reason)) = self.upstream().log().zip(reason) {
            log.failed(reason);
        }
    }

    /// No connection could be made.
    pub(crate) fn not_connected(&self, now: Instant) {
        if self.group.len() < 2 {
            // There is nothing else to ask.
            return;
        }
        let mut standing = self.group.backends[self.at].lock();
        standing.failures += 1;
        if standing.failures < FAILURES || standing.is_ejected(now) {
            return;
        }
        let time = FIRST_EJECTION * 2_u32.pow(standing.ejections.min(6));
        let time = time.min(LAST_EJECTION);
        standing.ejections += 1;
        standing.until = Some(now + time);
        tracing::warn!(upstream = %self.upstream(), failures = standing.failures, ?time, "cannot be reached: left out");
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.group.backends[self.at].open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lease({})", self.upstream())
    }
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, backend) in self.backends.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { ", " } else { "" }, backend.upstream)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(count: usize) -> Arc<Group> {
        let upstream = |at| Upstream::new(&format!("http://127.0.0.1:{}", 3000 + at).parse().unwrap(), None);
        Arc::new(Group::new((0..count).map(|at| upstream(at).unwrap()), &ProxyOptions::default()))
    }

    fn at(lease: Option<Lease>) -> Option<usize> {
        lease.map(|lease| lease.at)
    }

    #[tokio::test]
    async fn the_fewest_requests_decide_and_then_the_order() {
        let (group, now) = (group(3), Instant::now());
        let mut leases: Vec<_> = (0..6).map(|_| group.choose(now).unwrap()).collect();
        assert_eq!(leases.iter().map(|lease| lease.at).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
        leases.retain(|lease| lease.at != 1);
        assert_eq!(at(group.choose(now)), Some(1));
        let first = group.choose(now).unwrap();
        assert_eq!(at(group.choose_other(now, &first)), Some(0));
    }

    #[tokio::test]
    async fn groups_of_the_same_upstreams_choose_as_one() {
        let (one, now) = (group(2), Instant::now());
        let other = Arc::new(one.another(&ProxyOptions::default()));
        let leases = [&one, &other, &one, &other].map(|group| group.choose(now).unwrap());
        assert_eq!(leases.each_ref().map(|lease| lease.at), [0, 1, 0, 1]);
        one.set_down(0, true);
        assert_eq!(at(other.choose(now)), Some(1));
        drop(leases);
        assert_eq!(at(one.choose(now)), Some(1));
    }

    #[tokio::test]
    async fn an_upstream_that_cannot_be_reached_is_left_out_for_longer_and_longer() {
        let (group, mut now) = (group(2), Instant::now());
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            for _ in 0..FAILURES {
                group.lease(0).not_connected(now);
            }
            assert_eq!(at(group.choose(now)), Some(1));
            let end = now + Duration::from_secs(seconds);
            assert_eq!(at(group.choose(end - Duration::from_millis(1))), Some(1), "{seconds}");
            now = end;
            assert_eq!(at(group.choose(now)), Some(0), "{seconds}");
        }
        group.lease(0).connected();
        for _ in 1..FAILURES {
            group.lease(0).not_connected(now);
        }
        assert_eq!(at(group.choose(now)), Some(0), "a connection in between");
    }

    #[tokio::test]
    async fn where_all_are_left_out_the_first_to_come_back_is_tried() {
        let (group, now) = (group(2), Instant::now());
        for (at, now) in [(1, now), (0, now + Duration::from_millis(500))] {
            for _ in 0..FAILURES {
                group.lease(at).not_connected(now);
            }
        }
        let first = group.choose(now + Duration::from_millis(600)).unwrap();
        assert_eq!(first.at, 1);
        assert_eq!(at(group.choose_other(now + Duration::from_millis(600), &first)), None);
        let alone = super::tests::group(1);
        for _ in 0..10 {
            alone.lease(0).not_connected(now);
        }
        assert_eq!(at(alone.choose(now)), Some(0), "one upstream is always asked");
    }

    #[tokio::test]
    async fn what_health_checks_find_down_is_not_asked() {
        let (group, now) = (group(2), Instant::now());
        group.set_down(0, true);
        assert_eq!(at(group.choose(now)), Some(1));
        group.set_down(1, true);
        assert_eq!(at(group.choose(now)), None);
        group.set_down(0, false);
        assert_eq!(at(group.choose(now)), Some(0));
    }
}

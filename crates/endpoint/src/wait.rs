//! Futures over the shared state that leave nothing behind when they are dropped.

use std::future::poll_fn;
use std::task::Poll;

use crate::state::{Guard, Shared, State};
use crate::wakers::WakerSet;

/// Registered with a set of wakers; dropped, it is no longer.
struct Registration<'a, S: Fn(&mut State) -> Option<&mut WakerSet>> {
    shared: &'a Shared,
    set: S,
    key: Option<u64>,
}

impl<S: Fn(&mut State) -> Option<&mut WakerSet>> Drop for Registration<'_, S> {
    fn drop(&mut self) {
        if let Some(key) = self.key
            && let Some(set) = (self.set)(&mut self.shared.lock())
        {
            set.remove(key);
        }
    }
}

/// Waits until `attempt` is ready; it is tried whenever the tasks in `set` are woken.
///
/// Where there is no set (its connection is gone), `attempt` must be ready.
pub(crate) async fn wait<T>(
    shared: &Shared,
    set: impl Fn(&mut State) -> Option<&mut WakerSet>,
    mut attempt: impl FnMut(&mut Guard<'_>) -> Poll<T>,
) -> T {
    let mut registration = Registration { shared, set, key: None };
    poll_fn(|cx| {
        let mut guard = shared.lock();
        let outcome = attempt(&mut guard);
        if outcome.is_pending()
            && let Some(set) = (registration.set)(&mut guard)
        {
            set.register(&mut registration.key, cx.waker());
        }
        outcome
    })
    .await
}

//! Tasks that wait for something, kept so that a cancelled wait leaves nothing behind.

use std::task::Waker;

/// The tasks that wait for one thing.
///
/// Futures register under a key and take it away when they are dropped. `poll_*` functions have no such moment;
/// of those, as everywhere in Rust, only the task of the last call is woken.
#[derive(Debug, Default)]
pub(crate) struct WakerSet {
    keyed: Vec<(u64, Waker)>,
    polled: Option<Waker>,
    next_key: u64,
}

impl WakerSet {
    /// Adds or refreshes the waker of the future that holds `key`.
    pub(crate) fn register(&mut self, key: &mut Option<u64>, waker: &Waker) {
        let known = key.and_then(|key| self.keyed.iter_mut().find(|(other, _)| *other == key));
        if let Some((_, stored)) = known {
            stored.clone_from(waker);
        } else {
            // Mostly there is one, and its room is used again.
            self.keyed.reserve_exact(1);
            self.keyed.push((self.next_key, waker.clone()));
            *key = Some(self.next_key);
            self.next_key += 1;
        }
    }

    /// Remembers the task of a `poll_*` call.
    pub(crate) fn register_polled(&mut self, waker: &Waker) {
        store(&mut self.polled, waker);
    }

    /// Forgets the future that holds `key`.
    pub(crate) fn remove(&mut self, key: u64) {
        self.keyed.retain(|(other, _)| *other != key);
    }

    /// Moves all wakers to `wakes`.
    pub(crate) fn take(&mut self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.keyed.drain(..).map(|(_, waker)| waker));
        wakes.extend(self.polled.take());
    }
}

/// Puts `waker` into a slot for a single task, without a clone if it is there already.
pub(crate) fn store(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(stored) => stored.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_has_one_entry_however_often_it_is_polled() {
        let mut set = WakerSet::default();
        let mut key = None;
        for _ in 0..3 {
            set.register(&mut key, Waker::noop());
        }
        assert_eq!(set.keyed.len(), 1);
        let mut other = None;
        set.register(&mut other, Waker::noop());
        assert_ne!(key, other);
        set.remove(key.unwrap());
        assert_eq!(set.keyed.len(), 1, "only the other future is left");
    }

    #[test]
    fn waking_empties_the_set_and_a_key_can_be_used_again() {
        let mut set = WakerSet::default();
        let mut key = None;
        set.register(&mut key, Waker::noop());
        set.register_polled(Waker::noop());
        set.register_polled(Waker::noop());
        let mut wakes = Vec::new();
        set.take(&mut wakes);
        assert_eq!(wakes.len(), 2);
        set.register(&mut key, Waker::noop());
        assert_eq!(set.keyed.len(), 1);
    }
}

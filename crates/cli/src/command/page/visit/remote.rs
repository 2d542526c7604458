//! A conversation with a browser: numbered commands, their answers, and events in between.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What has come and was not asked for yet.
#[derive(Debug)]
pub(super) struct Inbox<E> {
    events: VecDeque<E>,
    answers: BTreeMap<u64, Result<Value, String>>,
}

impl<E> Default for Inbox<E> {
    fn default() -> Self {
        Self { events: VecDeque::new(), answers: BTreeMap::new() }
    }
}

impl<E> Inbox<E> {
    /// Keeps the answer to a command.
    pub(super) fn put_answer(&mut self, number: u64, answer: Result<Value, String>) {
        self.answers.insert(number, answer);
    }

    /// Keeps an event.
    pub(super) fn put_event(&mut self, event: E) {
        self.events.push_back(event);
    }
}

/// The near end of such a conversation. Errors are for people.
pub(super) trait Remote {
    /// Something that has happened in the browser.
    type Event;

    /// What has come.
    fn inbox(&mut self) -> &mut Inbox<Self::Event>;

    /// Takes one message into the inbox; false if none comes before `deadline`.
    fn receive(&mut self, deadline: Instant) -> Result<bool, String>;

    /// The answer to a command, if it is there.
    fn answer(&mut self, number: u64) -> Result<Option<Value>, String> {
        self.inbox().answers.remove(&number).transpose()
    }

    /// The answer to a command, once it comes.
    fn await_answer(&mut self, number: u64, method: &str, patience: Duration) -> Result<Value, String> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(answer) = self.answer(number)? {
                return Ok(answer);
            }
            if !self.receive(deadline)? {
                return Err(format!("the browser has not answered {method}"));
            }
        }
    }

    /// The next event, or `None` if none comes before `deadline`.
    fn event(&mut self, deadline: Instant) -> Result<Option<Self::Event>, String> {
        loop {
            if let Some(event) = self.inbox().events.pop_front() {
                return Ok(Some(event));
            }
            if !self.receive(deadline)? {
                return Ok(None);
            }
        }
    }
}

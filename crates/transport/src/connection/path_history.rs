//! What a connection learns of its path, and is told of it.

use std::net::IpAddr;

use posthaste_policy::history::{Average, PathRecord};
use posthaste_policy::sample::PathHistory;
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::Side;

use crate::connection::Connection;
use crate::path::history::{AT_ONCE, FREQUENT_TOKENS, LEAST_ROUNDS, SIGNIFICANT_CHANGE, path_to_server};

impl Connection {
    /// True once the connection is one that data may be sent on, so that what is known of its path is of use: early
    /// data have been accepted, or the handshake is complete.
    pub(crate) fn is_ready_for_history(&self) -> bool {
        let is_kept = self.side() == Side::Server || self.history.is_clients;
        let is_new = is_kept && self.history.client.is_none();
        is_new && (!self.is_handshaking() || self.is_early_data_accepted())
    }

    /// What the path is called where it is kept: by the client's address, or on a client by both ends.
    pub(crate) fn path_name(&self) -> IpAddr {
        let remote = self.remote().ip();
        match self.side() {
            Side::Server => remote.to_canonical(),
            Side::Client => path_to_server(self.roaming.local_ip, remote),
        }
    }

    /// Whose path it is, once the connection has asked what is known of it.
    pub(crate) fn history_client(&self) -> Option<IpAddr> {
        self.history.client
    }

    /// The connection has asked what is known of its path; its client's token had this to say.
    pub(crate) fn begin_history(&mut self, client: IpAddr, from_token: Option<PathRecord>) {
        self.history.client = Some(client);
        self.history.from_token = from_token;
    }

    /// Begins with what is known of the path; if `is_exclusive`, nobody else may use it meanwhile.
    pub(crate) fn use_history(&mut self, now: Time, known: &PathHistory, is_exclusive: bool) {
        self.path.control.recall(known, now);
        self.history.is_user = is_exclusive;
    }

    /// True if the connection uses what is known, and nobody else may.
    pub(crate) fn uses_history(&self) -> bool {
        self.history.is_user
    }

    /// True, once, if what was known of the path has proved wrong.
    pub(crate) fn take_start_failure(&mut self) -> bool {
        let is_news = self.path.control.has_start_failed() && !self.history.is_failure_told;
        self.history.is_failure_told |= is_news;
        is_news
    }

    /// What another connection over the same path goes on from.
    pub(crate) fn path_as_it_stands(&self) -> Option<PathHistory> {
        self.path.control.remember()
    }

    /// When the handshake was complete.
    pub(crate) fn connected_at(&self) -> Option<Time> {
        self.counters.connected_at
    }

    /// What there is to remember of the path that has not been told yet: one sample a transfer.
    pub(crate) fn take_path_sample(&mut self) -> Option<PathHistory> {
        let control = &self.path.control;
        let delivered = control.delivered();
        let least = ByteCount::from(self.path.max_datagram_size()) * 10;
        if self.history.sampled.is_some_and(|sampled| delivered < sampled + least) {
            return None;
        }
        let sample = control.remember()?;
        self.history.sampled = Some(delivered);
        Some(sample)
    }

    /// What the next token has to say of the path, if it is time for one: the path has changed much since the last.
    pub(crate) fn next_token_record(&mut self, average: Average, at: Duration) -> Option<PathRecord> {
        let control = &self.path.control;
        let round = control.rounds();
        if round < self.history.next_look || self.is_handshaking() || control.has_start_failed() {
            return None;
        }
        self.history.next_look = round + 1;
        let sample = control.remember()?;
        if let Some(offered) = self.history.offered {
            let step = sample.window.get().abs_diff(offered.get());
            let is_due = round >= self.history.next_round && step * SIGNIFICANT_CHANGE > offered.get();
            if !is_due && sample.window < offered * AT_ONCE {
                return None;
            }
        }
        self.history.offered = Some(sample.window);
        self.history.tokens += 1;
        let doublings = self.history.tokens.saturating_sub(FREQUENT_TOKENS).min(32);
        self.history.next_round = round + (LEAST_ROUNDS << doublings);
        // One sample a transfer: each token of a connection has it instead of the one before.
        Some(PathRecord::after(self.history.from_token.as_ref(), average, at, &sample))
    }

    /// What was known of the path when the connection began, if anything.
    pub fn recalled_path(&self) -> Option<PathHistory> {
        self.path.control.recalled()
    }
}

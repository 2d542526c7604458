//! Streams opened by both ends, data in both directions at once, every byte checked.
//!
//! Who opens a stream writes the number of the transfer (8 bytes), then its bytes, and finishes; the other end
//! answers with its own bytes and finishes. Each direction of each stream has content of its own, so that bytes of
//! another stream are noticed as well as bytes of another place.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use posthaste_units::{Duration, Time};

use crate::apps::{App, AppReport, Hosts, Progress, content, is_content};
use crate::peer::{Peer, PeerEvent, Read, StreamKey};

/// Bytes of the number that a stream begins with.
const NUMBER: u64 = 8;

/// One stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Whether the client opens it.
    pub is_clients: bool,
    /// Bytes that the opener sends, the number aside.
    pub forth: u64,
    /// Bytes that the other end sends.
    pub back: u64,
}

/// All streams of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The streams, each end's in their order.
    pub transfers: Vec<Transfer>,
    /// Streams that one end has open at once.
    pub parallel: usize,
    /// Whether the other end answers only once it has read all.
    pub is_polite: bool,
    /// An application that reads so many bytes of a stream, then nothing for so long.
    pub lazy: Option<(u64, Duration)>,
}

impl Plan {
    /// Bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.transfers.iter().map(|transfer| NUMBER + transfer.forth + transfer.back).sum()
    }
}

/// The application of both ends.
pub(super) struct Traffic {
    plan: Plan,
    /// Client and server.
    hosts: [usize; 2],
    is_connected: [bool; 2],
    /// Transfers that each end has yet to begin.
    waiting: [VecDeque<usize>; 2],
    /// Streams that each end has opened and not yet read to the end.
    open: [usize; 2],
    halves: BTreeMap<(usize, StreamKey), Half>,
    /// Lazy reads to come.
    naps: BTreeSet<(Time, usize, StreamKey)>,
    /// Halves that are read to their end.
    read_out: usize,
    /// Set once; whoever runs it looks at it too.
    failure: Rc<OnceCell<Failure>>,
}

/// How it went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Whether it is the client that says so.
    pub(super) is_at_client: bool,
    /// True if the connection was closed; else what was read is wrong.
    pub(super) is_close: bool,
    pub(super) reason: String,
}

/// One end of a stream.
#[derive(Debug, Default)]
struct Half {
    is_opener: bool,
    /// Number of the transfer; unknown until it has been read.
    transfer: Option<usize>,
    number: Vec<u8>,
    written: u64,
    is_finished: bool,
    read: u64,
    reading: Reading,
}

/// How far an application is with reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reading {
    /// It reads what there is.
    #[default]
    Awake,
    /// It waits before it reads on.
    Napping,
    /// It has read to the end.
    Over,
}

/// Where the content of a direction begins.
fn base(transfer: usize, is_forth: bool) -> u64 {
    transfer as u64 * 7919 + if is_forth { 31 } else { 0 }
}

impl Traffic {
    pub(super) fn new(plan: Plan, hosts: [usize; 2]) -> Self {
        let of = |is_clients: bool| {
            let all = plan.transfers.iter().enumerate();
            all.filter(|(_, transfer)| transfer.is_clients == is_clients).map(|(index, _)| index).collect()
        };
        let waiting = [of(true), of(false)];
        Self {
            plan,
            hosts,
            is_connected: [false; 2],
            waiting,
            open: [0; 2],
            halves: BTreeMap::new(),
            naps: BTreeSet::new(),
            read_out: 0,
            failure: Rc::default(),
        }
    }

    /// Where a failure will be seen.
    pub(super) fn failure(&self) -> Rc<OnceCell<Failure>> {
        Rc::clone(&self.failure)
    }

    fn end_of(&self, host: usize) -> usize {
        usize::from(host != self.hosts[0])
    }

    fn fail(&mut self, host: usize, is_close: bool, reason: String) {
        let is_at_client = self.end_of(host) == 0;
        // The first is the cause of what follows.
        let _ = self.failure.set(Failure { is_at_client, is_close, reason });
    }

    /// Opens what may be opened.
    fn begin(&mut self, now: Time, host: usize, hosts: &mut dyn Hosts) {
        let end = self.end_of(host);
        while self.is_connected[end] && self.open[end] < self.plan.parallel && !self.waiting[end].is_empty() {
            let Some(stream) = hosts.peer(host).open(now) else { return };
            let Some(transfer) = self.waiting[end].pop_front() else { return };
            self.open[end] += 1;
            let half = Half { is_opener: true, transfer: Some(transfer), ..Half::default() };
            self.halves.insert((host, stream), half);
            self.pump(now, host, stream, hosts);
        }
    }

    fn pump(&mut self, now: Time, host: usize, stream: StreamKey, hosts: &mut dyn Hosts) {
        let Some(half) = self.halves.get_mut(&(host, stream)) else { return };
        let peer = hosts.peer(host);
        let before = half.reading;
        half.write(now, stream, peer, &self.plan);
        if let Err(reason) = half.read(now, stream, peer, &self.plan) {
            return self.fail(host, false, format!("stream {}: {reason}", stream.0));
        }
        half.write(now, stream, peer, &self.plan);
        if half.reading == before {
            return;
        }
        // One nap at a time: what comes meanwhile does not begin another.
        if let (Reading::Napping, Some((_, pause))) = (half.reading, self.plan.lazy) {
            self.naps.insert((now + pause, host, stream));
        }
        let is_opener = half.is_opener;
        if half.reading == Reading::Over {
            self.read_out += 1;
            if is_opener {
                let end = self.end_of(host);
                self.open[end] -= 1;
                self.begin(now, host, hosts);
            }
        }
    }
}

impl Half {
    /// Bytes that this end sends on the whole, if it knows.
    fn to_write(&self, plan: &Plan) -> Option<u64> {
        let transfer = plan.transfers[self.transfer?];
        if self.is_opener {
            return Some(NUMBER + transfer.forth);
        }
        (!plan.is_polite || self.reading == Reading::Over).then_some(transfer.back)
    }

    fn write(&mut self, now: Time, stream: StreamKey, peer: &mut dyn Peer, plan: &Plan) {
        let (Some(total), Some(transfer)) = (self.to_write(plan), self.transfer) else { return };
        if self.is_finished {
            return;
        }
        while self.written < total {
            let mut chunk = if self.is_opener && self.written < NUMBER {
                let number = Bytes::copy_from_slice(&(transfer as u64).to_be_bytes());
                number.slice(self.written as usize..)
            } else {
                content(base(transfer, self.is_opener) + self.written, total - self.written)
            };
            let offered = chunk.len();
            peer.write(now, stream, &mut chunk);
            self.written += (offered - chunk.len()) as u64;
            if !chunk.is_empty() {
                return;
            }
        }
        self.is_finished = true;
        peer.finish(now, stream);
    }

    fn read(&mut self, now: Time, stream: StreamKey, peer: &mut dyn Peer, plan: &Plan) -> Result<(), String> {
        let mut left = plan.lazy.map_or(u64::MAX, |(bytes, _)| bytes);
        while self.reading == Reading::Awake {
            let mut max = left;
            if !self.is_opener && self.read < NUMBER {
                max = max.min(NUMBER - self.read);
            }
            match peer.read(now, stream, usize::try_from(max).unwrap_or(usize::MAX)) {
                Read::Data(data) => {
                    left = left.saturating_sub(data.len() as u64);
                    self.take(&data, plan)?;
                    if left == 0 {
                        self.reading = Reading::Napping;
                    }
                }
                Read::Blocked => break,
                Read::Finished => self.finish(plan)?,
                Read::Reset => return Err("reset".to_owned()),
            }
        }
        Ok(())
    }

    fn take(&mut self, data: &[u8], plan: &Plan) -> Result<(), String> {
        let at = self.read;
        self.read += data.len() as u64;
        if !self.is_opener && at < NUMBER {
            self.number.extend_from_slice(data);
            if let Ok(number) = <[u8; 8]>::try_from(self.number.as_slice()) {
                let number = u64::from_be_bytes(number) as usize;
                let is_known = number < plan.transfers.len();
                self.transfer = Some(number).filter(|_| is_known);
                self.transfer.ok_or_else(|| format!("there is no transfer {number}"))?;
            }
            return Ok(());
        }
        let Some(transfer) = self.transfer else { return Err("bytes before the number".to_owned()) };
        if is_content(base(transfer, !self.is_opener) + at, data) {
            Ok(())
        } else {
            Err(format!("wrong bytes near {at}"))
        }
    }

    fn finish(&mut self, plan: &Plan) -> Result<(), String> {
        let Some(transfer) = self.transfer else { return Err("ended before the number".to_owned()) };
        let transfer = plan.transfers[transfer];
        let wanted = if self.is_opener { transfer.back } else { NUMBER + transfer.forth };
        if self.read != wanted {
            return Err(format!("{} bytes instead of {wanted}", self.read));
        }
        self.reading = Reading::Over;
        Ok(())
    }
}

impl App for Traffic {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        hosts.peer(self.hosts[0]).connect(now);
    }

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Connected => {
                let end = self.end_of(host);
                self.is_connected[end] = true;
                self.begin(now, host, hosts);
            }
            PeerEvent::Available => self.begin(now, host, hosts),
            PeerEvent::Opened(stream) => {
                self.halves.insert((host, stream), Half::default());
                self.pump(now, host, stream, hosts);
            }
            PeerEvent::Readable(stream) | PeerEvent::Writable(stream) => self.pump(now, host, stream, hosts),
            PeerEvent::Closed(reason) => {
                let reason = reason.unwrap_or_else(|| "closed without an error".to_owned());
                self.fail(host, true, reason);
            }
        }
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        while self.naps.first().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, host, stream)) = self.naps.pop_first() else { return };
            if let Some(half) = self.halves.get_mut(&(host, stream)) {
                half.reading = Reading::Awake;
            }
            self.pump(now, host, stream, hosts);
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.naps.first().map(|(at, ..)| *at)
    }

    fn progress(&self) -> Progress {
        if self.read_out == 2 * self.plan.transfers.len() {
            Progress::Idle
        } else if self.failure.get().is_some() {
            Progress::Failed
        } else {
            Progress::Working
        }
    }

    fn report(&self) -> AppReport {
        let failure = self.failure.get().map(|failure| {
            format!("{}: {}", if failure.is_at_client { "client" } else { "server" }, failure.reason)
        });
        let bytes = self.halves.values().map(|half| half.read).sum();
        AppReport { bytes, failure, ..AppReport::default() }
    }
}

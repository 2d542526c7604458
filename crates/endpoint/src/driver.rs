//! The task that moves datagrams between the socket and the transport, and events to the tasks that wait for them.
//!
//! One driver serves one endpoint. It works in rounds: take a batch from the socket, then under one lock and with
//! one reading of the clock let the transport have it, fire what is due, collect what is to be sent and who is to
//! be woken; then, without the lock, wake and send. System calls never happen under the lock.
//!
//! What many tasks will answer is handed on in parts ([`Inbox`]): the tasks that a part wakes get their turns, and what they
//! have answered is sent, before the next part is handed on, and all of the batch before more is received. Otherwise two
//! ends that have many requests in flight would work in turns, each while the other waits.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use posthaste_units::{Duration, Time};

use crate::clock;
use crate::inbox::Inbox;
use crate::socket::{self, Outgoing, Socket};
use crate::state::{Shared, State};
use crate::timer::Timer;
use crate::trouble::{Remedy, Trouble};
use crate::workers::Seat;

/// Rounds in a row before other tasks get their turn.
const ROUNDS_PER_POLL: usize = 8;

/// Bytes received after which other tasks get their turn: they read while the data are in the processor's cache, and
/// before so much waits that the transport must compact it.
const RECEIVED_PER_POLL: usize = 64 * 1024;

/// Turns that other tasks get before anything is sent, when something has begun that they will answer: so that the answer
/// travels in the datagram of the acknowledgement or of the handshake's end, not in one behind it that can be lost as
/// well. Each turn carries it one task further: from who accepts connections to who handles one, to who handles a request.
const TURNS_TO_ANSWER: u8 = 3;

/// Turns that other tasks get before anything is sent, when many of them have got what they waited for: most will have
/// something to send, which then travels with the acknowledgement.
const TURNS_TO_GO_ON: u8 = 1;

/// Tasks to wake that count as many. Fewer readers of long streams do not end a part, so that whole batches are
/// acknowledged at once.
const MANY_WOKEN: usize = 16;

/// Sends collected under one lock; each may carry up to 64 datagrams.
const SENDS_PER_ROUND: usize = 8;

/// Bytes collected under one lock, beyond which no further send is begun. More would leave the processor's cache
/// before the system has copied it.
const BYTES_PER_ROUND: usize = 256 * 1024;

/// The shortest sleep when the transport asks to be called at a time that is past already although it has just been
/// called: it must not be able to keep the processor busy.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// How often a socket is tried to be bound in place of a broken one.
const BIND_AGAIN: Duration = Duration::from_secs(1);

/// How often memory that nobody needs any more is looked for, when there is little else to do.
const TRIM: Duration = Duration::from_secs(1);

/// The driver of one endpoint; a future that ends when nobody uses the endpoint any more.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    /// The place among the endpoints that share the port.
    seat: Seat,
    socket: Arc<Socket>,
    inbox: Inbox,
    outgoing: Vec<Outgoing>,
    /// Sends of `outgoing` that are filled.
    filled: usize,
    /// Sends of `outgoing` that the system has taken.
    sent: usize,
    wakes: Vec<Waker>,
    timer: Timer,
    /// When `timer` fires; `None` if that is of no interest.
    armed: Option<Time>,
    /// Errors of both directions of the socket.
    receiving: Trouble,
    sending: Trouble,
    /// Nothing is received before.
    retry_at: Option<Time>,
    /// The socket's address could not be bound again yet: what is sent is lost.
    is_stand_in: bool,
    /// When memory was last looked for that can be given back.
    trimmed_at: Time,
    /// Turns that other tasks are still to get before anything is sent. They are counted from one sending to the next, and
    /// nothing is received meanwhile, so that a peer cannot keep an endpoint from sending.
    turns: u8,
}

/// What a round has found.
enum Round {
    /// Other tasks are to get their turn before anything is sent.
    Yield,
    /// There may be more to do at once; so many bytes were received.
    Again { received: usize },
    /// Nothing is to be done until the driver is woken.
    Wait,
    /// Nobody uses the endpoint any more.
    Done,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, seat: Seat) -> Self {
        Self {
            socket: shared.socket(),
            shared,
            seat,
            inbox: Inbox::new(),
            outgoing: (0..SENDS_PER_ROUND).map(|_| Outgoing::default()).collect(),
            filled: 0,
            sent: 0,
            wakes: Vec::new(),
            timer: Timer::new(),
            armed: None,
            receiving: Trouble::default(),
            sending: Trouble::default(),
            retry_at: None,
            is_stand_in: false,
            trimmed_at: Time::ZERO,
            turns: 0,
        }
    }

    fn round(&mut self, cx: &mut Context<'_>) -> Round {
        let blocked = self.poll_send(cx).is_pending();
        // What has been received is answered before more is taken.
        let is_asked = self.turns == 0 && self.inbox.is_empty();
        let is_received = match is_asked.then(|| self.poll_receive(cx)).transpose() {
            Ok(answer) => answer.unwrap_or(true),
            Err(error) => return self.fail(error),
        };
        let now = clock::now();
        let shared = Arc::clone(&self.shared);
        let mut guard = shared.lock();
        let state: &mut State = &mut guard;
        let is_changed = self.change_socket(state);
        let blocked = blocked && !is_changed;
        let received = if self.turns > 0 {
            self.turns -= 1;
            0
        } else {
            self.deliver(state, now)
        };
        if state.transport.next_timeout().is_some_and(|deadline| deadline <= now) {
            state.transport.on_timeout(now);
        }
        state.drain_events(now, &mut self.wakes);
        if self.turns > 0 {
            drop(guard);
            self.wakes.drain(..).for_each(Waker::wake);
            return Round::Yield;
        }
        if !blocked {
            self.collect_sends(state, now);
            if state.drain_events(now, &mut self.wakes) {
                self.turns = TURNS_TO_ANSWER;
            }
        }
        let is_busy = is_received || received > 0 || is_changed || self.turns > 0;
        let outcome = if is_busy || !blocked && self.filled > 0 {
            Round::Again { received }
        } else {
            state.unsent = blocked;
            self.prepare_sleep(state, now, cx)
        };
        drop(guard);
        self.wakes.drain(..).for_each(Waker::wake);
        outcome
    }

    /// Goes on with another socket if there is one. What was to leave by the old one is lost, as it might be on the
    /// way.
    fn change_socket(&mut self, state: &mut State) -> bool {
        let Some(socket) = state.rebound.take() else { return false };
        self.socket = socket;
        (self.receiving, self.sending) = (Trouble::default(), Trouble::default());
        (self.retry_at, self.is_stand_in) = (None, false);
        (self.filled, self.sent) = (0, 0);
        self.inbox.set_late();
        true
    }

    /// Puts another socket at the same address in the place of one that is broken. The address is free only when the old
    /// one is closed, so that another must stand in meanwhile.
    fn replace_socket(&mut self, now: Time) {
        if !self.is_stand_in {
            match self.socket.stand_in() {
                Ok(stand_in) => self.set_socket(stand_in),
                Err(error) => return tracing::error!(%error, "no socket to replace the one that is broken"),
            }
        }
        match self.socket.take_place() {
            Ok(socket) => {
                tracing::warn!("the socket reported nothing but errors, and was replaced");
                self.set_socket(socket);
                (self.is_stand_in, self.retry_at) = (false, None);
            }
            Err(error) => {
                tracing::error!(%error, "the socket's address cannot be bound again yet");
                (self.is_stand_in, self.retry_at) = (true, Some(now + BIND_AGAIN));
            }
        }
    }

    fn set_socket(&mut self, socket: Socket) {
        self.socket = Arc::new(socket);
        self.shared.set_socket(&self.socket);
    }

    /// Hands what is collected to the system; pending if it has no room.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sent < self.filled {
            if let Some(outgoing) = self.outgoing.get_mut(self.sent).filter(|_| !self.is_stand_in) {
                if std::task::ready!(self.socket.poll_send(cx, outgoing)) {
                    self.sending.on_success();
                } else {
                    // The transport's own back-off is the pace of further attempts.
                    let now = clock::now();
                    if self.sending.on_error(now) == Remedy::Replace {
                        self.replace_socket(now);
                    }
                }
            }
            self.sent += 1;
        }
        self.filled = 0;
        self.sent = 0;
        Poll::Ready(())
    }

    /// Takes a batch from the socket; false if there is none.
    ///
    /// # Errors
    /// The socket is closed. All else is survived: see [`Trouble`].
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if let Some(at) = self.retry_at {
            let now = clock::now();
            if at > now {
                return Ok(false);
            }
            self.retry_at = None;
            if self.is_stand_in {
                self.replace_socket(now);
            }
        }
        loop {
            match self.socket.poll_receive(cx, self.inbox.buffers()) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(_)) => {
                    self.receiving.on_success();
                    // An empty datagram counts, too: it was received, and there may be more behind it.
                    self.inbox.begin();
                    return Ok(true);
                }
                Poll::Ready(Err(error)) if socket::is_final(&error) => return Err(error),
                Poll::Ready(Err(_)) => {
                    let now = clock::now();
                    match self.receiving.on_error(now) {
                        Remedy::Retry => {}
                        Remedy::Wait(at) => {
                            self.retry_at = Some(at);
                            return Ok(false);
                        }
                        Remedy::Replace => self.replace_socket(now),
                    }
                }
            }
        }
    }

    /// Hands on what was received, up to the end of the first part that tasks are to answer; how many bytes. The events
    /// are handled part by part, not for each datagram: of a long batch for one reader that would be much for nothing.
    fn deliver(&mut self, state: &mut State, now: Time) -> usize {
        let mut bytes = self.deliver_passed_on(state, now);
        self.handle_events(state, now);
        while !self.inbox.is_empty() {
            for _ in 0..self.inbox.part() {
                let Some(datagram) = self.inbox.take() else { break };
                bytes += datagram.len();
                if let Some(misplaced) = state.transport.on_datagram(now, self.inbox.info(), datagram)
                    && !self.seat.pass_on(self.inbox.info(), &misplaced)
                {
                    self.socket.on_passing_on_failed();
                }
            }
            self.handle_events(state, now);
            if self.turns > 0 {
                break;
            }
        }
        bytes
    }

    /// Handles the transport's events, and decides how many turns tasks get before anything is sent.
    fn handle_events(&mut self, state: &mut State, now: Time) {
        if state.drain_events(now, &mut self.wakes) {
            self.turns = TURNS_TO_ANSWER;
        } else if self.wakes.len() >= MANY_WOKEN {
            self.turns = self.turns.max(TURNS_TO_GO_ON);
        }
    }

    /// Takes in what other endpoints on the port have passed on; how many bytes.
    fn deliver_passed_on(&self, state: &mut State, now: Time) -> usize {
        let mut bytes = 0;
        for (info, datagram) in self.seat.take() {
            bytes += datagram.len();
            state.transport.on_datagram(now, &info, datagram);
        }
        bytes
    }

    /// Asks the transport for what is to be sent, within the bounds of a round.
    fn collect_sends(&mut self, state: &mut State, now: Time) {
        let max_segments = self.socket.max_segments();
        let mut bytes = 0;
        for outgoing in &mut self.outgoing {
            if bytes >= BYTES_PER_ROUND {
                break;
            }
            outgoing.buffer.clear();
            outgoing.sent = 0;
            outgoing.transmit = state.transport.poll_transmit(now, &mut outgoing.buffer, max_segments);
            match &outgoing.transmit {
                Some(transmit) => bytes += transmit.size,
                None => break,
            }
            self.filled += 1;
        }
    }

    /// Sets the timer and lets handles wake the driver from now on.
    fn prepare_sleep(&mut self, state: &mut State, now: Time, cx: &mut Context<'_>) -> Round {
        if state.is_abandoned() {
            return Round::Done;
        }
        let deadline = state.transport.next_timeout().into_iter().chain(self.retry_at).min();
        if self.poll_timer(now, deadline, cx).is_ready() {
            return Round::Again { received: 0 };
        }
        if self.seat.wait(cx.waker()) {
            return Round::Again { received: 0 };
        }
        // Without connections it may be long until the next round.
        if state.transport.connections() == 0 || now.since(self.trimmed_at) >= TRIM {
            self.trimmed_at = now;
            self.inbox.trim();
        }
        state.sleep_driver(cx.waker(), &mut self.wakes);
        Round::Wait
    }

    /// Ready if the timer has fired. It is moved only if the deadline is earlier than what it is set to: most
    /// deadlines move back with every ack, and one needless wake is cheaper than setting the timer each time.
    fn poll_timer(&mut self, now: Time, deadline: Option<Time>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline else {
            self.armed = None;
            return Poll::Pending;
        };
        let deadline = if deadline <= now { now + SHORTEST_SLEEP } else { deadline };
        if self.armed.is_none_or(|armed| deadline < armed) {
            self.timer.set(deadline);
            self.armed = Some(deadline);
        }
        std::task::ready!(self.timer.poll(cx));
        self.armed = None;
        Poll::Ready(())
    }

    fn fail(&mut self, error: io::Error) -> Round {
        tracing::error!(%error, "the endpoint's socket is broken: its connections are lost");
        let mut guard = self.shared.lock();
        let (state, wakes) = guard.parts();
        state.fail(error, &mut wakes.tasks);
        Round::Done
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut received = 0;
        for _ in 0..ROUNDS_PER_POLL {
            match self.round(cx) {
                Round::Again { received: more } => received += more,
                Round::Yield => break,
                Round::Wait => return Poll::Pending,
                Round::Done => return Poll::Ready(()),
            }
            if received > RECEIVED_PER_POLL {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    /// The runtime has stopped, or the driver has panicked: whoever waits would wait for ever.
    fn drop(&mut self) {
        let mut guard = self.shared.lock();
        let (state, wakes) = guard.parts();
        state.fail(io::Error::other("the endpoint's driver has stopped"), &mut wakes.tasks);
    }
}

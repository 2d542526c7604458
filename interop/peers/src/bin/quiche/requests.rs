//! Requests and replies over quiche.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use posthaste_interop_peers::contract::{RequestClientArgs, Result};
use posthaste_interop_peers::requests::{Measured, REPLY, REQUEST, WARM_UP, check_reply, check_request};

use crate::driver::Application;

/// Messages of which a part is here: the end of a packet cuts some in two.
#[derive(Default)]
struct Parts(BTreeMap<u64, Vec<u8>>);

impl Parts {
    /// Reads what is here of a message into `buffer`; the message, if that is all of it.
    fn read<'a>(
        &mut self,
        connection: &mut quiche::Connection,
        stream: u64,
        buffer: &'a mut [u8],
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let (length, is_over) = match connection.stream_recv(stream, buffer) {
            Ok(received) => received,
            Err(quiche::Error::Done | quiche::Error::InvalidStreamState(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let received = &buffer[..length];
        if !is_over {
            self.0.entry(stream).or_default().extend_from_slice(received);
            return Ok(None);
        }
        let Some(mut message) = self.0.remove(&stream) else { return Ok(Some(received.into())) };
        message.extend_from_slice(received);
        Ok(Some(message.into()))
    }
}

/// Messages that wait: the congestion window is the room that quiche has for data.
struct Outgoing {
    message: &'static [u8],
    /// Streams, and what of the message they have.
    waiting: VecDeque<(u64, usize)>,
}

impl Outgoing {
    fn new(message: &'static [u8]) -> Self {
        Self { message, waiting: VecDeque::new() }
    }

    /// Gives the connection what it has room for.
    fn send(&mut self, connection: &mut quiche::Connection) -> Result<()> {
        while let Some((stream, sent)) = self.waiting.front_mut() {
            match connection.stream_send(*stream, &self.message[*sent..], true) {
                Ok(length) => *sent += length,
                // More room will be there, or more streams permitted.
                Err(quiche::Error::Done | quiche::Error::StreamLimit) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if *sent == self.message.len() {
                self.waiting.pop_front();
            }
        }
        Ok(())
    }
}

pub(crate) struct Server {
    parts: Parts,
    replies: Outgoing,
}

impl Default for Server {
    fn default() -> Self {
        Self { parts: Parts::default(), replies: Outgoing::new(&REPLY) }
    }
}

impl Application for Server {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        let mut buffer = [0; REQUEST.len() + 1];
        for stream in connection.readable() {
            if let Some(request) = self.parts.read(connection, stream, &mut buffer)? {
                check_request(&request)?;
                self.replies.waiting.push_back((stream, 0));
            }
        }
        self.replies.send(connection)?;
        Ok(false)
    }
}

pub(crate) struct Client {
    requests: u64,
    in_flight: u64,
    /// Of the warm-up, then of the requests that count.
    left: u64,
    open: u64,
    next_stream: u64,
    parts: Parts,
    outgoing: Outgoing,
    measured: Option<Measured>,
}

impl Client {
    pub(crate) fn new(args: &RequestClientArgs) -> Self {
        let (requests, in_flight) = (args.requests, args.in_flight);
        Self {
            requests,
            in_flight,
            left: WARM_UP,
            open: 0,
            next_stream: 0,
            parts: Parts::default(),
            outgoing: Outgoing::new(&REQUEST),
            measured: None,
        }
    }
}

impl Application for Client {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        if !connection.is_established() {
            return Ok(false);
        }
        let mut buffer = [0; REPLY.len() + 1];
        for stream in connection.readable() {
            if let Some(reply) = self.parts.read(connection, stream, &mut buffer)? {
                check_reply(&reply)?;
                self.open -= 1;
            }
        }
        if self.left == 0 && self.open == 0 {
            if let Some(measured) = self.measured.take() {
                measured.finish()?;
                return Ok(true);
            }
            self.measured = Some(Measured::start(self.requests)?);
            self.left = self.requests;
        }
        while self.left > 0 && self.open < self.in_flight {
            self.outgoing.waiting.push_back((self.next_stream, 0));
            self.next_stream += 4;
            self.left -= 1;
            self.open += 1;
        }
        self.outgoing.send(connection)?;
        Ok(false)
    }
}

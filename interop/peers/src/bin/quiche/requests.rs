//! Requests and replies over quiche.

use std::borrow::Cow;
use std::collections::BTreeMap;

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

#[derive(Default)]
pub(crate) struct Server {
    parts: Parts,
}

impl Application for Server {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        let mut buffer = [0; REQUEST.len() + 1];
        for stream in connection.readable() {
            if let Some(request) = self.parts.read(connection, stream, &mut buffer)? {
                check_request(&request)?;
                // There is room: at most 256 replies wait, in windows of 16 MiB.
                connection.stream_send(stream, &REPLY, true)?;
            }
        }
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
            measured: None,
        }
    }

    fn fill(&mut self, connection: &mut quiche::Connection) -> Result<()> {
        while self.left > 0 && self.open < self.in_flight {
            match connection.stream_send(self.next_stream, &REQUEST, true) {
                Ok(_) => (),
                // More streams will be permitted.
                Err(quiche::Error::StreamLimit) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            self.next_stream += 4;
            self.left -= 1;
            self.open += 1;
        }
        Ok(())
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
        self.fill(connection)?;
        Ok(false)
    }
}

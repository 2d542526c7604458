//! Messages in DATAGRAM frames over quiche.

use posthaste_interop_peers::contract::Result;
use posthaste_interop_peers::datagrams::Exchange;

use crate::driver::Application;

/// Sends each message back.
#[derive(Default)]
pub(crate) struct Server;

impl Application for Server {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        while let Some(message) = receive(connection)? {
            connection.dgram_send(&message)?;
        }
        Ok(false)
    }
}

pub(crate) struct Client(Exchange);

impl Client {
    pub(crate) fn new(messages: u64) -> Self {
        Self(Exchange::new(messages))
    }
}

impl Application for Client {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        if !connection.is_established() || self.0.is_over() {
            return Ok(false);
        }
        while let Some(message) = receive(connection)? {
            self.0.on_echo(&message)?;
        }
        if self.0.is_over() {
            self.0.report()?;
            return Ok(true);
        }
        while let Some(message) = self.0.next_message() {
            connection.dgram_send(&message)?;
        }
        Ok(false)
    }
}

fn receive(connection: &mut quiche::Connection) -> Result<Option<Vec<u8>>> {
    let mut buffer = [0; 65_535];
    match connection.dgram_recv(&mut buffer) {
        Ok(length) => Ok(Some(buffer[..length].to_vec())),
        Err(quiche::Error::Done) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

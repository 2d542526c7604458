//! One raw stream over quiche.

use std::collections::BTreeMap;

use posthaste_interop_peers::bulk::{PATTERN, Receipt};
use posthaste_interop_peers::contract::Result;

use crate::driver::Application;

/// Bytes asked for and sent.
struct Transfer {
    wanted: u64,
    sent: u64,
}

#[derive(Default)]
pub(crate) struct Server {
    transfers: BTreeMap<u64, Transfer>,
}

impl Application for Server {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        for stream in connection.readable() {
            let mut request = [0; 8];
            // The request is one frame of 8 bytes: it arrives whole.
            if let Ok((8, _)) = connection.stream_recv(stream, &mut request) {
                self.transfers.insert(stream, Transfer { wanted: u64::from_be_bytes(request), sent: 0 });
            }
        }
        let mut finished = Vec::new();
        for (&stream, transfer) in &mut self.transfers {
            if transfer.send(connection, stream)? {
                finished.push(stream);
            }
        }
        for stream in finished {
            self.transfers.remove(&stream);
        }
        Ok(false)
    }
}

impl Transfer {
    fn send(&mut self, connection: &mut quiche::Connection, stream: u64) -> Result<bool> {
        while self.sent < self.wanted {
            let start = (self.sent % PATTERN.len() as u64) as usize;
            let length = (self.wanted - self.sent).min((PATTERN.len() - start) as u64) as usize;
            let last = self.sent + length as u64 == self.wanted;
            match connection.stream_send(stream, &PATTERN[start..start + length], last) {
                Ok(sent) => self.sent += sent as u64,
                Err(quiche::Error::Done) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

pub(crate) struct Client {
    wanted: u64,
    receipt: Option<Receipt>,
    buffer: Vec<u8>,
}

impl Client {
    const STREAM: u64 = 0;

    pub(crate) fn new(wanted: u64) -> Self {
        Self { wanted, receipt: None, buffer: vec![0; 65_536] }
    }
}

impl Application for Client {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        if !connection.is_established() {
            return Ok(false);
        }
        if self.receipt.is_none() {
            self.receipt = Some(Receipt::new(self.wanted));
            connection.stream_send(Self::STREAM, &self.wanted.to_be_bytes(), true)?;
        }
        loop {
            match connection.stream_recv(Self::STREAM, &mut self.buffer) {
                Ok((length, finished)) => {
                    let receipt = self.receipt.as_mut().ok_or("the transfer is over")?;
                    receipt.add(&self.buffer[..length])?;
                    if finished {
                        self.receipt.take().ok_or("the transfer is over")?.finish()?;
                        return Ok(true);
                    }
                }
                Err(quiche::Error::Done | quiche::Error::InvalidStreamState(_)) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

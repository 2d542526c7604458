//! Messages in DATAGRAM frames (RFC 9221).

use std::task::Poll;

use bytes::Bytes;
use posthaste_transport::{DatagramOrder, Event, SendDatagramError as Refusal, WhenFull};

use crate::connection::Connection;
use crate::connection_state::Wait;
use crate::error::ConnectionError;
use crate::wait::wait;

/// Why a message was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SendDatagramError {
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The transport cannot send it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Connection {
    /// The most bytes that a message may have now. `None` before the handshake is complete, and if the peer takes no
    /// messages ([`TransportConfig::max_datagram_frame_size`](crate::TransportConfig)). It changes with the path.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.0.shared.lock().transport.connection(self.0.handle)?.max_datagram_size()
    }

    /// Sends a message, which may be lost and is not sent again. If too many wait already, the oldest of them are
    /// dropped for it; `stats().datagrams` counts them.
    ///
    /// # Errors
    /// The connection is over, the peer takes no messages, or this one is longer than [`Self::max_datagram_size`].
    pub fn send_datagram(&self, message: Bytes) -> Result<(), SendDatagramError> {
        let mut guard = self.0.shared.lock();
        let sent = guard.live(self.0.handle)?.send_datagram(message, WhenFull::DropOldest);
        guard.wake_driver();
        Ok(sent?)
    }

    /// The same, but waits until there is room.
    ///
    /// # Errors
    /// As [`Self::send_datagram`].
    pub async fn send_datagram_wait(&self, message: Bytes) -> Result<(), SendDatagramError> {
        let handle = self.0.handle;
        let sent = wait(
            &self.0.shared,
            |state| state.waiting(handle, Wait::event(&Event::DatagramsUnblocked)),
            |guard| {
                let connection = match guard.live(handle) {
                    Ok(connection) => connection,
                    Err(error) => return Poll::Ready(Err(error.into())),
                };
                let sent = connection.send_datagram(message.clone(), WhenFull::Refuse);
                guard.wake_driver();
                match sent {
                    Err(Refusal::Full) => Poll::Pending,
                    sent => Poll::Ready(sent.map_err(SendDatagramError::from)),
                }
            },
        );
        sent.await
    }

    /// Waits for the next message of the peer's. Of those that wait to be read, the oldest are dropped when they are too
    /// many; `stats().datagrams` counts them.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn receive_datagram(&self) -> Result<Bytes, ConnectionError> {
        let handle = self.0.handle;
        let received = wait(
            &self.0.shared,
            |state| state.waiting(handle, Wait::event(&Event::DatagramsReceived)),
            |guard| match guard.live(handle) {
                Ok(connection) => {
                    connection.receive_datagram().map_or(Poll::Pending, |got| Poll::Ready(Ok(got)))
                }
                Err(error) => Poll::Ready(Err(error)),
            },
        );
        received.await
    }

    /// Ranks messages against stream data. Default: messages first. Does nothing if the connection is over.
    pub fn set_datagram_order(&self, order: DatagramOrder) {
        if let Ok(connection) = self.0.shared.lock().live(self.0.handle) {
            connection.set_datagram_order(order);
        }
    }
}

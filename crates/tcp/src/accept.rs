//! New connections, and what keeps the system from giving them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Time to wait when the system has no descriptor or memory for a connection; by then some connection may have ended.
const PAUSE: Duration = Duration::from_millis(100);

/// The next connection, and its client: an IPv4 address as such, also where the listener takes both families. Errors are
/// survived: those of one connection at once, those of the system after a pause. Cancel safe.
pub(crate) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                return (stream, SocketAddr::new(client.ip().to_canonical(), client.port()));
            }
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(PAUSE).await;
            }
        }
    }
}

/// True for errors of the one connection (accept(2)): the next one may succeed.
fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_over_ipv4_has_an_ipv4_address() {
        // Where there is no IPv6, nothing is to be seen.
        let Ok(listener) = TcpListener::bind("[::]:0").await else { return };
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert_eq!(accept(&listener).await.1, client.local_addr().unwrap());
    }
}

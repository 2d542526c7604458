//! An HTTP/3 client that writes what no client would.

use bytes::Bytes;
use posthaste_endpoint::{Connection, ConnectionError, Endpoint, ReadError, RecvStream, SendStream};
use posthaste_http3::{MessageKind, MessageReader, Part, encode};
use tokio::time::timeout;

use crate::common::{PATIENCE, Server};

pub(crate) struct Raw {
    connection: Connection,
    _endpoint: Endpoint,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Status(u16),
    /// The stream was reset with this code.
    Reset(u64),
}

impl Raw {
    pub(crate) async fn connect(server: &Server) -> Self {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let connection =
            endpoint.connect(&server.client_config(), server.address, "localhost").await.unwrap();
        Self { connection, _endpoint: endpoint }
    }

    pub(crate) async fn open(&self) -> (SendStream, RecvStream) {
        self.try_open().await.unwrap()
    }

    /// The same where the server may have had enough.
    pub(crate) async fn try_open(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.connection.open_bi().await
    }

    /// Sends these bytes as a request, ends it, and waits for what becomes of it.
    pub(crate) async fn ask(&self, bytes: &[u8]) -> End {
        let (mut send, recv) = self.open().await;
        send.write_all(bytes).await.unwrap();
        send.finish();
        end(recv).await
    }
}

/// Waits for a final response's head, or a reset. Whether a 100 comes first where a request asks for it depends on whether
/// the server has seen the request's end by then.
pub(crate) async fn end(recv: RecvStream) -> End {
    try_end(recv).await.unwrap()
}

/// The same where the connection may end.
pub(crate) async fn try_end(mut recv: RecvStream) -> Result<End, ReadError> {
    let mut reader = MessageReader::new(MessageKind::Response { to_head: false }, 100_000);
    let reading = async {
        loop {
            match recv.read_chunk(65_536).await {
                Ok(Some(mut data)) => {
                    while let Some(part) = reader.next(&mut data).unwrap() {
                        match part {
                            Part::Response(head) if !head.status().is_informational() => {
                                return Ok(End::Status(head.status().as_u16()));
                            }
                            _ => {}
                        }
                    }
                }
                Ok(None) => panic!("the stream ended without a response"),
                Err(ReadError::Reset(code)) => return Ok(End::Reset(code)),
                Err(error) => return Err(error),
            }
        }
    };
    timeout(PATIENCE, reading).await.expect("nothing comes")
}

/// A HEADERS frame with these fields as they are.
pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    // Two zeros: nothing of a dynamic table (RFC 9204 section 4.5.1).
    let mut section = vec![0, 0];
    for (name, value) in fields {
        // A literal with a literal name, neither in Huffman's code (section 4.5.6).
        integer(&mut section, 0x20, 3, name.len());
        section.extend_from_slice(name.as_bytes());
        integer(&mut section, 0, 7, value.len());
        section.extend_from_slice(value.as_bytes());
    }
    let mut frame = vec![1];
    frame.extend_from_slice(&(0x8000_0000 | section.len() as u32).to_be_bytes());
    frame.extend(section);
    frame
}

/// The fields that every request has, and these.
pub(crate) fn request(method: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let usual = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", "/raw")];
    headers(&[&usual, fields].concat())
}

/// A DATA frame.
pub(crate) fn data(content: &str) -> Bytes {
    let mut frame = Vec::new();
    encode::data_header(&mut frame, content.len() as u64);
    frame.extend_from_slice(content.as_bytes());
    frame.into()
}

fn integer(out: &mut Vec<u8>, pattern: u8, prefix: u32, value: usize) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

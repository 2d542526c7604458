//! Clients that send nonsense: the server neither panics nor forgets its other clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{PATIENCE, Server, body};
use posthaste_endpoint::Endpoint;
use posthaste_http::StaticFiles;
use tokio::time::timeout;

/// A small generator: the same nonsense every time.
struct Nonsense(u64);

impl Nonsense {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.next(most)).map(|_| self.next(256) as u8).collect()
    }

    /// Something that looks like frames: known and unknown types, right and wrong lengths, valid and invalid fields.
    fn frames(&mut self) -> Vec<u8> {
        const TYPES: [u8; 12] = [0x00, 0x01, 0x01, 0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0d, 0x21, 0x3f];
        // `:method GET, :scheme https, :path /, :authority a` by the static table.
        const REQUEST: &[u8] = &[0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x01, b'a'];
        let mut stream = Vec::new();
        for _ in 0..=self.next(4) {
            let mut payload = if self.next(2) == 0 { REQUEST.to_vec() } else { self.bytes(40) };
            if !payload.is_empty() && self.next(3) == 0 {
                let place = self.next(payload.len() as u64) as usize;
                payload[place] = self.next(256) as u8;
            }
            let length = if self.next(5) == 0 { self.next(64) } else { payload.len() as u64 };
            stream.push(TYPES[self.next(TYPES.len() as u64) as usize]);
            stream.push(length as u8);
            stream.extend(payload);
        }
        stream
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_harms_nobody_else() {
    let panics = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&panics);
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        count.fetch_add(1, Ordering::Relaxed);
        default_hook(info);
    }));

    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "content").unwrap();
    let server = Server::start(StaticFiles::new(directory.path(), true).unwrap(), |_| {});
    let bystander = server.client();
    let uri = server.uri("/file");
    bystander.get(&uri).await.unwrap();

    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut nonsense = Nonsense(7);
    for _ in 0..60 {
        let attack = async {
            let quic = endpoint.connect(&server.client_config(), server.address, "localhost").await.unwrap();
            for _ in 0..nonsense.next(12) {
                // The server may have closed the connection already; that is its right.
                let bytes = if nonsense.next(4) == 0 { nonsense.bytes(200) } else { nonsense.frames() };
                let Ok(mut send) = (if nonsense.next(3) == 0 {
                    quic.open_uni().await
                } else {
                    quic.open_bi().await.map(|(send, _)| send)
                }) else {
                    break;
                };
                let _ = send.write_all(&bytes).await;
                match nonsense.next(4) {
                    0 => send.reset(0x10c),
                    1 => {}
                    _ => send.finish(),
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(nonsense.next(20))).await;
            quic.close(0x100, b"");
        };
        timeout(PATIENCE, attack).await.expect("the server hangs");
    }

    let response = timeout(PATIENCE, bystander.get(&uri)).await.expect("the server hangs").unwrap();
    assert_eq!(body(response).await.unwrap(), b"content");
    assert_eq!(bystander.connections().len(), 1, "the bystander keeps its connection");
    assert_eq!(panics.load(Ordering::Relaxed), 0, "a panic can be reached from the network");
}

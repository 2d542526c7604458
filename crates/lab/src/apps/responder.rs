//! The server side of every application: answers requests.

use std::collections::BTreeMap;

use posthaste_units::Time;

use super::{App, AppReport, Hosts, Progress, REQUEST_LENGTH, RESPONSE_HEADER_LENGTH, Request, content};
use crate::peer::{Peer, PeerEvent, Read, StreamKey};

/// Answers every request on its hosts at once, each response as fast as the stack takes it.
#[derive(Debug, Default)]
pub struct Responder {
    streams: BTreeMap<(usize, StreamKey), Response>,
}

/// What has been read of a request and written of its response.
#[derive(Debug, Default)]
struct Response {
    request: Vec<u8>,
    /// Header and body bytes in all, once known.
    length: Option<u64>,
    written: u64,
}

impl Response {
    /// Reads and writes as far as possible; true once the response is complete.
    fn pump(&mut self, now: Time, stream: StreamKey, peer: &mut dyn Peer) -> bool {
        while self.length.is_none() {
            match peer.read(now, stream, REQUEST_LENGTH) {
                Read::Data(data) => {
                    // A longer request is no request of ours; what is beyond is read and forgotten.
                    let room = REQUEST_LENGTH.saturating_sub(self.request.len()).min(data.len());
                    self.request.extend_from_slice(&data[..room]);
                }
                Read::Finished => {
                    let body = Request::decode(&self.request).map_or(0, |request| request.body);
                    self.length = Some((RESPONSE_HEADER_LENGTH as u64).saturating_add(body));
                }
                Read::Blocked => return false,
                Read::Reset => return true,
            }
        }
        let length = self.length.unwrap_or_default();
        while self.written < length {
            let mut chunk = content(self.written, length - self.written);
            let offered = chunk.len();
            peer.write(now, stream, &mut chunk);
            self.written += (offered - chunk.len()) as u64;
            if !chunk.is_empty() {
                return false;
            }
        }
        peer.finish(now, stream);
        true
    }
}

impl App for Responder {
    fn start(&mut self, _now: Time, _hosts: &mut dyn Hosts) {}

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        let stream = match event {
            PeerEvent::Opened(stream) => {
                self.streams.insert((host, stream), Response::default());
                stream
            }
            PeerEvent::Readable(stream) | PeerEvent::Writable(stream) => stream,
            PeerEvent::Closed(_) => {
                self.streams.retain(|(of, _), _| *of != host);
                return;
            }
            PeerEvent::Connected | PeerEvent::Available => return,
        };
        let Some(response) = self.streams.get_mut(&(host, stream)) else { return };
        if response.pump(now, stream, hosts.peer(host)) {
            self.streams.remove(&(host, stream));
        }
    }

    fn on_timeout(&mut self, _now: Time, _hosts: &mut dyn Hosts) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn progress(&self) -> Progress {
        Progress::Idle
    }

    fn report(&self) -> AppReport {
        AppReport::default()
    }
}

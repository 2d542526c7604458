//! HTTP/3 over quiche.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;

use posthaste_interop_peers::contract::{ClientArgs, Fetched, Result, Target, read_served};
use quiche::h3::{Connection as Http3, Event, Header, NameValue as _};

use crate::driver::Application;

/// What a connection leaves for the next one to go on from.
pub(crate) type Session = Rc<RefCell<Option<Vec<u8>>>>;

/// The HTTP/3 layer once the handshake is done, or early data may be sent.
fn layer<'a>(
    slot: &'a mut Option<Http3>,
    connection: &mut quiche::Connection,
) -> Result<Option<&'a mut Http3>> {
    if slot.is_none() && (connection.is_established() || connection.is_in_early_data()) {
        *slot = Some(Http3::with_transport(connection, &quiche::h3::Config::new()?)?);
    }
    Ok(slot.as_mut())
}

/// What of a response still has to go out.
struct Response {
    headers: Option<Vec<Header>>,
    body: Vec<u8>,
    sent: usize,
}

impl Response {
    /// The answer to a request for `path` of the origin `authority`, which browsers are told to speak HTTP/3: Chromium sends
    /// no more than six requests at a time to one that has not said it.
    fn new(authority: &str, path: &str, body: Option<Vec<u8>>) -> Self {
        let status: &[u8] = if body.is_some() { b"200" } else { b"404" };
        let body = body.unwrap_or_default();
        let length = body.len().to_string();
        let port = authority.rsplit_once(':').map_or("443", |(_, port)| port);
        let alternative = format!("h3=\":{port}\"; ma=86400");
        let headers = vec![
            Header::new(b":status", status),
            Header::new(b"alt-svc", alternative.as_bytes()),
            Header::new(b"content-length", length.as_bytes()),
            Header::new(b"content-type", media_type(path)),
        ];
        Self { headers: Some(headers), body, sent: 0 }
    }

    /// True once all is handed to the transport.
    fn send(&mut self, http3: &mut Http3, connection: &mut quiche::Connection, stream: u64) -> Result<bool> {
        if let Some(headers) = &self.headers {
            match http3.send_response(connection, stream, headers, self.body.is_empty()) {
                Ok(()) => self.headers = None,
                Err(quiche::h3::Error::StreamBlocked) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        while self.sent < self.body.len() {
            match http3.send_body(connection, stream, &self.body[self.sent..], true) {
                Ok(sent) => self.sent += sent,
                Err(quiche::h3::Error::Done) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

/// What browsers insist on: they take no style sheet under another type.
fn media_type(path: &str) -> &'static [u8] {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => b"text/html; charset=utf-8",
        "css" => b"text/css",
        "js" => b"text/javascript",
        "json" => b"application/json",
        "bmp" => b"image/bmp",
        "woff2" => b"font/woff2",
        _ => b"application/octet-stream",
    }
}

/// A field's text, empty if it is missing or none.
fn value<'a>(list: &'a [Header], name: &[u8]) -> &'a str {
    let header = list.iter().find(|header| header.name() == name);
    header.and_then(|header| std::str::from_utf8(header.value()).ok()).unwrap_or_default()
}

pub(crate) struct Server {
    root: PathBuf,
    http3: Option<Http3>,
    responses: BTreeMap<u64, Response>,
}

impl Server {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, http3: None, responses: BTreeMap::new() }
    }
}

impl Application for Server {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        let Some(http3) = layer(&mut self.http3, connection)? else { return Ok(false) };
        loop {
            match http3.poll(connection) {
                Ok((stream, Event::Headers { list, .. })) => {
                    let path = value(&list, b":path");
                    let body = read_served(&self.root, path);
                    let response = Response::new(value(&list, b":authority"), path, body);
                    self.responses.insert(stream, response);
                }
                Ok((stream, Event::Reset(_))) => drop(self.responses.remove(&stream)),
                Ok(_) => (),
                Err(quiche::h3::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut finished = Vec::new();
        for (&stream, response) in &mut self.responses {
            if response.send(http3, connection, stream)? {
                finished.push(stream);
            }
        }
        for stream in finished {
            self.responses.remove(&stream);
        }
        Ok(false)
    }
}

/// A request under way.
struct Fetch {
    url: String,
    status: u16,
    body: Vec<u8>,
}

pub(crate) struct Client {
    args: ClientArgs,
    target: Target,
    http3: Option<Http3>,
    /// URLs not asked for yet, last first.
    waiting: Vec<String>,
    fetches: BTreeMap<u64, Fetch>,
    /// Of the connection, for the report.
    name: String,
    session: Session,
    /// Bytes of all bodies.
    received: usize,
    has_moved: bool,
}

impl Client {
    pub(crate) fn new(args: ClientArgs, name: String, session: Session) -> Result<Self> {
        let target = Target::parse(&args.urls[0])?;
        let waiting = args.urls.iter().rev().cloned().collect();
        Ok(Self {
            args,
            target,
            http3: None,
            waiting,
            fetches: BTreeMap::new(),
            name,
            session,
            received: 0,
            has_moved: false,
        })
    }
}

impl Application for Client {
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool> {
        let Some(http3) = layer(&mut self.http3, connection)? else { return Ok(false) };
        loop {
            match http3.poll(connection) {
                Ok((stream, event)) => {
                    let Some(fetch) = self.fetches.get_mut(&stream) else { continue };
                    match event {
                        Event::Headers { list, .. } => fetch.status = status(&list)?,
                        Event::Data => {
                            let before = fetch.body.len();
                            read_body(http3, connection, stream, &mut fetch.body)?;
                            self.received += fetch.body.len() - before;
                        }
                        Event::Finished => {
                            if let Some(done) = self.fetches.remove(&stream) {
                                let directory = &self.args.output_dir;
                                Fetched::store(directory, &done.url, done.status, &self.name, &done.body)?
                                    .report()?;
                            }
                        }
                        Event::Reset(code) => return Err(format!("{}: reset with {code}", fetch.url).into()),
                        Event::GoAway | Event::PriorityUpdate => (),
                    }
                }
                Err(quiche::h3::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        while self.fetches.len() < self.args.parallel {
            let Some(url) = self.waiting.pop() else { break };
            let Some(stream) = request(http3, connection, &self.target, &url)? else {
                self.waiting.push(url);
                break;
            };
            self.fetches.insert(stream, Fetch { url, status: 0, body: Vec::new() });
        }
        let is_done = self.waiting.is_empty() && self.fetches.is_empty();
        if is_done {
            *self.session.borrow_mut() = connection.session().map(<[u8]>::to_vec);
        }
        Ok(is_done)
    }

    fn leaves_for(&mut self) -> Option<IpAddr> {
        let is_due = self.args.move_after.is_some_and(|bytes| self.received >= bytes) && !self.has_moved;
        self.has_moved |= is_due;
        is_due.then_some(self.args.move_to)
    }
}

/// Sends one request; `None` if the peer's limits have no room yet.
fn request(
    http3: &mut Http3,
    connection: &mut quiche::Connection,
    target: &Target,
    url: &str,
) -> Result<Option<u64>> {
    let headers = [
        Header::new(b":method", b"GET"),
        Header::new(b":scheme", b"https"),
        Header::new(b":authority", target.authority().as_bytes()),
        Header::new(b":path", Target::parse(url)?.path.as_bytes()),
    ];
    match http3.send_request(connection, &headers, true) {
        Ok(stream) => Ok(Some(stream)),
        Err(
            quiche::h3::Error::StreamBlocked | quiche::h3::Error::TransportError(quiche::Error::StreamLimit),
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn status(headers: &[Header]) -> Result<u16> {
    let status = headers.iter().find(|header| header.name() == b":status").ok_or("no :status")?;
    Ok(std::str::from_utf8(status.value())?.parse()?)
}

fn read_body(
    http3: &mut Http3,
    connection: &mut quiche::Connection,
    stream: u64,
    body: &mut Vec<u8>,
) -> Result<()> {
    let mut chunk = [0; 16_384];
    loop {
        match http3.recv_body(connection, stream, &mut chunk) {
            Ok(length) => body.extend_from_slice(&chunk[..length]),
            Err(quiche::h3::Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

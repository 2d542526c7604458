//! An upstream over TCP that records every byte, and a strict parser that judges what came.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::PATIENCE;

/// A request as HTTP/1.1 permits it, and no other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

impl Message {
    /// All values of a field.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|field| field.0 == name).map(|field| field.1.as_str()).collect()
    }
}

/// One connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Link {
    pub(crate) bytes: Vec<u8>,
    /// The proxy has closed it.
    pub(crate) is_closed: bool,
    /// Bytes of answers that the proxy has taken.
    pub(crate) written: usize,
}

impl Link {
    /// The whole requests.
    pub(crate) fn messages(&self) -> Vec<Message> {
        parse(&self.bytes).expect("what came is not HTTP/1.1")
    }
}

/// What the upstream does with a request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Waits for the next request.
    Keep,
    /// Ends the connection.
    Close,
    /// Ends it by a reset.
    Reset,
    /// Sends the bytes again and again.
    Repeat,
}

impl Reply {
    pub(crate) fn keep(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), then: Then::Keep }
    }

    pub(crate) fn close(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), then: Then::Close }
    }

    /// A response with this body.
    pub(crate) fn ok(body: &[u8]) -> Self {
        let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(body);
        Self::keep(bytes)
    }
}

/// When the upstream answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// To a whole request.
    Whole,
    /// To a request's head; the message has no body then.
    Head,
    /// Never, and it does not even read.
    Never,
}

/// An upstream. It goes when the test's runtime goes.
pub(crate) struct Recorder {
    pub(crate) address: SocketAddr,
    links: Arc<Mutex<Vec<Link>>>,
    answered: Arc<Mutex<Vec<Message>>>,
}

impl Recorder {
    pub(crate) async fn start(
        when: When,
        answer: impl Fn(&Message) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), when, answer)
    }

    /// The same at an address of the caller's.
    pub(crate) fn on(
        listener: TcpListener,
        when: When,
        answer: impl Fn(&Message) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let links = Arc::new(Mutex::new(Vec::new()));
        let answered = Arc::new(Mutex::new(Vec::new()));
        let (all, log) = (Arc::clone(&links), Arc::clone(&answered));
        let answer = Arc::new(move |message: &Message| {
            log.lock().unwrap().push(message.clone());
            answer(message)
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let place = {
                    let mut all = all.lock().unwrap();
                    all.push(Link::default());
                    all.len() - 1
                };
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                tokio::spawn(async move {
                    let note = |change: &dyn Fn(&mut Link)| change(&mut all.lock().unwrap()[place]);
                    serve(stream, when, &*answer, note).await;
                });
            }
        });
        Self { address, links, answered }
    }

    pub(crate) fn links(&self) -> Vec<Link> {
        self.links.lock().unwrap().clone()
    }

    /// The requests that were answered, in their order. All that came is HTTP/1.1.
    pub(crate) fn messages(&self) -> Vec<Message> {
        for link in self.links() {
            link.messages();
        }
        self.answered.lock().unwrap().clone()
    }

    /// Waits until the connections are as they are expected.
    pub(crate) async fn wait(&self, what: &str, is_so: impl Fn(&[Link]) -> bool) -> Vec<Link> {
        let waiting = async {
            loop {
                let links = self.links();
                if is_so(&links) {
                    return links;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("{what}: {:?}", self.links()))
    }
}

async fn serve(
    mut stream: TcpStream,
    when: When,
    answer: &(impl Fn(&Message) -> Reply + Sync),
    note: impl Fn(&dyn Fn(&mut Link)),
) {
    if when == When::Never {
        return std::future::pending().await;
    }
    let (mut bytes, mut answered) = (Vec::new(), 0);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return note(&|link| link.is_closed = true),
            Ok(length) => {
                bytes.extend_from_slice(&buffer[..length]);
                note(&|link| link.bytes.extend_from_slice(&buffer[..length]));
            }
        }
        let messages = match when {
            When::Whole | When::Never => parse(&bytes).unwrap_or_default(),
            When::Head => head(&bytes).ok().flatten().map(|head| head.0).into_iter().collect(),
        };
        for message in &messages[answered.min(messages.len())..] {
            answered += 1;
            let reply = answer(message);
            loop {
                if stream.write_all(&reply.bytes).await.is_err() {
                    return note(&|link| link.is_closed = true);
                }
                note(&|link| link.written += reply.bytes.len());
                if reply.then != Then::Repeat {
                    break;
                }
            }
            match reply.then {
                Then::Close => {
                    // What comes until the proxy closes, too.
                    let _ = stream.shutdown().await;
                }
                Then::Reset => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
                Then::Keep | Then::Repeat => {}
            }
        }
    }
}

/// The whole requests at the beginning of `bytes`.
fn parse(bytes: &[u8]) -> Result<Vec<Message>, String> {
    parse_and_rest(bytes).map(|parsed| parsed.0)
}

/// The same, and what follows them.
pub(crate) fn parse_and_rest(mut bytes: &[u8]) -> Result<(Vec<Message>, &[u8]), String> {
    let mut messages = Vec::new();
    while let Some((mut message, length)) = head(bytes)? {
        let Some(end) = body(&mut message, &bytes[length..])? else { break };
        messages.push(message);
        bytes = &bytes[length + end..];
    }
    Ok((messages, bytes))
}

fn head(bytes: &[u8]) -> Result<Option<(Message, usize)>, String> {
    let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes[..end]);
    let (line, fields) = text.split_once("\r\n").ok_or("a head without fields")?;
    let [method, target, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("not a request line: {line:?}"));
    };
    if version != "HTTP/1.1" || !(target.starts_with('/') || target == "*") {
        return Err(format!("not a request line: {line:?}"));
    }
    let fields = lines(fields)?;
    let message = Message { method: method.into(), target: target.into(), fields, ..Message::default() };
    if message.all("host").len() != 1 {
        return Err(format!("not one host: {text}"));
    }
    Ok(Some((message, end + 4)))
}

fn lines(text: &str) -> Result<Vec<(String, String)>, String> {
    let line = |line: &str| {
        let (name, value) = line.split_once(": ").ok_or_else(|| format!("not a field: {line:?}"))?;
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        let is_value = !value.contains(['\r', '\n', '\0']) && value.trim_matches([' ', '\t']) == value;
        if is_name && is_value { Ok((name.to_owned(), value.to_owned())) } else { Err(format!("{line:?}")) }
    };
    text.split("\r\n").filter(|text| !text.is_empty()).map(line).collect()
}

/// Reads a message's body; its end in `bytes`, if that has come.
fn body(message: &mut Message, bytes: &[u8]) -> Result<Option<usize>, String> {
    match (&message.all("content-length")[..], &message.all("transfer-encoding")[..]) {
        ([], []) => Ok(Some(0)),
        ([length], []) => {
            let length: usize = length.parse().map_err(|_| format!("not a length: {length}"))?;
            if bytes.len() < length {
                return Ok(None);
            }
            message.body = bytes[..length].to_vec();
            Ok(Some(length))
        }
        ([], ["chunked"]) => chunks(message, bytes),
        other => Err(format!("the length is not clear: {other:?}")),
    }
}

fn chunks(message: &mut Message, bytes: &[u8]) -> Result<Option<usize>, String> {
    let mut at = 0;
    loop {
        let Some(line) = find(&bytes[at..], b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&bytes[at..at + line]).map_err(|error| error.to_string())?;
        let size = usize::from_str_radix(size, 16).map_err(|_| format!("not a chunk: {size:?}"))?;
        at += line + 2;
        if size == 0 {
            // Trailers, or an empty line.
            let end =
                if bytes[at..].starts_with(b"\r\n") { Some(0) } else { find(&bytes[at..], b"\r\n\r\n") };
            let Some(end) = end else { return Ok(None) };
            message.trailers = lines(&String::from_utf8_lossy(&bytes[at..at + end]))?;
            return Ok(Some(at + if end == 0 { 2 } else { end + 4 }));
        }
        if bytes.len() < at + size + 2 {
            return Ok(None);
        }
        message.body.extend_from_slice(&bytes[at..at + size]);
        at += size;
        if &bytes[at..at + 2] != b"\r\n" {
            return Err("a chunk without an end".to_owned());
        }
        at += 2;
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

//! `WebDriver BiDi`: commands, answers and events as JSON over a `WebSocket` on loopback.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use super::remote::{Inbox, Remote};

/// How long one read waits, so that the caller can look whether the browser still lives.
const TICK: Duration = Duration::from_millis(100);

/// Something that has happened in the browser.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) method: String,
    pub(super) parameters: Value,
}

/// What the browser sends: an answer has an `id`, an event a `method`.
#[derive(Debug, Deserialize)]
struct Received {
    id: Option<u64>,
    #[serde(default)]
    result: Value,
    error: Option<String>,
    message: Option<String>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

/// A connection to a browser.
pub(super) struct Bidi {
    socket: WebSocket<TcpStream>,
    inbox: Inbox<Event>,
    last: u64,
}

impl Bidi {
    /// Connects to the browser that listens on `address`.
    pub(super) fn connect(address: SocketAddr) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot connect to the browser: {error}");
        let stream = TcpStream::connect(address).map_err(|error| failed(&error))?;
        let url = format!("ws://{address}/session");
        let (socket, _) = tungstenite::client(url, stream).map_err(|error| failed(&error))?;
        socket.get_ref().set_read_timeout(Some(TICK)).map_err(|error| failed(&error))?;
        Ok(Self { socket, inbox: Inbox::default(), last: 0 })
    }

    /// Sends a command; the number is for [`Remote::answer`].
    pub(super) fn send(&mut self, method: &str, parameters: &Value) -> Result<u64, String> {
        self.last += 1;
        let text = json!({ "id": self.last, "method": method, "params": parameters }).to_string();
        let sent = self.socket.send(Message::text(text));
        sent.map_err(|error| format!("the browser takes no command: {error}"))?;
        Ok(self.last)
    }

    /// Sends a command and waits for its answer.
    pub(super) fn call(
        &mut self,
        method: &str,
        parameters: &Value,
        patience: Duration,
    ) -> Result<Value, String> {
        let number = self.send(method, parameters)?;
        self.await_answer(number, method, patience)
    }

    fn sort(&mut self, received: Received) {
        if let Some(id) = received.id {
            let answer = match received.error {
                Some(error) => {
                    let why = received.message.unwrap_or_default();
                    Err(format!("the browser refuses a command: {error}: {why}"))
                }
                None => Ok(received.result),
            };
            self.inbox.put_answer(id, answer);
        } else if let Some(method) = received.method {
            self.inbox.put_event(Event { method, parameters: received.params });
        }
    }
}

impl Remote for Bidi {
    type Event = Event;

    fn inbox(&mut self) -> &mut Inbox<Event> {
        &mut self.inbox
    }

    fn receive(&mut self, deadline: Instant) -> Result<bool, String> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    // What this program does not understand it has not asked for.
                    if let Ok(received) = serde_json::from_str(&text) {
                        self.sort(received);
                    }
                    return Ok(true);
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(format!("the connection to the browser broke: {error}")),
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }
}

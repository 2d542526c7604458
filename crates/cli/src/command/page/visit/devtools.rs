//! The `DevTools` protocol over a pair of named pipes: no port, and so no namespace, and nothing to be installed.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde::Deserialize;
use serde_json::{Value, json};

use super::launch::Launch;
use super::process::Process;
use super::remote::{Inbox, Remote};

/// How often it is looked whether the browser still lives.
const TICK: Duration = Duration::from_millis(100);

/// Something that has happened in the browser.
#[derive(Debug)]
pub(super) struct Event {
    /// The tab's session.
    pub(super) session: Option<String>,
    pub(super) method: String,
    pub(super) parameters: Value,
}

/// A message of the browser: an answer has an `id`, an event a `method`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: Option<u64>,
    #[serde(default)]
    result: Value,
    error: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    session_id: Option<String>,
}

/// A browser that listens; dropped, it ends.
pub(super) struct DevTools {
    browser: Process,
    commands: File,
    messages: Receiver<Message>,
    inbox: Inbox<Event>,
    last: u64,
}

impl DevTools {
    /// Starts the browser.
    pub(super) fn start(launch: &Launch) -> Result<Self, String> {
        let failed =
            |error: &dyn std::fmt::Display| format!("cannot start {}: {error}", launch.program.display());
        let pipe = |name: &str| {
            let path = launch.folder.join(name);
            mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|error| failed(&error))?;
            // Open both ways: so neither side waits for the other to open it.
            let file = File::options().read(true).write(true).open(&path).map_err(|error| failed(&error))?;
            Ok::<_, String>((path, file))
        };
        let (commands_path, commands) = pipe("commands")?;
        let (messages_path, messages) = pipe("messages")?;
        let mut command = Command::new("sh");
        // The browser takes its commands from descriptor 3, and answers on 4.
        command.args(["-c", "exec 3<\"$1\" 4>\"$2\"; shift 2; exec \"$@\"", "sh"]);
        command.args([&commands_path, &messages_path]).arg(&launch.program).args(&launch.arguments);
        let browser = Process::start(command, &launch.folder)?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || read(messages, &sender));
        Ok(Self { browser, commands, messages: receiver, inbox: Inbox::default(), last: 0 })
    }

    /// Sends a command; the number is for [`Remote::answer`].
    pub(super) fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: &Value,
    ) -> Result<u64, String> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut text = message.to_string();
        text.push('\0');
        self.commands
            .write_all(text.as_bytes())
            .map_err(|error| format!("the browser takes no command: {error}"))?;
        Ok(self.last)
    }

    /// Sends a command and waits for its answer.
    pub(super) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: &Value,
        patience: Duration,
    ) -> Result<Value, String> {
        let number = self.send(session, method, parameters)?;
        self.await_answer(number, method, patience)
    }

    fn sort(&mut self, message: Message) {
        if let Some(id) = message.id {
            let answer = match message.error {
                Some(error) => Err(format!("the browser refuses a command: {error}")),
                None => Ok(message.result),
            };
            self.inbox.put_answer(id, answer);
        } else if let Some(method) = message.method {
            self.inbox.put_event(Event { session: message.session_id, method, parameters: message.params });
        }
    }

    /// Ends the browser as a user would.
    pub(super) fn close(mut self) {
        if self.send(None, "Browser.close", &json!({})).is_ok() {
            self.browser.wait_for_the_end();
        }
    }
}

impl Remote for DevTools {
    type Event = Event;

    fn inbox(&mut self) -> &mut Inbox<Event> {
        &mut self.inbox
    }

    fn receive(&mut self, deadline: Instant) -> Result<bool, String> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left.min(TICK)) {
                Ok(message) => {
                    self.sort(message);
                    return Ok(true);
                }
                Err(RecvTimeoutError::Disconnected) => return Err("the browser's pipe broke".to_owned()),
                Err(RecvTimeoutError::Timeout) if left > TICK => self.browser.check()?,
                Err(RecvTimeoutError::Timeout) => return Ok(false),
            }
        }
    }
}

/// Messages end with a zero byte.
fn read(pipe: File, to: &mpsc::Sender<Message>) {
    for part in BufReader::new(pipe).split(0) {
        let Ok(part) = part else { return };
        // What this program does not understand it has not asked for.
        let Ok(message) = serde_json::from_slice(&part) else { continue };
        if to.send(message).is_err() {
            return;
        }
    }
}

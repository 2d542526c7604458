//! What the fuzz target `http3` does with an input: a connection whose peer does as the input says.
//!
//! The first byte chooses the end under test. Then follow records of one byte for the kind, two for a length and that
//! many bytes. Everything is done twice, with the bytes in one piece and one by one, which must come to the same.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use posthaste_http3::qpack::{self, Encoder, Tables, Takes};
use posthaste_http3::{
    Error, Event, MessageError, MessageKind, MessageReader, Next, Part, Peer, Priorities, Priority, Role,
    Settings, UniStream, encode,
};

/// Records that are read of one input.
const MAX_RECORDS: usize = 64;

/// Streams of either sort.
const STREAMS: usize = 4;

/// Largest field section that is permitted, in bytes.
const MAX_SECTION: u64 = 2048;

/// The kinds of records.
pub(crate) mod kind {
    /// The first byte chooses one of the peer's unidirectional streams, the rest arrives on it.
    pub(crate) const UNI: u8 = 0;
    /// The stream that the first byte chooses ends.
    pub(crate) const UNI_END: u8 = 1;
    /// As [`UNI`] for messages.
    pub(crate) const MESSAGE: u8 = 2;
    /// As [`UNI_END`] for messages; a new one takes its place.
    pub(crate) const MESSAGE_END: u8 = 3;
    /// A field section.
    pub(crate) const SECTION: u8 = 4;
    /// Requests begin and end: a byte below 128 begins the next, another ends one.
    pub(crate) const REQUESTS: u8 = 5;
    /// A head is sent on the stream that the first byte chooses; each further byte is a field.
    pub(crate) const HEAD: u8 = 6;
    /// How many there are.
    pub(crate) const COUNT: u8 = HEAD + 1;
}

/// Runs an input to its end.
pub(crate) fn run(input: &[u8]) {
    let Some((choice, mut rest)) = input.split_first() else { return };
    let mut connection = Connection::new(if choice & 1 == 0 { Role::Server } else { Role::Client });
    for _ in 0..MAX_RECORDS {
        let Some(([kind, low, high], after)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (bytes, after) = after.split_at(length.min(after.len()));
        rest = after;
        // Behind a breach there is nothing to be read.
        if connection.take(kind % kind::COUNT, bytes).is_err() {
            break;
        }
    }
}

/// The peer has broken the protocol.
struct Over;

struct Connection {
    role: Role,
    /// In one piece, and byte by byte.
    halves: [Half; 2],
    priorities: Model,
    leaving: Option<u64>,
    has_settings: bool,
}

struct Half {
    role: Role,
    tables: Tables,
    peer: Peer,
    streams: [UniStream; STREAMS],
    messages: [Message; STREAMS],
    is_split: bool,
}

struct Message {
    reader: MessageReader,
    /// What has arrived behind a section that waits.
    input: BytesMut,
    is_over: bool,
}

impl Message {
    fn new(role: Role, tables: &Tables, index: usize) -> Self {
        let kind = match role {
            Role::Server => MessageKind::Request,
            Role::Client => MessageKind::Response { to_head: false },
        };
        let reader = MessageReader::new(kind, MAX_SECTION).with_tables(tables.clone(), 4 * index as u64);
        Self { reader, input: BytesMut::new(), is_over: false }
    }
}

impl Half {
    fn new(role: Role, is_split: bool) -> Self {
        let announced =
            Settings { qpack_max_table_capacity: 220, qpack_blocked_streams: 2, ..Settings::default() };
        let tables = Tables::new(role, &announced);
        tables.set_encoder_writable(true);
        Self {
            role,
            peer: Peer::with_tables(role, tables.clone()),
            streams: std::array::from_fn(|_| UniStream::default()),
            messages: std::array::from_fn(|index| Message::new(role, &tables, index)),
            tables,
            is_split,
        }
    }

    fn pieces(&self, bytes: &[u8]) -> Vec<Bytes> {
        let size = if self.is_split { 1 } else { bytes.len().max(1) };
        bytes.chunks(size).map(Bytes::copy_from_slice).collect()
    }

    fn on_uni(&mut self, index: usize, bytes: &[u8]) -> Result<(Next, Vec<Event>), Error> {
        let mut events = Vec::new();
        for piece in self.pieces(bytes) {
            let stream = &mut self.streams[index];
            let next = self.peer.on_data(stream, piece, |event| events.push(event))?;
            if next != Next::Read {
                *stream = UniStream::default();
                return Ok((next, events));
            }
        }
        Ok((Next::Read, events))
    }

    fn on_message(&mut self, index: usize, bytes: &[u8]) -> Result<Vec<Said>, MessageError> {
        let mut said = Vec::new();
        if self.messages[index].is_over {
            return Ok(said);
        }
        for piece in self.pieces(bytes) {
            let message = &mut self.messages[index];
            message.input.extend_from_slice(&piece);
            message.read(&mut said)?;
        }
        Ok(said)
    }

    /// Reads on where a section has waited for the dynamic table.
    fn on_insertions(&mut self, index: usize) -> Result<Vec<Said>, MessageError> {
        let message = &mut self.messages[index];
        let mut said = Vec::new();
        if !message.is_over && message.reader.is_blocked() {
            message.read(&mut said)?;
        }
        Ok(said)
    }

    /// A head as it is sent, and the instructions of both QPACK streams.
    fn head(&mut self, index: usize, fields: &[u8]) -> [Vec<u8>; 3] {
        let tables = Some((&self.tables, 4 * index as u64));
        let mut headers = HeaderMap::new();
        for field in fields {
            let name = ["cookie", "user-agent", "x-a", "etag"][usize::from(*field) % 4];
            let value = "1234567890".repeat(usize::from(*field) / 16).parse().expect("a value");
            headers.append(http::HeaderName::from_static(name), value);
        }
        let head = match self.role {
            Role::Server => {
                let mut response = http::Response::new(());
                *response.headers_mut() = headers;
                encode::response_with(&response, tables)
            }
            Role::Client => {
                let mut request = http::Request::get("https://a.example/").body(()).expect("a request");
                *request.headers_mut() = headers;
                encode::request_with(&request, tables).expect("a whole target")
            }
        };
        let takes = Takes { encoder: true, decoder: true, is_sending: true };
        let due = self.tables.due(std::task::Waker::noop(), takes).expect("few instructions");
        [head, due.encoder, due.decoder]
    }
}

impl Message {
    fn read(&mut self, said: &mut Vec<Said>) -> Result<(), MessageError> {
        let mut input = self.input.split().freeze();
        let result = read(&mut self.reader, &mut input, said);
        assert!(result.is_err() || input.is_empty() || self.reader.is_blocked());
        self.input.extend_from_slice(&input);
        self.is_over = result.is_err();
        result
    }
}

/// A part of a message; content is joined again.
#[derive(Debug, PartialEq)]
enum Said {
    Head(String, HeaderMap),
    Data(Vec<u8>),
    Trailers(HeaderMap),
}

fn read(reader: &mut MessageReader, input: &mut Bytes, said: &mut Vec<Said>) -> Result<(), MessageError> {
    while let Some(part) = reader.next(input)? {
        check_round_trip(&part);
        match (part, said.last_mut()) {
            (Part::Request(head), _) => {
                let (head, ()) = head.into_parts();
                said.push(Said::Head(format!("{} {}", head.method, head.uri), head.headers));
            }
            (Part::Response(head), _) => {
                let (head, ()) = head.into_parts();
                said.push(Said::Head(head.status.to_string(), head.headers));
            }
            (Part::Data(data), Some(Said::Data(before))) => before.extend_from_slice(&data),
            (Part::Data(data), _) => said.push(Said::Data(data.to_vec())),
            (Part::Trailers(trailers), _) => said.push(Said::Trailers(trailers)),
        }
    }
    Ok(())
}

/// What was accepted can be written, and is accepted as the same.
fn check_round_trip(part: &Part) {
    let again = |kind, mut stream: Bytes| {
        MessageReader::new(kind, 2 * MAX_SECTION)
            .next(&mut stream)
            .expect("what was accepted")
            .expect("a head")
    };
    match part {
        Part::Request(head) => {
            let Part::Request(read) =
                again(MessageKind::Request, encode::request(head).expect("a whole target").into())
            else {
                panic!("no request")
            };
            assert_eq!((read.method(), read.uri()), (head.method(), head.uri()));
            // The target stands for it.
            let mut headers = head.headers().clone();
            headers.remove("host");
            assert_eq!(*read.headers(), headers);
        }
        Part::Response(head) => {
            let kind = MessageKind::Response { to_head: false };
            let Part::Response(read) = again(kind, encode::response(head).into()) else {
                panic!("no response")
            };
            assert_eq!((read.status(), read.headers()), (head.status(), head.headers()));
        }
        Part::Data(data) => assert!(!data.is_empty()),
        Part::Trailers(_) => {}
    }
}

impl Connection {
    fn new(role: Role) -> Self {
        let halves = [Half::new(role, false), Half::new(role, true)];
        Self { role, halves, priorities: Model::default(), leaving: None, has_settings: false }
    }

    fn take(&mut self, kind: u8, bytes: &[u8]) -> Result<(), Over> {
        let (index, rest) = match bytes.split_first() {
            Some((choice, rest)) => (usize::from(*choice) % STREAMS, rest),
            None => (0, bytes),
        };
        match kind {
            kind::UNI => self.on_uni(index, rest),
            kind::UNI_END => self.on_uni_end(index),
            kind::MESSAGE => self.on_message(index, rest),
            kind::MESSAGE_END => self.on_message_end(index),
            kind::SECTION => {
                check_section(bytes);
                Ok(())
            }
            kind::HEAD => {
                let [whole, split] = self.halves.each_mut().map(|half| half.head(index, rest));
                assert_eq!(whole, split);
                Ok(())
            }
            _ => {
                for byte in bytes {
                    self.priorities.request(*byte);
                }
                Ok(())
            }
        }
    }

    fn on_uni(&mut self, index: usize, bytes: &[u8]) -> Result<(), Over> {
        let [whole, split] = self.halves.each_mut().map(|half| half.on_uni(index, bytes));
        assert_eq!(whole, split);
        let (_, events) = whole.map_err(|_| Over)?;
        for event in events {
            self.on_event(event);
        }
        (0..STREAMS).try_for_each(|index| {
            let [whole, split] = self.halves.each_mut().map(|half| half.on_insertions(index));
            judge(whole, split)
        })
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Settings(_) => {
                assert!(!std::mem::replace(&mut self.has_settings, true), "settings are told once");
            }
            Event::GoAway(id) => {
                assert!(self.leaving.is_none_or(|last| id <= last), "a peer cannot come back");
                self.leaving = Some(id);
            }
            Event::PriorityUpdate { stream, priority } => {
                assert!(self.role == Role::Server && stream % 4 == 0 && priority.urgency <= 7);
                self.priorities.update(stream, priority);
            }
        }
    }

    fn on_uni_end(&mut self, index: usize) -> Result<(), Over> {
        let [whole, split] = self.halves.each_mut().map(|half| {
            half.peer.on_end(&half.streams[index])?;
            half.streams[index] = UniStream::default();
            Ok::<_, Error>(())
        });
        assert_eq!(whole, split);
        whole.map_err(|_| Over)
    }

    fn on_message(&mut self, index: usize, bytes: &[u8]) -> Result<(), Over> {
        let [whole, split] = self.halves.each_mut().map(|half| half.on_message(index, bytes));
        judge(whole, split)
    }

    fn on_message_end(&mut self, index: usize) -> Result<(), Over> {
        let role = self.role;
        let [whole, split] = self.halves.each_mut().map(|half| {
            let next = Message::new(role, &half.tables, index);
            let mut message = std::mem::replace(&mut half.messages[index], next);
            if message.is_over || message.reader.is_blocked() { Ok(()) } else { message.reader.end() }
        });
        assert_eq!(whole, split);
        if matches!(whole, Err(MessageError::Connection(_))) { Err(Over) } else { Ok(()) }
    }
}

fn judge(whole: Result<Vec<Said>, MessageError>, split: Result<Vec<Said>, MessageError>) -> Result<(), Over> {
    match (whole, split) {
        // How much of a wrong length is seen depends on the cut.
        (Err(MessageError::Length { .. }), Err(MessageError::Length { .. })) => Ok(()),
        (whole, split) => {
            assert_eq!(whole, split);
            if matches!(whole, Err(MessageError::Connection(_))) { Err(Over) } else { Ok(()) }
        }
    }
}

/// What a section decodes to is no larger than permitted, and encodes to a section that decodes to the same.
fn check_section(section: &[u8]) {
    let Ok(fields) = qpack::decode(section, MAX_SECTION) else { return };
    let size: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 32).sum();
    assert!(size as u64 <= MAX_SECTION);
    let mut again = Vec::new();
    let mut encoder = Encoder::new(&mut again);
    for field in &fields {
        encoder.field(&field.name, &field.value, field.is_sensitive);
    }
    assert_eq!(qpack::decode(&again, MAX_SECTION).as_ref(), Ok(&fields));
}

/// Priorities, beside what they should be for the requests in progress.
#[derive(Default)]
struct Model {
    priorities: Priorities,
    /// By stream: what an update said, if there was one.
    in_progress: BTreeMap<u64, Option<Priority>>,
    next: u64,
}

impl Model {
    fn request(&mut self, byte: u8) {
        if byte < 128 {
            let update = self.priorities.on_arrival(self.next);
            self.in_progress.insert(self.next, update);
            self.next += 4;
        } else {
            let stream = u64::from(byte - 128) * 4;
            // A request is over once.
            if self.in_progress.remove(&stream).is_some() {
                self.priorities.on_end(stream);
            }
        }
    }

    fn update(&mut self, stream: u64, priority: Priority) {
        let counts = self.priorities.on_update(stream, priority);
        assert_eq!(counts, self.in_progress.contains_key(&stream));
        if let Some(update) = self.in_progress.get_mut(&stream) {
            *update = Some(priority);
        }
        let header = Priority { urgency: 6, incremental: true };
        for (stream, update) in &self.in_progress {
            assert_eq!(self.priorities.on_header(*stream, header), update.unwrap_or(header));
        }
    }
}

//! Requests put together at random from what is right and what is wrong (docs: "Bad inputs" of the edge): whatever they are,
//! the upstream gets whole requests that say what the client said, or fragments on connections that end with them.

use futures::future::join_all;
use posthaste_endpoint::ReadError;
use posthaste_units::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::heads::MALFORMED;
use crate::over_tcp::{self, frame};
use crate::raw::{self, End, Raw};
use crate::recorder::{Message, Recorder, Reply, When};
use crate::scene::{Scene, proxy};

type Field = (&'static str, &'static str);

const METHODS: [&[&str]; 2] = [
    &["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "REPORT"],
    &["GET /x HTTP/1.1\r\nx:", "", "G\0T", "CONNECT"],
];
const AUTHORITIES: [&[&str]; 2] = [
    &["localhost", "LOCALHOST:8443", "[::1]:443", "127.0.0.1"],
    &["", "user@localhost", "a b", "local\r\nhost", "a/b"],
];
const PATHS: [&[&str]; 2] = [
    &["/", "//", "/../a", "/%2e%2e/a?b=/../c", "/a//b?", "/x?y=z"],
    &["", "raw", "https://other.test/", "/a b", "/a\r\nb: c", "/a#b", "*", "/a\0"],
];
const FIELDS: [&[Field]; 2] = [
    &[
        ("accept", "*/*"),
        ("cookie", "a=b"),
        ("x-empty", ""),
        ("te", "trailers"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x_forwarded_for", "6.6.6.6"),
        ("forwarded", "for=6.6.6.6"),
        ("proxy", "evil"),
        ("trailer", "x-t"),
    ],
    &MALFORMED,
];

/// Fields of which none may come from a client.
const OURS: [&str; 8] =
    ["keep-alive", "proxy-connection", "upgrade", "forwarded", "x_forwarded_for", "proxy", "x-cut", "b"];

/// A part of a message.
#[derive(Debug, Clone)]
enum Part {
    Head,
    Data(String),
    Trailers(Vec<(String, String)>),
}

/// A message, and whether all of it is right.
#[derive(Debug)]
struct Case {
    head: Vec<(String, String)>,
    parts: Vec<Part>,
    /// It ends by a reset.
    is_reset: bool,
    is_right: bool,
}

/// Picks, and notes whether what it has picked is right.
struct Dice {
    rng: Rng,
    is_right: bool,
}

impl Dice {
    fn one_in(&mut self, count: u64) -> bool {
        self.rng.below(count) == 0
    }

    /// Something wrong once in `rare` picks.
    fn pick<T: Copy>(&mut self, from: [&[T]; 2], rare: u64) -> T {
        let is_wrong = self.one_in(rare);
        self.is_right &= !is_wrong;
        let all = from[usize::from(is_wrong)];
        all[self.rng.below(all.len() as u64) as usize]
    }
}

fn owned((name, value): Field) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

impl Case {
    fn new(mark: usize, rng: Rng) -> Self {
        let mut dice = Dice { rng, is_right: true };
        let mut head: Vec<_> = [
            (":method", dice.pick(METHODS, 20)),
            (":scheme", dice.pick([&["https"], &["http", "ftp", ""]], 40)),
            (":authority", dice.pick(AUTHORITIES, 20)),
            (":path", dice.pick(PATHS, 20)),
        ]
        .map(owned)
        .into();
        if dice.one_in(40) {
            head.remove(dice.rng.below(4) as usize);
            dice.is_right = false;
        }
        head.push(("x-mark".to_owned(), mark.to_string()));
        for _ in 0..dice.rng.below(4) {
            head.push(owned(dice.pick(FIELDS, 12)));
        }
        let mut parts = vec![Part::Head];
        for _ in 0..dice.rng.below(4) {
            parts.push(Part::Data("body".repeat(dice.rng.below(60) as usize)));
        }
        let length: usize =
            parts.iter().map(|part| if let Part::Data(data) = part { data.len() } else { 0 }).sum();
        for _ in 0..[0, 0, 1, 1, 2][dice.rng.below(5) as usize] {
            let is_wrong = dice.one_in(10);
            dice.is_right &= !is_wrong;
            let said = if is_wrong {
                [length + 1, length.max(1) - 1 + 2 * usize::from(length == 0)][usize::from(dice.one_in(2))]
            } else {
                length
            };
            head.push(("content-length".to_owned(), said.to_string()));
        }
        if dice.one_in(6) {
            let right: &[Field] = &[("x-t", "1"), ("x-u", "2"), ("host", "evil"), ("content-length", "7")];
            let wrong: &[Field] = &[(":path", "/"), ("connection", "x-a"), ("x\r\ny", "a")];
            parts.push(Part::Trailers(vec![owned(dice.pick([right, wrong], 6))]));
        }
        if dice.one_in(25) {
            let at = dice.rng.below(parts.len() as u64) as usize;
            let other =
                [Part::Head, Part::Trailers(vec![owned(("x-t", "1"))])][usize::from(dice.one_in(2))].clone();
            // Trailers at the end are in order.
            parts.insert(at, other);
            dice.is_right = false;
        }
        let is_reset = dice.one_in(15);
        Self { head, parts, is_reset, is_right: dice.is_right && !is_reset }
    }

    fn has_pseudo_trailers(&self) -> bool {
        let is_pseudo = |field: &(String, String)| field.0.starts_with(':');
        // Over HTTP/2 a second head can only be trailers.
        let is_it = |part: &Part| match part {
            Part::Head => true,
            Part::Data(_) => false,
            Part::Trailers(fields) => fields.iter().any(is_pseudo),
        };
        self.parts.iter().skip(1).any(is_it)
    }

    fn said(&self, name: &str) -> &str {
        self.head.iter().find(|field| field.0 == name).map_or("", |field| field.1.as_str())
    }

    fn body(&self) -> String {
        self.parts.iter().map(|part| if let Part::Data(data) = part { data.as_str() } else { "" }).collect()
    }

    /// Whether a request at the upstream says what this one says.
    fn assert_said(&self, message: &Message) {
        assert_eq!(message.method, self.said(":method"), "{self:?}");
        assert_eq!(message.target, self.said(":path"), "{self:?}");
        assert_eq!(message.all("host"), [self.said(":authority")], "{self:?}");
        assert_eq!(String::from_utf8_lossy(&message.body), self.body(), "{self:?}");
        assert_eq!(message.all("x-forwarded-for"), ["127.0.0.1"], "{self:?}");
        for name in OURS {
            assert!(message.all(name).is_empty(), "{name}: {message:?}");
        }
        assert!(message.trailers.iter().all(|field| field.0 == "x-t"), "{message:?}");
    }

    /// As HTTP/3 frames, one for each part.
    fn http3(&self) -> Vec<Vec<u8>> {
        let headers = |fields: &[(String, String)]| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            raw::headers(&fields)
        };
        let frame = |part: &Part| match part {
            Part::Head => headers(&self.head),
            Part::Data(data) => raw::data(data).to_vec(),
            Part::Trailers(fields) => headers(fields),
        };
        self.parts.iter().map(frame).collect()
    }

    /// As HTTP/2 frames on the first stream.
    fn http2(&self) -> Vec<u8> {
        let mut bytes = over_tcp::preface(&[]);
        let last = self.parts.len() - 1;
        for (at, part) in self.parts.iter().enumerate() {
            let ends = u8::from(at == last && !self.is_reset);
            bytes.extend(match part {
                Part::Head => frame(1, 4 | ends, 1, &block(&self.head)),
                Part::Data(data) => frame(0, ends, 1, data.as_bytes()),
                Part::Trailers(fields) => frame(1, 4 | ends, 1, &block(fields)),
            });
        }
        if self.is_reset {
            bytes.extend(frame(3, 0, 1, &8_u32.to_be_bytes()));
        }
        bytes
    }
}

/// Literals without indexing (RFC 7541 section 6.2.2); all are shorter than 127 bytes.
fn block(fields: &[(String, String)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.extend([0, name.len() as u8]);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    block
}

async fn upstream() -> Recorder {
    Recorder::start(When::Whole, |_| Reply::ok(b"")).await
}

/// What has reached the upstream, by marks: nothing twice, and each as it was said.
fn received(upstream: &Recorder, cases: &[Case]) -> Vec<bool> {
    let mut received = vec![false; cases.len()];
    for message in upstream.messages() {
        let [mark] = message.all("x-mark")[..] else { continue };
        let mark: usize = mark.parse().unwrap();
        cases[mark].assert_said(&message);
        assert!(!std::mem::replace(&mut received[mark], true), "twice: {message:?}");
    }
    received
}

fn cases(seed: u64, count: usize) -> Vec<Case> {
    let mut rng = Rng::from_test_seed(seed);
    (0..count).map(|mark| Case::new(mark, rng.fork())).collect()
}

/// Sends a message part by part, and waits for what becomes of it.
async fn ask(raw: &Raw, case: &Case) -> Result<End, ReadError> {
    let (mut send, recv) = raw.open().await;
    for frame in case.http3() {
        // The server may have had enough.
        if send.write_all(&frame).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    if case.is_reset {
        send.reset(0x10c);
    } else {
        send.finish();
    }
    raw::try_end(recv).await
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http3_the_upstream_gets_what_is_right_and_nothing_else() {
    let scene = Scene::with(When::Whole, |_| {}, |_| Reply::ok(b"")).await;
    let cases = cases(18, 1000);
    let mut ends = Vec::new();
    // Some at a time, on one connection: what one does must not reach another.
    for some in cases.chunks(4) {
        let raw = Raw::connect(&scene.server).await;
        ends.extend(join_all(some.iter().map(|case| ask(&raw, case))).await);
    }
    scene.is_well().await;
    let received = received(&scene.upstream, &cases);
    for ((case, end), was_received) in cases.iter().zip(&ends).zip(received) {
        match end {
            Ok(End::Status(200)) => assert!(was_received, "{case:?}"),
            // It ended with its connection, for another request on it: nobody knows how far it was.
            Err(_) => assert!(case.is_right || !was_received, "{case:?}"),
            Ok(end) => assert!(!case.is_right && !was_received, "{case:?}: {end:?}"),
        }
    }
    let right = cases.iter().filter(|case| case.is_right).count();
    let done = ends.iter().filter(|end| matches!(end, Ok(End::Status(200)))).count();
    assert!((200..800).contains(&right) && done > right * 3 / 4, "{right} are right, {done} are done");
}

/// Reads until the first stream has a head or its end, or the connection ends: HEADERS, `RST_STREAM`, GOAWAY, or nothing more.
async fn until_end(stream: &mut (impl AsyncReadExt + Unpin)) {
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() && !matches!(head[3], 1 | 3 | 7) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        if stream.read_exact(&mut payload).await.is_err() {
            return;
        }
    }
}

/// The fuzz target `translate` without a fuzzer: these and its seeds, and each with some bytes changed.
#[cfg(unix)]
#[test]
fn translated_bytes_say_the_same() {
    let seeds =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/translate")).unwrap();
    let mut inputs: Vec<_> = seeds.map(|seed| std::fs::read(seed.unwrap().path()).unwrap()).collect();
    assert!(!inputs.is_empty());
    let input = |case: &Case| [vec![u8::from(case.is_reset)], case.http3().concat()].concat();
    inputs.extend(cases(20, 300).iter().map(input));
    let mut rng = Rng::from_test_seed(21);
    for input in &inputs {
        crate::translated::run(input);
        for _ in 0..3 {
            let mut changed = input.clone();
            let at = rng.below(changed.len() as u64) as usize;
            changed[at] = rng.below(256) as u8;
            crate::translated::run(&changed);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http2_the_upstream_gets_what_is_right_and_nothing_else() {
    let upstream = upstream().await;
    let service = proxy(&format!("http://{}", upstream.address), |_| {});
    let server = over_tcp::Server::start(service, |_| {}).await;
    let cases = cases(19, 300);
    for case in &cases {
        let mut stream = server.connect("h2", case.http2()).await;
        if !case.is_reset {
            let ended = tokio::time::timeout(over_tcp::PATIENCE, until_end(&mut stream)).await;
            ended.unwrap_or_else(|_| panic!("{case:?}"));
        }
        let _ = stream.shutdown().await;
    }
    let received = received(&upstream, &cases);
    for (case, was_received) in cases.iter().zip(received) {
        // hyper's library passes over pseudo-fields in trailers; they go no further.
        assert!(case.is_right == was_received || case.has_pseudo_trailers(), "{case:?}");
    }
}

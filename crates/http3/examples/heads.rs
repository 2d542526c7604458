//! Bytes of request heads on the uplink, without and with QPACK's dynamic table: `cargo run -p posthaste-http3 --example
//! heads`. Nothing is sent: the heads and instructions of one connection are encoded and counted, and what the server
//! answers to them arrives where the series says.

use std::task::Waker;

use http::{HeaderMap, HeaderName, HeaderValue, Request};
use posthaste_http3::qpack::{Due, Tables, Takes};
use posthaste_http3::{
    DECODER_TABLE, MAX_BLOCKED_STREAMS, MessageKind, MessageReader, Part, Peer, Role, Settings, UniStream,
    encode,
};

/// What a phone's browser says of itself with each request.
const BROWSER: [(&str, &str); 12] = [
    (
        "user-agent",
        "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
    ),
    ("accept", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7"),
    ("sec-ch-ua", "\"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\", \"Google Chrome\";v=\"140\""),
    ("sec-ch-ua-mobile", "?1"),
    ("sec-ch-ua-platform", "\"Android\""),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-dest", "image"),
    ("referer", "https://www.example.com/articles/2026/11/a-title-of-some-length"),
    ("priority", "u=5, i"),
];

/// What an application says: a token, which is a secret, and a few fields of its own.
const APPLICATION: [(&str, &str); 6] = [
    ("user-agent", "ExampleApp/12.4.1 (Android 15; Pixel 9)"),
    ("accept", "application/json"),
    ("accept-encoding", "gzip"),
    (
        "authorization",
        "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLW9mLXRva2Vu",
    ),
    ("x-app-version", "12.4.1-release+4711"),
    ("x-device-id", "0f8fad5b-d9cb-469f-a165-70867728950e"),
];

/// One connection: the client's tables, and the server's, which it has announced.
struct Connection {
    client: Tables,
    server: Tables,
    peers: [(Peer, UniStream); 2],
    next: u64,
    /// Bytes of heads, of the encoder stream, and of the decoder stream.
    counts: [usize; 3],
}

impl Connection {
    fn new() -> Self {
        let settings = Settings {
            qpack_max_table_capacity: DECODER_TABLE,
            qpack_blocked_streams: MAX_BLOCKED_STREAMS,
            ..Settings::default()
        };
        let (client, server) = (Tables::new(Role::Client, &settings), Tables::new(Role::Server, &settings));
        let peers = [
            (Peer::with_tables(Role::Client, client.clone()), UniStream::default()),
            (Peer::with_tables(Role::Server, server.clone()), UniStream::default()),
        ];
        Self { client, server, peers, next: 0, counts: [0; 3] }
    }

    /// The server's settings arrive, and the QPACK streams open.
    fn open(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let settings = Settings {
            qpack_max_table_capacity: DECODER_TABLE,
            qpack_blocked_streams: MAX_BLOCKED_STREAMS,
            ..Settings::default()
        };
        let [(client, control), _] = &mut self.peers;
        client.on_data(control, encode::control_stream(&settings, None), |_| {})?;
        let [(client, decoder), (server, encoder)] = &mut self.peers;
        *decoder = UniStream::default();
        client.on_data(decoder, encode::decoder_stream(), |_| {})?;
        server.on_data(encoder, encode::encoder_stream(), |_| {})?;
        self.client.set_encoder_writable(true);
        self.counts[1] += encode::encoder_stream().len();
        self.counts[2] += encode::decoder_stream().len();
        Ok(())
    }

    /// Requests that leave at once; what the server says of them comes when the last has left.
    fn ask(&mut self, headers: &HeaderMap, count: usize) -> Result<(), Box<dyn std::error::Error>> {
        for _ in 0..count {
            let mut request =
                Request::get(format!("https://www.example.com/assets/{:05x}.webp", self.next * 7919))
                    .body(())?;
            *request.headers_mut() = headers.clone();
            let head = encode::request_with(&request, Some((&self.client, self.next)))?;
            self.counts[0] += head.len();
            let instructions = due(&self.client)?.encoder;
            self.counts[1] += instructions.len();
            let [_, (server, encoder)] = &mut self.peers;
            server.on_data(encoder, instructions.into(), |_| {})?;
            let mut reader =
                MessageReader::new(MessageKind::Request, 65_536).with_tables(self.server.clone(), self.next);
            let read = reader.next(&mut head.into())?;
            assert!(matches!(read, Some(Part::Request(read)) if read.headers() == headers), "as it was sent");
            reader.end()?;
            self.next += 4;
        }
        let answers = due(&self.server)?.decoder;
        self.counts[2] += answers.len();
        let [(client, decoder), _] = &mut self.peers;
        client.on_data(decoder, answers.into(), |_| {})?;
        Ok(())
    }
}

/// All that is to be sent.
fn due(tables: &Tables) -> Result<Due, posthaste_http3::Error> {
    tables.due(Waker::noop(), Takes { encoder: true, decoder: true, is_sending: true })
}

fn headers(fields: &[(&'static str, &'static str)], cookie: usize) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if cookie > 0 {
        let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        let mut state = 1_u64;
        let value: Vec<u8> = (0..cookie)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                letters[(state >> 58) as usize]
            })
            .collect();
        headers.insert("cookie", HeaderValue::from_bytes(&value).unwrap_or(HeaderValue::from_static("")));
    }
    headers
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let page = headers(&BROWSER, 1000);
    let bare = headers(&BROWSER, 0);
    let app = headers(&APPLICATION, 0);
    // The first request goes ahead of the server's settings. The numbers leave at once, one group after the other.
    let series: [(&str, &HeaderMap, &[usize]); 6] = [
        ("browser, 1 kB of cookies, 1 request", &page, &[1]),
        ("browser, 1 kB of cookies, 1 + 19", &page, &[1, 19]),
        ("browser, 1 kB of cookies, 1 + 19 + 1 + 29", &page, &[1, 19, 1, 29]),
        ("browser, no cookies, 1 + 19 + 1 + 29", &bare, &[1, 19, 1, 29]),
        ("application with a token, 20 in turn", &app, &[1; 20]),
        ("application with a token, 50 in turn", &app, &[1; 50]),
    ];
    println!("series | requests | heads without | heads with | instructions up | down | uplink saved");
    for (name, headers, groups) in series {
        let (mut with, mut without) = (Connection::new(), Connection::new());
        for (turn, group) in groups.iter().enumerate() {
            without.ask(headers, *group)?;
            with.ask(headers, *group)?;
            if turn == 0 && groups.len() > 1 {
                with.open()?;
            }
        }
        let [heads, up, down] = with.counts;
        let plain = without.counts[0];
        let saved = 100.0 - 100.0 * (heads + up) as f64 / plain as f64;
        let requests: usize = groups.iter().sum();
        println!("{name} | {requests} | {plain} | {heads} | {up} | {down} | {saved:.0} %");
    }
    Ok(())
}

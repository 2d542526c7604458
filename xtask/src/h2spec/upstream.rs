//! An application that answers when it has the whole request: what is wrong with a request's end must reach the client
//! as an error and not behind an answer (RFC 9113 section 8.1 permits an answer before the request's end).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::Result;

/// Bytes of a line or of a body; h2spec's are far below.
const MOST: u64 = 1 << 20;

/// Listens until the program ends.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
}

impl Upstream {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().map_while(std::result::Result::ok) {
                thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    while answer(&mut reader, &stream).is_some() {}
                });
            }
        });
        Ok(Self { address })
    }
}

/// Reads a request and answers it; `None` when the connection is over.
fn answer(reader: &mut BufReader<&TcpStream>, mut stream: &TcpStream) -> Option<()> {
    let (mut length, mut is_chunked) = (0, false);
    let request = line(reader)?;
    loop {
        let field = line(reader)?.to_ascii_lowercase();
        match field.split_once(':') {
            None => break,
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("transfer-encoding", _)) => is_chunked = true,
            Some(_) => {}
        }
    }
    while is_chunked {
        let size = u64::from_str_radix(&line(reader)?, 16).ok()?;
        if size > 0 {
            skip(reader, size)?;
            line(reader)?;
        } else {
            // Trailers.
            while !line(reader)?.is_empty() {}
            is_chunked = false;
        }
    }
    skip(reader, length)?;
    let content = if request.starts_with("HEAD ") { "" } else { "read\n" };
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{content}").ok()
}

/// A line without its end.
fn line(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut line = String::new();
    let length = reader.take(MOST).read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim_end().to_owned())
}

fn skip(reader: &mut BufReader<&TcpStream>, length: u64) -> Option<()> {
    let skipped = std::io::copy(&mut reader.take(length.min(MOST)), &mut std::io::sink()).ok()?;
    (skipped == length).then_some(())
}

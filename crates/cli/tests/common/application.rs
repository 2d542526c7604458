//! An HTTP server for the edge to stand in front of.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

/// One that answers everything with one page, until the test ends.
pub(crate) fn of_one_page(page: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap_or(0) == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            let length = page.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{page}"
            );
        }
    });
    address
}

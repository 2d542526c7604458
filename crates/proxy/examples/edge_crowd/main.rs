//! Both sides of an edge, for `cargo xtask soak --edge` and `cargo xtask bench reloads`: an application for it to stand in
//! front of, and clients that come and go over HTTP/1.1, HTTP/2 and HTTP/3.
//!
//! `edge_crowd upstream ADDRESS:PORT` prints `listening ADDRESS:PORT` and serves until it is killed.
//!
//! `edge_crowd clients CA ADDRESS:PORT tcp|quic CONNECTIONS AT_ONCE SEED` prints a line `failed VERSION CONDUCT STEP BEGAN ENDED
//! WHY` for each client that did not get what it came for (times in milliseconds since 1970), and at the end `did VERSION
//! CONDUCT COUNT` for those that did, and `requests COUNT`.
//!
//! `edge_crowd rate CA ADDRESS:PORT h2|h3 PATH BYTES CONNECTIONS RATE SECONDS` prints `began` when it has its connections, and at
//! the end a line for each count (times in microseconds), and `failed COUNT WHY` for each way to fail.
//!
//! `edge_crowd give-up|listen|talk|slow CA ADDRESS:PORT NUMBER`, for `cargo xtask hostile`: see `lasting.rs` and `slow.rs`.

#![expect(clippy::disallowed_methods, reason = "a program tells when its requests failed")]

mod clients;
mod conduct;
mod connection;
mod lasting;
mod rate;
mod slow;
mod upstream;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// The byte at an offset of everything that is sent here: a part at the wrong place is seen.
const fn content_at(offset: u64) -> u8 {
    (offset ^ offset >> 8 ^ offset >> 16) as u8
}

/// Bytes from `start` to `end`.
fn content(start: u64, end: u64) -> Vec<u8> {
    (start..end).map(content_at).collect()
}

/// Offset behind `bytes`, which should begin at `offset`.
///
/// # Errors
/// A byte is not what it should be.
fn check(bytes: &[u8], offset: u64) -> Result<u64> {
    for (at, byte) in (offset..).zip(bytes) {
        if *byte != content_at(at) {
            return Err(format!("WRONG byte at {at}").into());
        }
    }
    Ok(offset + bytes.len() as u64)
}

/// An error and its causes.
fn whole(error: &(dyn std::error::Error + 'static)) -> String {
    let mut causes = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    causes.join(": ")
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["upstream", address] => upstream::run(address.parse()?).await,
        ["clients", ca, address, way, connections, at_once, seed] => {
            let place = connection::Place::new(ca, address.parse()?)?;
            let crowd = clients::Crowd {
                over_quic: way == "quic",
                connections: connections.parse()?,
                at_once: at_once.parse()?,
                seed: seed.parse()?,
            };
            crowd.run(place).await
        }
        ["rate", ca, address, way, path, bytes, connections, rate, seconds] => {
            let load = rate::Load {
                way: if way == "h2" { connection::Way::Http2 } else { connection::Way::Http3 },
                path: path.to_owned(),
                bytes: bytes.parse()?,
                connections: connections.parse()?,
                rate: rate.parse()?,
                seconds: seconds.parse()?,
            };
            load.run(connection::Place::new(ca, address.parse()?)?).await
        }
        ["give-up", ca, address, _] => lasting::give_up(&connection::Place::new(ca, address.parse()?)?).await,
        ["listen", ca, address, seconds] => {
            let place = connection::Place::new(ca, address.parse()?)?;
            Box::pin(lasting::listen(place, seconds.parse()?)).await
        }
        ["talk", ca, address, bytes] => {
            lasting::talk(&connection::Place::new(ca, address.parse()?)?, bytes.parse()?).await
        }
        ["slow", ca, address, seconds] => {
            slow::run(&connection::Place::new(ca, address.parse()?)?, seconds.parse()?).await
        }
        _ => Err("usage: edge_crowd upstream|clients|rate|give-up ..., and see its first lines".into()),
    }
}

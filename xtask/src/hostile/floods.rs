//! Floods from addresses that are not their senders'. Loopback lets one process have many.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Figure;
use super::path::initial;
use super::scene::{Reader, Scene, Served};
use crate::Result;

/// Addresses that the flood comes from.
const ADDRESSES: u8 = 16;
/// Bytes of a client's first datagram (RFC 9000 section 14.1).
const FULL: usize = 1200;
/// Datagrams in a second.
const RATE: u32 = 20_000;
/// What one pause is good for.
const BURST: u32 = 100;

/// First packets of real clients, as they leave them, and packets that only look like some.
pub(super) fn initials(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let served = scene.serve(&[])?;
    let (real, forged) = if is_short { (40, 60_000) } else { (400, 1_000_000) };
    let real = first_datagrams(scene, &served, real)?;
    let before = served.running.resident_bytes()?;
    let sockets: Vec<UdpSocket> = (2..2 + ADDRESSES).map(socket).collect::<Result<_>>()?;
    let work = || Ok(flood(&sockets, served.address, &real, forged));
    let (flooded, live) = scene.live_during(&served, work)?;
    let resident = served.running.resident_bytes()?;
    // Probes of the handshakes that nobody goes on with.
    std::thread::sleep(Duration::from_secs(3));
    let received = flooded.received + sockets.iter().map(drain).sum::<u64>();
    let factor = received as f64 / flooded.bytes as f64;
    if received > 3 * flooded.bytes {
        return Err(format!("{received} bytes came for {}", flooded.bytes).into());
    }
    let mut figures = vec![
        ("real first datagrams", real.len() as f64, ""),
        ("forged", f64::from(forged), ""),
        ("in", flooded.took.as_secs_f64(), "s"),
        ("bytes back per byte", factor, ""),
        ("memory before", before as f64 / 1e6, "MB"),
        ("memory", resident as f64 / 1e6, "MB"),
    ];
    figures.extend(live.figures());
    Ok(figures)
}

/// Real clients of one address, all at once, whom no answer reaches.
pub(super) fn handshakes(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let served = scene.serve(&[])?;
    let (connections, seconds) = if is_short { ("1500", 6) } else { ("5200", 30) };
    let (front, back) = (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, socket(2)?);
    front.set_read_timeout(Some(Duration::from_millis(10)))?;
    let mut crowd = Command::new(scene.clients.join("crowd"));
    crowd.args(["--ca", &served.certificate, "--connect", &front.local_addr()?.to_string()]);
    crowd.args(["--connections", connections, "--handshakes", connections]);
    let (mut sent, mut received, mut flights) = (0, 0, BTreeSet::new());
    let ((), live) = scene.live_during(&served, || {
        let _crowd = Reader(crowd.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let (began, mut buffer) = (Instant::now(), [0; 2048]);
        while began.elapsed() < Duration::from_secs(seconds) {
            let Ok((length, _)) = front.recv_from(&mut buffer) else { continue };
            let datagram = buffer.get(..length).unwrap_or_default();
            flights.extend(initial(datagram).map(|[_, source]| source.to_vec()));
            sent += back.send_to(datagram, served.address).unwrap_or(0) as u64;
            received += drain(&back);
        }
        Ok(())
    })?;
    if received > 3 * sent {
        return Err(format!("{received} bytes came for {sent}").into());
    }
    if flights.len() < 600 {
        return Err(format!("{} clients are no crowd", flights.len()).into());
    }
    let mut figures = vec![("handshakes begun", flights.len() as f64, ""), ("in", seconds as f64, "s")];
    figures.extend(live.figures());
    Ok(figures)
}

fn socket(host: u8) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, host), 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The first datagrams of so many clients, caught before they reach the server.
fn first_datagrams(scene: &Scene, served: &Served, count: usize) -> Result<Vec<Vec<u8>>> {
    let catcher = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    catcher.set_read_timeout(Some(Duration::from_secs(10)))?;
    let address = catcher.local_addr()?;
    let mut buffer = [0; 2048];
    let mut caught = Vec::new();
    while caught.len() < count {
        let client = Reader(scene.get_at(served, address, "small").stdout(Stdio::null()).spawn()?);
        let (length, from) = catcher.recv_from(&mut buffer)?;
        caught.push(buffer.get(..length).unwrap_or_default().to_vec());
        drop(client);
        // What else it has sent.
        catcher.set_nonblocking(true)?;
        while catcher.recv_from(&mut buffer).is_ok_and(|(_, also)| also == from) {}
        catcher.set_nonblocking(false)?;
    }
    Ok(caught)
}

struct Flooded {
    bytes: u64,
    received: u64,
    took: Duration,
}

fn flood(sockets: &[UdpSocket], server: SocketAddr, real: &[Vec<u8>], forged: u32) -> Flooded {
    let began = Instant::now();
    let mut flooded = Flooded { bytes: 0, received: 0, took: Duration::ZERO };
    let mut send = |index: usize, datagram: &[u8]| {
        if let Some(socket) = sockets.get(index % sockets.len().max(1)) {
            // A full buffer drops it, as a network would.
            flooded.bytes += socket.send_to(datagram, server).unwrap_or(0) as u64;
        }
    };
    for (index, datagram) in real.iter().enumerate() {
        send(index, datagram);
    }
    let mut state = 1_u64;
    for index in 0..forged {
        let datagram = look_alike(&mut state);
        send(index as usize, &datagram);
        if index % BURST == 0 {
            let due = Duration::from_secs(1) * index / RATE;
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
    flooded.took = began.elapsed();
    flooded.received = sockets.iter().map(drain).sum();
    flooded
}

/// A datagram with the header of version 1's Initial, and nothing that opens.
fn look_alike(state: &mut u64) -> [u8; FULL] {
    let mut datagram = [0; FULL];
    for chunk in datagram.chunks_mut(8) {
        // xorshift64*, which is random enough for noise.
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        let noise = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        chunk.copy_from_slice(noise.get(..chunk.len()).unwrap_or_default());
    }
    // First byte, version, ID of 8 bytes, ID of none, token of none, and the length of the rest.
    datagram[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
    datagram[14..16].copy_from_slice(&[0, 0]);
    let rest = (FULL - 18) as u16;
    datagram[16..18].copy_from_slice(&(0x4000 | rest).to_be_bytes());
    datagram
}

fn drain(socket: &UdpSocket) -> u64 {
    let mut buffer = vec![0; 65_536];
    let mut bytes = 0;
    while let Ok(length) = socket.recv(&mut buffer) {
        bytes += length as u64;
    }
    bytes
}

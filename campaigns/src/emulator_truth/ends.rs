//! The two ends of a measurement, as processes: kernel TCP with TLS's and HTTP's flights, but without their contents.
//! Or, of programs by others, ping and iperf3.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use posthaste_units::ByteCount;
use serde_json::Value;

use crate::Result;

/// TCP and UDP port of the server.
const PORT: u16 = 7_100;

/// The flights of the lab's model of TLS (`lab-tcp/handshake.rs`), in bytes.
const CLIENT_HELLO: usize = 240;
const SERVER_FLIGHT: usize = 592;
/// The client's `Finished`, and a record with a request.
const CLIENT_FINISHED: usize = 80 + 22 + 100;
/// Most content of a record, and what the record adds.
const RECORD: u64 = 16_384;
const RECORD_OVERHEAD: u64 = 22;

/// Datagrams in lockstep.
const PINGS: usize = 20;

/// The server makes this file in the folder of both ends when it can be asked. A packet to find that out would take the
/// fate that the path has for the first packet of the connection.
const LISTENING: &str = "listening";

/// Nothing takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of `cargo campaigns emulator-end`, which `emulator-truth` starts.
#[derive(Debug, Args)]
pub(crate) struct End {
    role: Role,
    /// Bytes that the server sends
    #[arg(long)]
    object: ByteCount,
    /// The server's congestion control
    #[arg(long)]
    controller: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    Server,
    Client,
    Witness,
}

/// The far end of [`Role::Witness`], as a shell command.
pub(super) const WITNESS_SERVER: &str = "exec iperf3 --server >/dev/null";

/// Plays the role.
pub(crate) fn play(end: &End) -> Result<bool> {
    match end.role {
        Role::Server => serve(end)?,
        Role::Client => fetch(end)?,
        Role::Witness => witness(end)?,
    }
    Ok(true)
}

/// What the object takes on TCP, in records.
fn bytes_on_tcp(object: ByteCount) -> u64 {
    object.get() + object.get().div_ceil(RECORD) * RECORD_OVERHEAD
}

fn serve(end: &End) -> Result<()> {
    // A run may not begin with what the one before has learned.
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    let controller = std::ffi::OsString::from(&end.controller);
    nix::sys::socket::setsockopt(&listener, nix::sys::socket::sockopt::TcpCongestion, &controller)
        .map_err(|error| format!("the kernel has no {}: {error}", end.controller))?;
    let echo = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..length], from);
        }
    });
    std::fs::write(LISTENING, "")?;
    let (mut client, _) = listener.accept()?;
    client.set_nodelay(true)?;
    take(&mut client, CLIENT_HELLO as u64)?;
    client.write_all(&[0; SERVER_FLIGHT])?;
    take(&mut client, CLIENT_FINISHED as u64)?;
    let mut left = bytes_on_tcp(end.object);
    let zeros = vec![0; 1 << 16];
    while left > 0 {
        let now = left.min(zeros.len() as u64);
        client.write_all(&zeros[..now as usize])?;
        left -= now;
    }
    // The client closes first, and the run ends this process.
    let _ = client.read(&mut [0]);
    std::thread::sleep(PATIENCE);
    Ok(())
}

fn fetch(end: &End) -> Result<()> {
    let far: Ipv4Addr = std::env::var("POSTHASTE_FAR")?.parse()?;
    let far = SocketAddr::from((far, PORT));
    let waits = Instant::now();
    while !Path::new(LISTENING).exists() {
        if waits.elapsed() > PATIENCE {
            return Err("the server does not start".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    let mut server = TcpStream::connect(far)?;
    server.set_nodelay(true)?;
    server.write_all(&[0; CLIENT_HELLO])?;
    take(&mut server, SERVER_FLIGHT as u64)?;
    server.write_all(&[0; CLIENT_FINISHED])?;
    take(&mut server, bytes_on_tcp(end.object))?;
    println!("seconds {}", began.elapsed().as_secs_f64());
    ping(far)
}

/// Prints what ping and iperf3 say: round trips, and how long the object takes at the rate of its download.
fn witness(end: &End) -> Result<()> {
    let far = std::env::var("POSTHASTE_FAR")?;
    let ping = Command::new("ping").args(["-n", "-i", "0.02", "-c", &PINGS.to_string(), &far]).output()?;
    let said = String::from_utf8(ping.stdout)?;
    let times = said.split("time=").skip(1).filter_map(|text| text.split_whitespace().next());
    for time in times {
        println!("rtt {}", time.parse::<f64>()? / 1e3);
    }
    // In small blocks: it counts whole ones.
    let object = end.object.get();
    let bytes = object.to_string();
    let began = Instant::now();
    loop {
        let arguments = ["--client", &far, "--reverse", "--json", "--length", "8K", "--bytes", &bytes];
        let output =
            Command::new("iperf3").args(arguments).args(["--congestion", &end.controller]).output()?;
        let report: Value = serde_json::from_slice(&output.stdout)?;
        match report["end"]["sum_received"]["bits_per_second"].as_f64() {
            Some(rate) if output.status.success() => {
                println!("seconds {}", object as f64 * 8.0 / rate);
                return Ok(());
            }
            _ if began.elapsed() > PATIENCE => return Err(format!("iperf3: {}", report["error"]).into()),
            // Nobody listens yet.
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn take(from: &mut TcpStream, count: u64) -> Result<()> {
    from.set_read_timeout(Some(PATIENCE))?;
    let taken = std::io::copy(&mut from.take(count), &mut std::io::sink())?;
    if taken == count { Ok(()) } else { Err("the connection ended too early".into()) }
}

/// Prints the round trips of some datagrams.
fn ping(far: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(far)?;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    let first = Instant::now();
    let mut done = 0;
    while done < PINGS {
        if first.elapsed() > PATIENCE {
            return Err("the server does not answer".into());
        }
        // It may be lost.
        let mut answer = [0; 64];
        let began = Instant::now();
        let number = [done as u8; 36];
        match socket.send(&number).and_then(|_| socket.recv(&mut answer)) {
            Ok(length) if answer[..length] == number => {
                println!("rtt {}", began.elapsed().as_secs_f64());
                done += 1;
            }
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}

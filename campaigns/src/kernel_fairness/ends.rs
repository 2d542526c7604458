//! The two ends of a shared bottleneck, as processes: kernel TCP that sends without end, and who counts what arrives.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use serde::{Deserialize, Serialize};

use super::cells::{Contender, Rival};
use crate::Result;
use crate::emulated::await_server;

/// TCP port of the sender.
const PORT: u16 = 7_200;

/// What is served over HTTP/3: longer than any run.
pub(super) const FILE: &str = "endless";

/// The sender's start takes less.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes read or written at a time.
const BLOCK: usize = 1 << 18;

/// Of `cargo campaigns fairness-end`, which `kernel-fairness` starts.
#[derive(Debug, Args)]
pub(crate) struct End {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Sends over TCP to all who come, with the controller that they ask for
    Server,
    /// Downloads side by side
    Client(Client),
}

/// What the counting end is told.
#[derive(Debug, Args)]
struct Client {
    /// The `posthaste` to use
    #[arg(long)]
    program: PathBuf,
    /// Who meets the kernel's flows
    #[arg(long)]
    contender: Contender,
    /// The kernel's flows' controller
    #[arg(long)]
    rival: Rival,
    /// How many there are
    #[arg(long)]
    flows: usize,
    /// Seconds before anything is counted
    #[arg(long)]
    warm_up: f64,
    /// Seconds counted
    #[arg(long)]
    seconds: f64,
}

/// What was counted, in bits a second.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Shares {
    pub(super) contender: f64,
    pub(super) kernel: Vec<f64>,
}

/// Plays the role.
pub(crate) fn play(end: &End) -> Result<bool> {
    match &end.role {
        Role::Server => serve()?,
        Role::Client(client) => {
            let shares = client.compete()?;
            std::io::stdout().write_all(&serde_json::to_vec(&shares)?)?;
        }
    }
    Ok(true)
}

/// Sends zeros for ever. The first byte of a client says by which controller.
fn serve() -> Result<()> {
    // A run may not begin with what the one before has learned.
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    for client in listener.incoming() {
        let mut client = client?;
        std::thread::spawn(move || {
            let mut wish = [0];
            if client.read_exact(&mut wish).is_err() {
                return;
            }
            let Some(rival) = Rival::from_byte(wish[0]) else { return };
            if let Err(error) = setsockopt(&client, TcpCongestion, &rival.name().into()) {
                eprintln!("the kernel has no {}: {error}", rival.name());
                return;
            }
            let zeros = vec![0; BLOCK];
            while client.write_all(&zeros).is_ok() {}
        });
    }
    Ok(())
}

/// A flow's bytes so far, and whether it still goes on.
#[derive(Clone, Default)]
struct Counter {
    bytes: Arc<AtomicU64>,
    ends: Arc<AtomicU64>,
}

impl Counter {
    /// Counts what comes, in a thread.
    fn count(&self, mut from: impl Read + Send + 'static) {
        let counter = self.clone();
        std::thread::spawn(move || {
            let mut buffer = vec![0; BLOCK];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                counter.bytes.fetch_add(count as u64, Ordering::Relaxed);
            }
            counter.ends.fetch_add(1, Ordering::Relaxed);
        });
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed) > 0
    }
}

impl Client {
    fn compete(&self) -> Result<Shares> {
        let far: Ipv4Addr = std::env::var("POSTHASTE_FAR")?.parse()?;
        let far = SocketAddr::from((far, PORT));
        // All connections stand before the first byte is asked for.
        let sockets = (0..self.flows).map(|_| connect(far)).collect::<Result<Vec<_>>>()?;
        let counters: Vec<Counter> = (0..=self.flows).map(|_| Counter::default()).collect();
        match &self.contender {
            Contender::Profile(profile) => {
                let url = await_server(FILE)?;
                let mut command = Command::new(&self.program);
                command.args(["get", "--insecure", "--profile", profile, "-o", "-", &url]);
                command.stdin(Stdio::null()).stdout(Stdio::piped());
                // It ends with this process: nobody reads its output then, and the emulator ends what is left.
                let stdout = command.spawn()?.stdout.take().ok_or("get has no stdout")?;
                counters[self.flows].count(stdout);
            }
            Contender::Kernel(controller) => counters[self.flows].count(ask(connect(far)?, *controller)?),
        }
        for (socket, counter) in sockets.into_iter().zip(&counters) {
            counter.count(ask(socket, self.rival)?);
        }
        std::thread::sleep(Duration::from_secs_f64(self.warm_up));
        let (began, before) = (Instant::now(), counters.iter().map(Counter::bytes).collect::<Vec<_>>());
        std::thread::sleep(Duration::from_secs_f64(self.seconds));
        let (seconds, after) =
            (began.elapsed().as_secs_f64(), counters.iter().map(Counter::bytes).collect::<Vec<_>>());
        if counters.iter().any(Counter::has_ended) {
            return Err("a download ended before its time".into());
        }
        let mut rates: Vec<f64> = before
            .iter()
            .zip(&after)
            .map(|(before, after)| (after - before) as f64 * 8.0 / seconds)
            .collect();
        let contender = rates.pop().ok_or("nobody downloaded")?;
        Ok(Shares { contender, kernel: rates })
    }
}

fn connect(far: SocketAddr) -> Result<TcpStream> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(far) {
            Ok(stream) => return Ok(stream),
            Err(error) if began.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn ask(mut stream: TcpStream, controller: Rival) -> Result<TcpStream> {
    stream.write_all(&[controller.to_byte()])?;
    Ok(stream)
}

//! Inside the paths: `posthaste get`, and who reads what it writes.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use clap::Args;
use sha2::{Digest, Sha256};

use super::{Download, FILE};
use crate::Result;
use crate::emulated::await_server;

/// Where `get` leaves a trace of each connection.
const TRACES: &str = "traces";

/// Of `cargo campaigns migration-end`, which `migration` starts.
#[derive(Debug, Args)]
pub(crate) struct End {
    /// The `posthaste` to use
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
}

/// Downloads the file and prints what came when.
pub(crate) fn play(end: &End) -> Result<bool> {
    let url = await_server(FILE)?;
    let mut command = Command::new(&end.program);
    command.args(["get", "--insecure", "--profile", "standard", "--qlog", TRACES, "-o", "-", &url]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut stdout = child.stdout.take().ok_or("get has no stdout")?;
    let (mut hash, mut total, mut reads) = (Sha256::new(), 0_u64, Vec::new());
    let mut buffer = vec![0; 1 << 18];
    loop {
        let count = stdout.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        total += count as u64;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        reads.push((now.as_secs_f64(), total));
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("get ended with {status} after {total} bytes").into());
    }
    let connections = std::fs::read_dir(TRACES)?.count();
    let download = Download { reads, sha256: format!("{:x}", hash.finalize()), connections };
    std::io::stdout().write_all(&serde_json::to_vec(&download)?)?;
    Ok(true)
}

//! Whether servers listen, asked of the kernel: a packet to find out would be the first on the path.

use std::time::{Duration, Instant};

use nix::unistd::{Pid, getppid};

use crate::command::page::protocol::Protocol;

/// A server may take so long to start.
const PATIENCE: Duration = Duration::from_secs(60);

const TICK: Duration = Duration::from_millis(10);

/// State of a TCP socket that listens, and of a UDP socket that is bound, in `/proc/net`.
const LISTENING: &str = "0A";
const BOUND: &str = "07";

/// Waits until the far end listens on all ports. The far end's namespace is that of this process's parent.
pub(super) fn wait(protocol: Protocol, ports: &[u16]) -> Result<(), String> {
    let (table, state) = match protocol {
        Protocol::H3 => ("udp", BOUND),
        Protocol::H2 | Protocol::H1 => ("tcp", LISTENING),
    };
    let parent = getppid();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = tables(parent, table)?;
        let Some(missing) = ports.iter().find(|&&port| !has(&text, port, state)) else { return Ok(()) };
        if Instant::now() > deadline {
            return Err(format!(
                "no server listens on {table} port {missing} after {} s",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(TICK);
    }
}

/// Sockets of both address families.
fn tables(process: Pid, table: &str) -> Result<String, String> {
    let file = format!("/proc/{process}/net/{table}");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    // A system without IPv6 has no second table.
    Ok(text + &std::fs::read_to_string(format!("{file}6")).unwrap_or_default())
}

/// True if a line has this local port and state: `sl local_address rem_address st ...`, in hexadecimal.
fn has(table: &str, port: u16, state: &str) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some(state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_counts_only_in_the_right_state() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
                     0: 00000000:1151 00000000:0000 0A 00000000:00000000\n   \
                     1: 0100007F:1152 0100007F:9C40 01 00000000:00000000\n";
        assert!(has(table, 4433, LISTENING));
        assert!(!has(table, 4433, BOUND), "another state");
        assert!(!has(table, 4434, LISTENING), "connected");
        assert!(!has(table, 443, LISTENING));
    }

    #[test]
    fn the_kernel_tells_of_a_socket_of_this_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(has(&tables(nix::unistd::getpid(), "tcp").unwrap(), port, LISTENING));
        drop(listener);
        assert!(!has(&tables(nix::unistd::getpid(), "tcp").unwrap(), port, LISTENING));
    }
}

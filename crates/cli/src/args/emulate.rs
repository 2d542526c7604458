//! `posthaste emulate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Run a command behind an emulated path.
///
/// COMMAND runs in its own network namespace. Its only way out is the emulated path, in real time, which ends at this
/// machine; COMMAND finds the address of that far end in $POSTHASTE_FAR. Any program works: browsers, servers, kernel
/// TCP, or a shell that starts more programs. IPv4 only.
///
/// The lateness of packets and unintended drops by the interfaces are counted and printed. A run in which the machine
/// distorted the path is void: the report says so, and the exit code is 125.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste emulate --path lte -- bash                          a shell; try ping $POSTHASTE_FAR
  posthaste emulate --path bad --far 'posthaste serve . --listen 0.0.0.0:4433' -- \\
      sh -c 'posthaste get --insecure https://$POSTHASTE_FAR:4433/file -o file'
  posthaste emulate --down rate=20mbit,delay=25ms,queue=100ms --up rate=5mbit,delay=25ms -- ./client
  posthaste emulate --path wifi-trace --and lte-trace --leave-after 5 -- ./client       from Wi-Fi to LTE during the run
  posthaste emulate --path average -- posthaste emulate --down delay=50ms -- bash     two paths in a row

A path file (--path ./mine.toml; docs/guide/emulate.md has all keys, units and ranges):
  base = \"lte\"                                       a name; without this line, a perfect link
  rtt = \"80ms\"
  rate = \"20mbit\"
  up-rate = \"5mbit\"
  loss = \"1%\"
  jitter = { std = \"5ms\" }                           standard deviation of the round trip
  reorder = { probability = \"1%\", delay = \"4ms\" }
  queue = \"200ms\"

Keys of a direction: rate, rate-std, rate-interval, trace-file, trace-start, loss, burst, burst-time, duplicate,
corrupt, tti, batch, queue, discipline (drop-tail, codel), codel-target, codel-interval, ecn, mark-above, header as in a
path file; delay and jitter (one way); jitter-distribution (normal, pareto, wifi), jitter-interval, jitter-reorders; reorder, reorder-delay, reorder-correlation.
As root, the path ends in the caller's network namespace, so servers must listen on 0.0.0.0 or on $POSTHASTE_FAR.
Without root (user namespaces must be permitted) it ends in an empty namespace: start servers with --far.
COMMAND handles Ctrl-C itself; a SIGINT that does not come from the terminal is passed on to it. When COMMAND ends, all
processes that it started are ended and all interfaces are removed.
Exit code: that of COMMAND; 128 plus the signal that ended COMMAND; 125 if the run is void; 126 or 127 if COMMAND cannot
be run; 1 if the path cannot be set up; 2 for a usage error.")]
pub(crate) struct Emulate {
    /// Path: a name, or a TOML file [names: good, average, bad, lte, wifi, lte-trace, wifi-trace, lte-tti,
    /// wifi-aggregated, wifi-jitter, thin-uplink, 5g-trace, starlink]
    /// [default: average; a perfect link with --down or --up]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) path: Option<String>,

    /// Second path into the same namespace, used when the first is down: a name, or a TOML file. The interfaces are
    /// `posthaste` and `posthaste-2nd`; take one down with `ip link set posthaste down`, or use --leave-after
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) and: Option<String>,

    /// Take the first path down this many seconds after its first packet
    #[arg(long, value_name = "SECONDS", requires = "and", value_parser = super::seconds)]
    pub(crate) leave_after: Option<Duration>,

    /// Changes for the direction towards COMMAND, such as rate=20mbit,delay=25ms,loss=1%,queue=1bdp
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub(crate) down: Vec<String>,

    /// Changes for the direction away from COMMAND
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub(crate) up: Vec<String>,

    /// Interfaces at the ends of the path [default: tun if /dev/net/tun can be opened, else veth]
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) device: Option<Device>,

    /// Seed of all random events, such as losses and jitter
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Shell command to run at the far end until the run ends; may be repeated
    #[arg(long, value_name = "SHELL COMMAND")]
    pub(crate) far: Vec<String>,

    /// End the path in an empty network namespace even as root
    #[arg(long)]
    pub(crate) isolate: bool,

    /// Write a CSV line for each packet: arrival and outcome
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// Write the counters as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Where to show rate, queue and drops during the run
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Meter::Auto)]
    pub(crate) meter: Meter,

    /// Print only problems on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Program and arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// Interfaces at the ends of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Device {
    /// TUN devices; they need /dev/net/tun
    Tun,
    /// Pairs of virtual Ethernet interfaces with `AF_PACKET` sockets; they need no device file
    Veth,
}

/// Place of the meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Meter {
    /// A line of the terminal; its title if COMMAND uses the terminal too; nowhere without a terminal
    Auto,
    /// A line of stderr
    Line,
    /// The title of the terminal
    Title,
    /// Nowhere
    None,
}

/// Arguments of the hidden command by which `emulate` starts COMMAND.
#[derive(Debug, clap::Args)]
pub(crate) struct EmulateInside {
    /// The process that must live
    #[arg(long)]
    pub(crate) parent: u32,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

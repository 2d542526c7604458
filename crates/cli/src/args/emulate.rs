//! `posthaste emulate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Run a command behind an emulated path.
///
/// COMMAND runs in a network namespace of its own. Its only way out leads through the path, in real time, to the
/// machine that it was started on, whose address it finds in $POSTHASTE_FAR. Any program will do: browsers, servers,
/// kernel TCP, or a shell in which more are started. IPv4 only.
///
/// How late packets left the path, and how many an interface dropped without being asked to, is counted and printed.
/// A run that shows the machine instead of the path is void: it says so, and its exit code is 125.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste emulate --path lte -- bash                          look around: ping $POSTHASTE_FAR
  posthaste emulate --path bad --far 'posthaste serve . --listen 0.0.0.0:4433' -- \\
      sh -c 'posthaste get --insecure https://$POSTHASTE_FAR:4433/file -o file'
  posthaste emulate --down rate=20mbit,delay=25ms,queue=100ms --up rate=5mbit,delay=25ms -- ./client
  posthaste emulate --path wifi-trace --and lte-trace --leave-after 5 -- ./client       from Wi-Fi to LTE, on the way
  posthaste emulate --path average -- posthaste emulate --down delay=50ms -- bash     one path after the other

A path file (--path ./mine.toml; docs/emulator.md has all keys, their units and ranges):
  base = \"lte\"                                       a name, or a perfect wire without this line
  rtt = \"80ms\"
  rate = \"20mbit\"
  up-rate = \"5mbit\"
  loss = \"1%\"
  jitter = { std = \"5ms\" }                           of the round trip
  reorder = { probability = \"1%\", delay = \"4ms\" }
  queue = \"200ms\"

A direction's keys: rate, rate-std, rate-interval, trace-file, loss, burst, duplicate, corrupt, queue, discipline
(drop-tail, codel), codel-target, codel-interval, ecn, mark-above, header as in a path file; delay and jitter, one way;
jitter-distribution (normal, pareto), jitter-interval, jitter-reorders; reorder, reorder-delay, reorder-correlation.
As root the path leads into the network namespace that it is started in, so servers must listen on 0.0.0.0 or on
$POSTHASTE_FAR. Without root (user namespaces must be permitted) it leads into an empty one: start servers with --far.
Ctrl-C is COMMAND's affair; a SIGINT that no terminal has sent is passed on to it. When COMMAND ends, everything that
it started is ended, and all interfaces are gone.
Exit code: COMMAND's; 128 and the signal if one ended it; 125 if the run is void; 126 or 127 if COMMAND cannot be run;
1 if there can be no path; 2 if it is used wrongly.")]
pub(crate) struct Emulate {
    /// The path: a name, or a TOML file [names: good, average, bad, lte, wifi, lte-trace, wifi-trace]
    /// [default: average; a perfect wire if a direction is described]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) path: Option<String>,

    /// A second path into the same namespace, taken when the first one is down: a name, or a TOML file. The interfaces
    /// are `posthaste` and `posthaste-2nd`; take them down with `ip link set posthaste down`, or with --leave-after
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) and: Option<String>,

    /// Take the first path down so many seconds after the first packet that it has brought
    #[arg(long, value_name = "SECONDS", requires = "and", value_parser = super::seconds)]
    pub(crate) leave_after: Option<Duration>,

    /// What is different towards COMMAND, such as rate=20mbit,delay=25ms,loss=1%,queue=1bdp
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub(crate) down: Vec<String>,

    /// What is different away from COMMAND
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub(crate) up: Vec<String>,

    /// What is at both ends of the path [default: tun where /dev/net/tun may be opened, else veth]
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) device: Option<Device>,

    /// Seed of losses, jitter and whatever else is drawn
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// A shell command for the far end, ended with the run; can be given several times
    #[arg(long, value_name = "SHELL COMMAND")]
    pub(crate) far: Vec<String>,

    /// Lead into an empty network namespace even where the machine's own could be reached
    #[arg(long)]
    pub(crate) isolate: bool,

    /// Write a line for each packet's arrival and fate, in CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// Write what was counted, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Where rate, queue and drops are shown while it runs; in the title if COMMAND writes to the terminal, too
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Meter::Auto)]
    pub(crate) meter: Meter,

    /// Say nothing on stderr unless something is wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// What is at the ends of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Device {
    /// TUN devices: they take /dev/net/tun
    Tun,
    /// Pairs of virtual Ethernet interfaces with `AF_PACKET` sockets at their ends: they take no device file
    Veth,
}

/// Where the meter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Meter {
    /// On a line of a terminal, in its title, or nowhere
    Auto,
    /// On a line of stderr
    Line,
    /// In the terminal's title
    Title,
    /// Nowhere
    None,
}

/// What `emulate` starts COMMAND by.
#[derive(Debug, clap::Args)]
pub(crate) struct EmulateInside {
    /// The process that must live
    #[arg(long)]
    pub(crate) parent: u32,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

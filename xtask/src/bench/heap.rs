//! What the heap of an idle connection consists of, and what is left of one that is gone: where the blocks were allocated, by
//! valgrind's massif.

use std::collections::BTreeMap;
use std::path::Path;
use std::process;

use crate::Result;
use crate::workspace::{cargo, run as run_command, target};

/// Connections of the two runs: their difference has no part of what an endpoint needs once.
const CONNECTIONS: [u64; 2] = [50, 250];

/// Lines of a table.
const LINES: usize = 25;

/// What is looked at, by the names of `crates/http/examples/work.rs`.
const WORKS: [(&str, &str); 3] = [
    ("idle", "of both ends of one connection over QUIC"),
    ("idle_http", "the same with an HTTP/3 server, whose client knows nothing of HTTP/3"),
    ("gone", "left of a connection over QUIC that has been closed"),
];

/// What names code that is not the standard library's.
const NAMES: [&str; 4] = ["posthaste_", "rustls", "aws_lc", "tokio"];

/// Bytes by the place that allocated them.
type Places = BTreeMap<String, u64>;

/// Prints where the heap of both ends of an idle connection comes from, and what is left of it.
pub(super) fn run() -> Result<bool> {
    eprintln!("building");
    let example = ["build", "--quiet", "--release", "--package", "posthaste-http", "--example", "work"];
    run_command(cargo().args(example))?;
    let program = target().join("release/examples/work");
    let folder = tempfile::tempdir()?;
    let [few, many] = CONNECTIONS;
    println!("{:>14}  allocated by", "bytes of heap");
    for (work, text) in WORKS {
        let before = measure(&program, work, few, folder.path())?;
        let after = measure(&program, work, many, folder.path())?;
        let rows = per_connection(&before, &after, many - few);
        println!("\n{:>14}  all, {text}", rows.iter().map(|(bytes, _)| bytes).sum::<u64>());
        for (bytes, place) in rows.iter().take(LINES) {
            println!("{bytes:>14}  {place}");
        }
    }
    Ok(true)
}

/// What a connection adds at each place, the largest first.
fn per_connection(before: &Places, after: &Places, connections: u64) -> Vec<(u64, String)> {
    let grown = |(place, bytes): (&String, &u64)| {
        let more = bytes.saturating_sub(before.get(place).copied().unwrap_or(0)) / connections;
        (more > 0).then(|| (more, place.clone()))
    };
    let mut rows: Vec<_> = after.iter().filter_map(grown).collect();
    rows.sort_by(|one, other| other.cmp(one));
    rows
}

fn measure(program: &Path, work: &str, connections: u64, folder: &Path) -> Result<Places> {
    let file = folder.join(format!("{work}-{connections}"));
    let mut command = process::Command::new("valgrind");
    command.args(["--tool=massif", "--threshold=0", "--max-snapshots=10", "--depth=25"]);
    command.arg(format!("--massif-out-file={}", file.display())).arg(program);
    let output = command.args([work, &connections.to_string()]).output();
    let output = output.map_err(|error| format!("valgrind: {error}; install it to see the heap"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{} ended with {}: {text}", program.display(), output.status).into());
    }
    let text = std::fs::read_to_string(&file)?;
    Ok(places(peak(&text).ok_or("massif wrote no peak")?))
}

/// The tree of the snapshot at the peak.
fn peak(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("heap_tree=peak\n")?;
    Some(rest.split("#-----------").next().unwrap_or(rest))
}

/// Sums a tree's leaves by the frame nearest to the allocation that is not the standard library's. A line is
/// `n<children>: <bytes> <frame>`, with a space of indentation for each level.
fn places(tree: &str) -> Places {
    let lines = tree.lines().filter_map(|line| {
        let node = line.trim_start();
        let (children, rest) = node.strip_prefix('n')?.split_once(": ")?;
        let (bytes, frame) = rest.split_once(' ')?;
        Some((line.len() - node.len(), children.parse::<u32>().ok()?, bytes.parse::<u64>().ok()?, frame))
    });
    let (mut places, mut path) = (Places::new(), Vec::new());
    for (depth, children, bytes, frame) in lines {
        path.truncate(depth);
        path.push(frame);
        if children == 0 {
            let named = path.iter().find(|frame| NAMES.iter().any(|name| frame.contains(name)));
            let frame = named.or(path.last()).copied().unwrap_or_default();
            let place = frame.split_once(": ").map_or(frame, |(_, place)| place);
            *places.entry(place.to_owned()).or_default() += bytes;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
#-----------
snapshot=3
heap_tree=peak
n2: 900 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n1: 600 0x1: alloc (library/alloc/src/alloc.rs:95)
  n2: 600 0x2: new<posthaste_transport::Connection> (boxed.rs:286)
   n0: 400 0x3: main (main.rs:1)
   n0: 200 0x4: main (main.rs:2)
 n0: 300 in 7 places, all below massif's threshold
#-----------
snapshot=4
heap_tree=empty
";

    #[test]
    fn bytes_are_summed_by_the_frame_nearest_to_the_allocation_that_has_a_name() {
        let places = places(peak(TEXT).unwrap());
        let expected = [
            ("in 7 places, all below massif's threshold".to_owned(), 300),
            ("new<posthaste_transport::Connection> (boxed.rs:286)".to_owned(), 600),
        ];
        assert_eq!(places, Places::from(expected));
        let more = places.iter().map(|(place, bytes)| (place.clone(), bytes * 3)).collect();
        let rows = per_connection(&places, &more, 4);
        assert_eq!(rows.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>(), [300, 150]);
    }
}

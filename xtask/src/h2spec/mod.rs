//! `cargo xtask h2spec`: a client that breaks HTTP/2 in every way it knows, against `posthaste edge --to`.

mod report;
mod upstream;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::identity::Identity;
use crate::interop::application::port;
use crate::interop::cell::START_TIMEOUT;
use crate::process::Running;
use crate::workspace::{build_posthaste_debug, root, run as run_to_end};
use report::Case;
use upstream::Upstream;

/// Cases of the pinned version with `--strict`. Fewer mean that the run did not come to its end.
const CASES: usize = 146;

/// Seconds that a case waits for the right answer; a server without faults needs none of it.
const CASE_TIMEOUT: &str = "30";

/// Bound for the whole run.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Runs all cases; true if each passes.
pub(crate) fn run() -> Result<bool> {
    let program = installed()?;
    let posthaste = build_posthaste_debug()?;
    let logs = root().join("artifacts/h2spec");
    if logs.exists() {
        fs::remove_dir_all(&logs)?;
    }
    fs::create_dir_all(&logs)?;
    let folder = tempfile::tempdir()?;
    let identity = Identity::create(folder.path())?;
    let upstream = Upstream::start()?;
    let mut command = Command::new(posthaste);
    command.args(["edge", "--json", "--no-access-log", "--listen", "127.0.0.1:0", "--domain", "localhost"]);
    command.arg("--to").arg(format!("http://{}", upstream.address));
    command.arg("--cert").arg(&identity.cert).arg("--key").arg(&identity.key);
    let mut edge = Running::spawn(&mut command, "edge", &logs)?;
    let port = edge.wait_for(START_TIMEOUT, port)?;

    let cases = test(&program, port, &logs)?;
    if !edge.is_running()? {
        return Err("the edge ended under the test; see artifacts/h2spec".into());
    }
    if cases.len() != CASES {
        return Err(format!("{} cases of {CASES} were run; see artifacts/h2spec", cases.len()).into());
    }
    let wrong: Vec<&Case> = cases.iter().filter(|case| !case.passed).collect();
    for case in &wrong {
        println!("FAILED    {} {}", case.section, case.name);
    }
    println!("{} of {} cases pass", cases.len() - wrong.len(), cases.len());
    if wrong.is_empty() {
        fs::remove_dir_all(&logs)?;
    } else {
        println!("what h2spec and the edge said is in artifacts/h2spec");
    }
    Ok(wrong.is_empty())
}

/// Builds it; `interop/h2spec` pins it and what it uses.
fn installed() -> Result<PathBuf> {
    let program = root().join("interop/bin/h2spec");
    let mut build = Command::new("go");
    build.current_dir(root().join("interop/h2spec"));
    build.args(["build", "-mod=readonly", "-o"]).arg(&program).arg("github.com/summerwind/h2spec/cmd/h2spec");
    run_to_end(&mut build)?;
    Ok(program)
}

/// One run of h2spec.
fn test(program: &Path, port: u16, logs: &Path) -> Result<Vec<Case>> {
    let junit = logs.join("junit.xml");
    let mut command = Command::new(program);
    command.args(["--strict", "--tls", "--insecure", "--host", "localhost", "--timeout", CASE_TIMEOUT]);
    command.args(["--port", &port.to_string(), "--junit-report"]).arg(&junit);
    let mut testing = Running::spawn(&mut command, "h2spec", logs)?;
    let status = testing.wait(TIMEOUT)?;
    let cases = report::parse(&fs::read_to_string(&junit)?);
    if status.success() != cases.iter().all(|case| case.passed) {
        return Err(format!("h2spec ended with {status}, which is not what its report says").into());
    }
    Ok(cases)
}

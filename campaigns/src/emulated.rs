//! What the commands that measure through `posthaste emulate` share.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use posthaste_campaign::emulated::Emulation;

use crate::Result;

/// Exit code of a run that shows the machine instead of the path.
pub(crate) const VOID: i32 = 125;

/// Port of `posthaste serve` at the far end.
pub(crate) const HTTPS: u16 = 4_433;

/// Where the far end's `posthaste serve` writes what it says.
pub(crate) const SERVER_OUTPUT: &str = "serve.out";

/// Where a run's report is, in its folder.
const REPORT: &str = "report.json";

/// A server's start takes less.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why nothing can be measured here, if so.
pub(crate) fn obstacle(program: &Path) -> Result<Option<String>> {
    let mut command = Command::new(program);
    command.args(["emulate", "-q", "--isolate", "--down", "delay=0ms", "--", "true"]);
    let output = command.stdin(Stdio::null()).output()?;
    let is_possible = matches!(output.status.code(), Some(0 | VOID));
    Ok((!is_possible).then(|| String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// What `posthaste` takes for a file, as opposed to a name: of a path or of a profile.
pub(crate) fn is_file(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
        || name.contains(std::path::is_separator)
}

/// A name of a path or profile for a run, which has a folder of its own: files are meant from where this was started.
pub(crate) fn from_anywhere(name: &str) -> Result<String> {
    Ok(if is_file(name) { std::path::absolute(name)?.display().to_string() } else { name.to_owned() })
}

/// The command of a run through `posthaste emulate`; paths and ends are still to be said.
pub(crate) fn command(program: &Path, seed: u64) -> Command {
    let mut command = Command::new(program);
    command.args(["emulate", "-q", "--isolate", "--json", REPORT, "--seed", &seed.to_string()]);
    command
}

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) report: Emulation,
    /// What the near end has printed.
    pub(crate) output: Vec<u8>,
    /// What is said if it has failed.
    pub(crate) complaint: String,
}

impl Run {
    /// Makes it in this folder; complaints begin with `what`.
    pub(crate) fn make(mut command: Command, folder: &Path, what: &str) -> Result<Self> {
        let output = command.current_dir(folder).stdin(Stdio::null()).output()?;
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let report = Emulation::read(&folder.join(REPORT))
            .map_err(|error| format!("{what} has left no report ({error}): {complaint}"))?;
        Ok(Self { report, output: output.stdout, complaint: format!("{what} has failed: {complaint}") })
    }

    /// As [`counts`].
    pub(crate) fn counts(&self) -> Result<bool> {
        counts(self.report.valid, self.report.exit_code, &self.complaint)
    }
}

/// Whether a run through `posthaste emulate` counts. One that is void does not, whatever has become of its client: a
/// machine that stalls ends connections, too.
///
/// # Errors
/// It is valid, and yet its client has failed: `complaint` says of what.
fn counts(is_valid: bool, exit_code: u8, complaint: &str) -> Result<bool> {
    if is_valid && exit_code != 0 {
        return Err(complaint.into());
    }
    Ok(is_valid)
}

/// What runs an end before all programs of ordinary priority, where that is permitted: how late it is woken is no part
/// of what is measured. The emulator's own threads come first all the same.
pub(crate) fn priority() -> &'static str {
    let mut probe = Command::new("chrt");
    probe.args(["--rr", "1", "true"]).stderr(Stdio::null());
    let is_permitted = probe.status().is_ok_and(|status| status.success());
    if is_permitted { "chrt --rr 1 " } else { "" }
}

/// The shell command of a far end that serves the folder `www`.
pub(crate) fn server(program: &Path, profile: &str) -> String {
    format!(
        "exec {}'{}' serve www --listen 0.0.0.0:{HTTPS} --profile '{profile}' --state state >{SERVER_OUTPUT} 2>&1",
        priority(),
        program.display()
    )
}

/// Inside the path: waits until that server is there; the URL of a file on it.
pub(crate) fn await_server(file: &str) -> Result<String> {
    let began = Instant::now();
    while !std::fs::read_to_string(SERVER_OUTPUT).is_ok_and(|text| text.contains("https://")) {
        if began.elapsed() > PATIENCE {
            let said = std::fs::read_to_string(SERVER_OUTPUT).unwrap_or_default();
            return Err(format!("the server does not start: {}", said.trim()).into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let far = std::env::var("POSTHASTE_FAR")?;
    Ok(format!("https://{far}:{HTTPS}/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_meant_from_here_and_names_are_names() {
        assert_eq!(from_anywhere("quicming@min_rate=1mbit").unwrap(), "quicming@min_rate=1mbit");
        let here = std::env::current_dir().unwrap();
        assert_eq!(from_anywhere("mine.toml").unwrap(), here.join("mine.toml").display().to_string());
        assert_eq!(from_anywhere("./mine").unwrap(), here.join("mine").display().to_string());
    }

    #[test]
    fn a_client_that_fails_beside_a_stalled_machine_is_no_failure() {
        let complaint = "get: timed out";
        assert!(counts(true, 0, complaint).unwrap());
        assert!(!counts(false, 0, complaint).unwrap());
        assert!(!counts(false, 1, complaint).unwrap(), "void before it is anything else");
        assert_eq!(counts(true, 1, complaint).unwrap_err().to_string(), "get: timed out");
    }
}

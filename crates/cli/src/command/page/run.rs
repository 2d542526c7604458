//! One run: `posthaste emulate` around the servers and the browser, as processes of their own.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use posthaste_campaign::emulated::Emulation;
use posthaste_campaign::quota::Quota;

use super::background;
use super::plan::{Item, Plan, is_started_here};
use super::record::{Record, Seen};
use super::target::Surroundings;
use super::visit::Order;
use crate::exit::Failure;

/// Attempts at a run, until the emulation is worth something.
const ATTEMPTS: u64 = 3;

/// What a run may take beyond its visits: servers and browser start and end.
const OVERHEAD: Duration = Duration::from_secs(120);

/// What an emulator that was told to end gets for it.
const GRACE: Duration = Duration::from_secs(10);

/// Where the emulator's report is, in a run's folder.
const EMULATION: &str = "emulation.json";

const TICK: Duration = Duration::from_millis(20);

/// Characters of an error that are kept.
const LONGEST_REASON: usize = 1_000;

/// Runs under way, so that all can be ended.
#[derive(Debug, Default)]
pub(super) struct Running {
    processes: Mutex<Vec<u32>>,
    is_over: AtomicBool,
}

impl Running {
    /// Asks every run to end; none begins any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let processes = self.processes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for &process in &*processes {
            terminate(process);
        }
    }

    fn add(&self, process: u32) {
        self.processes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(process);
        // Whoever ended all in between has not seen this one.
        if self.is_over.load(Ordering::SeqCst) {
            terminate(process);
        }
    }

    fn remove(&self, process: u32) {
        self.processes
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .retain(|&other| other != process);
    }
}

/// The emulator ends what it has started.
fn terminate(process: u32) {
    let _ = kill(Pid::from_raw(process.cast_signed()), Signal::SIGTERM);
}

/// Makes a run, again if the emulation was worthless; `None` if it was interrupted.
pub(super) fn run(plan: &Plan, item: Item, running: &Running) -> Result<Option<Record>, Failure> {
    let (mut quota, mut made) = (Quota::new(1, ATTEMPTS), None::<Record>);
    while let Some(attempts) = quota.next(made.as_ref().is_some_and(Record::is_valid).into(), 1) {
        let Some(record) = attempt(plan, item, running)? else { return Ok(None) };
        made = Some(Record { voided: attempts.start() - 1, ..record });
    }
    Ok(made)
}

fn attempt(plan: &Plan, item: Item, running: &Running) -> Result<Option<Record>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::runtime(format!("cannot make a run: {error}"));
    let folder =
        tempfile::TempDir::with_prefix_in("run-", plan.ground.path()).map_err(|error| failed(&error))?;
    let seed = plan.seed_of(item.round);
    let order = order(plan, item, folder.path());
    let order_file = folder.path().join("order.json");
    let text = serde_json::to_vec(&order).map_err(|error| failed(&error))?;
    std::fs::write(&order_file, text).map_err(|error| failed(&error))?;
    let output = |name: &str| File::create(folder.path().join(name)).map_err(|error| failed(&error));
    let mut command = command(plan, item, seed, folder.path(), &order_file);
    command.stdin(Stdio::null()).stdout(output("seen.json")?).stderr(output("errors")?).process_group(0);
    if running.is_over.load(Ordering::SeqCst) {
        return Ok(None);
    }
    let began = Instant::now();
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    running.add(child.id());
    let visits = if plan.is_warm_wanted { 2 } else { 1 };
    let status = wait(&mut child, plan.timeout * visits + OVERHEAD);
    running.remove(child.id());
    if running.is_over.load(Ordering::SeqCst) {
        return Ok(None);
    }
    let outcome = seen(folder.path(), status.map_err(|error| failed(&error))?);
    let has_path = plan.paths[item.path].argument.is_some();
    let emulation = has_path.then(|| Emulation::read(&folder.path().join(EMULATION))).transpose();
    let (emulation, faults) = match emulation {
        Ok(emulation) => {
            let faults = emulation.as_ref().map(|emulation| emulation.faults.clone());
            (emulation, faults.unwrap_or_default())
        }
        Err(error) => (None, vec![format!("the emulator has left no report: {error}")]),
    };
    let key = plan.key(item);
    Ok(Some(Record {
        build: Some(plan.builds.of_run(&key)),
        key,
        seed,
        background: plan.background,
        seen: outcome,
        voided: 0,
        faults,
        lateness: emulation.as_ref().map(Emulation::lateness),
        dropped: emulation.as_ref().map(Emulation::dropped),
        took: began.elapsed().as_secs_f64(),
    }))
}

/// What the near end is to do.
fn order(plan: &Plan, item: Item, folder: &Path) -> Order {
    let (page, contestant) = (&plan.pages[item.page], &plan.contestants[item.contestant]);
    let (host, _) = contestant.host_and_port();
    let front = contestant.front();
    let is_started_here = is_started_here(contestant);
    let has_path = plan.paths[item.path].argument.is_some();
    let name = |suffix: &str| {
        let path = &plan.paths[item.path].name;
        let text = format!("{}-{path}-{}-{}{suffix}", page.name, contestant.name, item.round);
        text.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.' && letter != '-', "_")
    };
    Order {
        browser: plan.browser.clone(),
        url: contestant.url(),
        protocol: contestant.protocol,
        spki: plan.spki.clone(),
        far_host: has_path.then_some(host),
        ports: contestant.ports(page.hosts),
        relayed: front.map(|front| front.relayed.clone()).unwrap_or_default(),
        others: front.map(|front| front.others),
        is_awaited: is_started_here,
        requests: page.requests,
        background: plan.background,
        is_warm_wanted: plan.is_warm_wanted,
        timeout: plan.timeout.as_secs_f64(),
        folder: folder.to_owned(),
        net_log: plan.net_log.as_ref().map(|log| log.join(name(".json"))),
    }
}

fn command(plan: &Plan, item: Item, seed: u64, folder: &Path, order: &Path) -> Command {
    let (page, contestant) = (&plan.pages[item.page], &plan.contestants[item.contestant]);
    let mut command = Command::new(&plan.posthaste);
    if let Some(path) = &plan.paths[item.path].argument {
        command.args(["emulate", "--quiet", "--meter", "none", "--path", path, "--seed", &seed.to_string()]);
        command.arg("--json").arg(folder.join(EMULATION));
        let ports = contestant.ports(page.hosts);
        let around = Surroundings {
            site: page.folder.as_deref().unwrap_or(folder),
            certificate: &plan.certificate,
            key: &plan.key,
            ports: &ports,
            scratch: folder,
            qlog: plan.qlog.as_deref(),
            posthaste: &plan.posthaste,
        };
        if let Some(servers) = contestant.command(&around) {
            command.args(["--isolate", "--far", &servers]);
        }
        if plan.background > 0 {
            command.args(["--far", &background::server()]);
        }
        command.arg("--").arg(&plan.posthaste);
    }
    command.arg("page-visit").arg("--order").arg(order);
    command
}

/// Waits for the end, and makes one if it does not come.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<ExitStatus> {
    let began = Instant::now();
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if began.elapsed() > limit && !is_asked {
            terminate(child.id());
            is_asked = true;
        }
        if began.elapsed() > limit + GRACE {
            let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        }
        std::thread::sleep(TICK);
    }
}

/// What the near end has printed, or why it has not. What servers and the emulator have said explains a failure.
fn seen(folder: &Path, status: ExitStatus) -> Seen {
    let errors = std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
    let said: String = errors.trim().chars().take(LONGEST_REASON).collect();
    let text = std::fs::read(folder.join("seen.json")).unwrap_or_default();
    let mut seen: Seen = serde_json::from_slice(&text).unwrap_or_else(|_| {
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or(0)),
        };
        let failure = Some(format!("the run has ended without a result ({how})"));
        Seen { failure, ..Seen::default() }
    });
    if let Some(failure) = seen.failure.as_mut().filter(|_| !said.is_empty()) {
        failure.push_str(": ");
        failure.push_str(&said);
    }
    seen
}

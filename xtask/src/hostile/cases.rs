//! The cases, but for floods.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::Figure;
use super::path::{DELAY, Path};
use super::scene::{BIG, MEDIUM, PATIENCE, Reader, Scene, wait_for};
use crate::Result;

/// A machine's lateness, beyond what a case is about.
const SLACK: Duration = Duration::from_millis(300);

pub(super) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

pub(super) fn slow_readers(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let served = scene.serve(&[])?;
    let before = served.running.resident_bytes()?;
    let clients = if is_short { 24 } else { 96 };
    let work = || {
        let readers = scene.stalled(&served, "big", clients)?;
        std::thread::sleep(Duration::from_secs(if is_short { 5 } else { 20 }));
        let resident = served.running.resident_bytes()?;
        drop(readers);
        Ok(resident)
    };
    let (resident, live) = scene.live_during(&served, work)?;
    let mut figures = vec![
        ("clients", clients as f64, ""),
        ("memory before", megabytes(before), "MB"),
        ("memory", megabytes(resident), "MB"),
    ];
    figures.extend(live.figures());
    Ok(figures)
}

pub(super) fn log_not_read(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    // Together more lines than a pipe holds.
    let names: Vec<String> = (0..100).map(|count| format!("{count:03}{}", "x".repeat(150))).collect();
    for name in &names {
        scene.publish(name, b"content")?;
    }
    let mut child = scene.serve_command(&[]).stdout(Stdio::piped()).spawn()?;
    let mut stdout = std::io::BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line)?;
    let mut server = Reader(child);
    let start: serde_json::Value = serde_json::from_str(&line)?;
    let text = |field: &str| start[field].as_str().map(str::to_owned).ok_or("no start");
    let (url, certificate) = (text("url")?, text("certificate")?);
    let rounds = if is_short { 4 } else { 40 };
    for round in 0..rounds {
        let mut get = std::process::Command::new(&scene.program);
        get.args(["get", "--ca", &certificate]).args(names.iter().map(|name| format!("{url}{name}")));
        let output = get.arg("-O").arg(scene.path("in")).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("round {round}: {said}").into());
        }
    }
    let began = Instant::now();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(server.0.id().cast_signed()),
        nix::sys::signal::Signal::SIGTERM,
    )?;
    let status = wait_for("the server's end", || Ok(server.0.try_wait()?))?;
    if !status.success() {
        return Err(format!("the server ended with {status}").into());
    }
    Ok(vec![
        ("requests", f64::from(rounds) * 100.0, ""),
        ("end after SIGTERM", seconds(began.elapsed()), "s"),
    ])
}

pub(super) fn secrets(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    for name in [".env", ".git/config", "sub/.htpasswd", ".well-known/security.txt"] {
        scene.publish(name, b"content")?;
    }
    let mut inside = std::process::Command::new(&scene.program);
    inside.arg("serve").arg(scene.path("www")).args(["--listen", "127.0.0.1:0", "--state"]);
    let mut inside =
        Reader(inside.arg(scene.path("www/state")).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let status =
        wait_for("a refusal of a state directory that would be served", || Ok(inside.0.try_wait()?))?;
    if status.success() {
        return Err("a state directory below the served one was accepted".into());
    }
    let mut served = scene.serve(&["--profile", "history", "--history", "store"])?;
    for (name, is_served) in [
        ("small", true),
        (".well-known/security.txt", true),
        (".env", false),
        (".git/config", false),
        ("sub/.htpasswd", false),
        ("%2eenv", false),
        ("x/../.env", false),
    ] {
        if scene.get(&served, name).output()?.status.success() != is_served {
            return Err(format!("/{name} is {}served", if is_served { "not " } else { "" }).into());
        }
    }
    served.running.terminate();
    served.running.wait(PATIENCE)?;
    let mut kept = 0;
    for entry in fs::read_dir(scene.path("state"))? {
        let path = entry?.path();
        let is_public = path.extension().is_some_and(|extension| extension == "pem");
        let mode = fs::metadata(&path)?.permissions().mode();
        kept += 1;
        if path.is_file() && !is_public && mode & 0o077 != 0 {
            return Err(format!("{} has the mode {mode:o}", path.display()).into());
        }
    }
    Ok(vec![("files kept", f64::from(kept), "")])
}

pub(super) fn blackout(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let outages: &[u64] = if is_short { &[20] } else { &[5, 20, 28] };
    let mut figures = Vec::new();
    for outage in outages {
        let served = scene.serve(&[])?;
        let path = Path::to(served.address)?;
        let target = scene.path("in").join(format!("copy-{outage}"));
        let mut get = scene.get_at(&served, path.address, "big");
        let mut get =
            Reader(get.arg("-o").arg(&target).args(["--timeout", "120"]).stdout(Stdio::null()).spawn()?);
        wait_for("the download", || Ok((received(scene)? > 1_000_000).then_some(())))?;
        path.break_off();
        std::thread::sleep(Duration::from_secs(*outage));
        let (before, mended) = (received(scene)?, path.mend());
        let resumed = wait_for("the end of the outage", || {
            if get.0.try_wait()?.is_some() {
                return Err("the client gave up".into());
            }
            Ok((received(scene)? > before).then(Instant::now))
        })?;
        let sign = path.first_sign().ok_or("data without a datagram")?;
        let limit = (mended + Duration::from_secs(1)).max(sign + DELAY * 4) + SLACK;
        let took = resumed.saturating_duration_since(mended);
        if resumed > limit {
            return Err(format!("{} s after an outage of {outage} s", seconds(took)).into());
        }
        figures.push(("outage", *outage as f64, "s"));
        figures.push(("first sign", seconds(sign.saturating_duration_since(mended)), "s"));
        figures.push(("data", seconds(took), "s"));
        drop(get);
        fs::remove_dir_all(scene.path("in"))?;
        fs::create_dir(scene.path("in"))?;
    }
    Ok(figures)
}

/// Bytes of all that was fetched, partial files included.
pub(super) fn received(scene: &Scene) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(scene.path("in"))? {
        // A file that is renamed meanwhile is counted the next time.
        bytes += entry?.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}

pub(super) fn drain(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, length) in [("medium", MEDIUM), ("big", BIG)] {
        let mut served = scene.serve(&["--grace", "30"])?;
        let mut readers = scene.stalled(&served, name, 1)?;
        // What buffers on the way hold is there by then.
        std::thread::sleep(Duration::from_secs(1));
        served.running.terminate();
        std::thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        let reader = readers.first_mut().ok_or("no client")?;
        let mut content = Vec::new();
        reader.0.stdout.as_mut().ok_or("no output")?.read_to_end(&mut content)?;
        if content.len() != length || !wait_for("the client", || Ok(reader.0.try_wait()?))?.success() {
            return Err(format!("{name}: {} bytes of {length} were read", content.len()).into());
        }
        served.running.wait(PATIENCE)?;
        let last = served.running.output()?.lines().last().unwrap_or_default().to_owned();
        let stopped: serde_json::Value = serde_json::from_str(&last)?;
        if stopped["requests_cut_off"] != 0 {
            return Err(format!("{name}: the server says {last}").into());
        }
        figures.push((name, seconds(began.elapsed()), "s"));
    }
    Ok(figures)
}

pub(super) fn second_signal(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    let mut served = scene.serve(&["--grace", "300"])?;
    let path = Path::to(served.address)?;
    let mut get = scene.get_at(&served, path.address, "big");
    get.arg("-o").arg(scene.path("in").join("copy")).args(["--timeout", "120"]).stdout(Stdio::null());
    let mut get = Reader(get.spawn()?);
    wait_for("the download", || Ok((received(scene)? > 1_000_000).then_some(())))?;
    served.running.terminate();
    std::thread::sleep(Duration::from_millis(500));
    if !served.running.is_running()? {
        return Err("the first signal has ended the server".into());
    }
    let began = Instant::now();
    served.running.terminate();
    served.running.wait(PATIENCE)?;
    let ended = began.elapsed();
    wait_for("the client's end", || Ok(get.0.try_wait()?))?;
    let last = served.running.output()?.lines().last().unwrap_or_default().to_owned();
    let stopped: serde_json::Value = serde_json::from_str(&last)?;
    if stopped["requests_cut_off"] != 1 {
        return Err(format!("the server says {last}").into());
    }
    // Without a word it would wait for its idle timeout of 30 s.
    if began.elapsed() > Duration::from_secs(15) {
        return Err(format!("the client ended after {} s", seconds(began.elapsed())).into());
    }
    Ok(vec![("server", seconds(ended), "s"), ("client", seconds(began.elapsed()), "s")])
}

//! A client between servers and networks that are careless or worse.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Figure;
use super::cases::received;
use super::path::{Path, Trick};
use super::scene::{PATIENCE, Reader, Scene, wait_for};
use crate::Result;
use crate::process::Running;

/// Bytes of a file that takes four seconds.
const LONG: usize = 4_000_000;
/// Unidirectional streams that a client of ours permits, but for the control stream: it must take them without a fault.
const STREAMS: u64 = 31;

pub(super) fn careful(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    let negotiated = forged_versions(scene)?;
    let continued = continued(scene)?;
    let streams = careless_server(scene)?;
    Ok(vec![
        ("forged version negotiations", negotiated, ""),
        ("bytes of the second half of 4 MB", continued, ""),
        ("streams of unknown types", streams, ""),
    ])
}

/// Forged version negotiations arrive first; and the mode of a file that is replaced stays.
fn forged_versions(scene: &Scene) -> Result<f64> {
    let served = scene.serve(&[])?;
    let path = Path::with(Trick::ForgesVersions, served.address)?;
    let target = scene.path("in/private");
    fs::write(&target, "before")?;
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600))?;
    let mut get = scene.get_at(&served, path.address, "small");
    if !get.arg("-o").arg(&target).output()?.status.success() || path.flights() != 1 {
        return Err("a client believed a forged version negotiation".into());
    }
    let mode = fs::metadata(&target)?.permissions().mode() & 0o777;
    fs::remove_file(target)?;
    if mode != 0o600 {
        return Err(format!("a file of mode 600 has the mode {mode:o} now").into());
    }
    Ok(3.0)
}

/// A download that is killed goes on where it was, and begins anew if the file is another; the bytes of the rest.
fn continued(scene: &Scene) -> Result<f64> {
    let served = scene.serve(&[])?;
    let path = Path::to(served.address)?;
    let target = scene.path("in/copy");
    let begin = || {
        let mut get = scene.get_at(&served, path.address, "long");
        get.args(["--json", "--continue", "-o"]).arg(&target);
        get
    };
    let interrupt = || -> Result<()> {
        let killed = Reader(begin().stdout(Stdio::null()).spawn()?);
        wait_for("a part of the file", || Ok((received(scene)? > LONG as u64 / 2).then_some(())))?;
        drop(killed);
        Ok(())
    };
    let go_on = || -> Result<f64> {
        let report: serde_json::Value = serde_json::from_slice(&begin().output()?.stdout)?;
        let same = fs::read(&target)? == fs::read(scene.path("www/long"))?;
        fs::remove_file(&target)?;
        let bytes = report["connections"][0]["bytes_received"].as_f64().ok_or("no count of bytes")?;
        if same { Ok(bytes) } else { Err("the file is another".into()) }
    };
    publish(scene, 7, Duration::from_secs(120))?;
    interrupt()?;
    let rest = go_on()?;
    if rest > LONG as f64 * 0.6 {
        return Err(format!("{rest} of {LONG} bytes came again").into());
    }
    interrupt()?;
    publish(scene, 9, Duration::from_secs(60))?;
    let whole = go_on()?;
    if whole < LONG as f64 {
        return Err(format!("{whole} of {LONG} bytes of another file came").into());
    }
    Ok(rest)
}

/// A file of one byte again and again that looks so old: of one that has only just changed the entity tag is weak, and no
/// download of it is continued (RFC 9110 section 13.1.5).
fn publish(scene: &Scene, byte: u8, age: Duration) -> Result<()> {
    scene.publish("long", &vec![byte; LONG])?;
    let file = fs::File::options().write(true).open(scene.path("www/long"))?;
    let modified = file.metadata()?.modified()?;
    Ok(file.set_modified(modified - age)?)
}

/// A 206 that nobody has asked for is no file; streams of unknown types are no fault. How many of those there were.
fn careless_server(scene: &Scene) -> Result<f64> {
    let identity = scene.path("state/localhost.pem");
    let mut careless = Command::new(scene.clients.join("careless"));
    let mut careless = Running::spawn(careless.arg(&identity), "careless", &scene.path("logs"))?;
    let address: String =
        careless.wait_for(PATIENCE, |line| line.strip_prefix("ready ").map(str::to_owned))?;
    let certificate = scene.path("state/localhost-certificate.pem");
    for (name, is_file) in [("whole", true), ("part", false)] {
        let target = scene.path("in").join(name);
        let mut get = Command::new(&scene.program);
        get.args(["get", &format!("https://{address}/{name}"), "--ca"]).arg(&certificate);
        let output = get.arg("-o").arg(&target).output()?;
        if output.status.success() != is_file || target.exists() != is_file {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{name}: {}, {said}", output.status).into());
        }
    }
    let streams: u64 = careless.wait_for(PATIENCE, |line| line.strip_prefix("streams ")?.parse().ok())?;
    if streams < STREAMS {
        return Err(format!("{streams} streams of unknown types were permitted").into());
    }
    Ok(streams as f64)
}

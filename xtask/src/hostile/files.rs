//! File systems that do not answer, and what a server keeps in one.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Figure;
use super::crowds::{Crowd, Wish};
use super::scene::{PATIENCE, Scene, wait_for};
use crate::Result;

/// A file system that never answers: a FUSE mount without a server, or a pipe without a writer where mounting is not
/// permitted.
struct Hung {
    holder: Option<Child>,
    folder: PathBuf,
}

impl Hung {
    /// Among the files that are served.
    fn below(scene: &Scene) -> Result<Self> {
        let folder = scene.path("www/hung");
        std::fs::create_dir(&folder)?;
        if let Some(mounted) = Self::over(folder.clone())? {
            return Ok(mounted);
        }
        if !Command::new("mkfifo").arg(folder.join("file")).status()?.success() {
            return Err("neither a mount nor a pipe can be made".into());
        }
        Ok(Self { holder: None, folder })
    }

    /// In the place of a folder, of which nothing answers from now on; none if mounting is not permitted.
    fn over(folder: PathBuf) -> Result<Option<Self>> {
        let script = "exec 3<>/dev/fuse && \
                      mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0,allow_other hung \"$0\" && \
                      echo mounted && read _";
        let mut mount = Command::new("sh");
        mount.args(["-c", script]).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = mount.stderr(Stdio::null()).spawn()?;
        let mut said = [0; 8];
        let output = holder.stdout.as_mut().ok_or("no output")?;
        let is_mounted = std::io::Read::read_exact(output, &mut said).is_ok();
        let mut hung = Self { holder: Some(holder), folder };
        if !is_mounted {
            hung.release();
        }
        Ok(is_mounted.then_some(hung))
    }

    /// Calls that hang end with an error.
    fn release(&mut self) {
        let Some(mut holder) = self.holder.take() else { return };
        holder.stdin = None;
        let _ = holder.wait();
        let _ = Command::new("umount").arg("-l").arg(&self.folder).stderr(Stdio::null()).status();
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        self.release();
    }
}

pub(super) fn hung_files(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let mut hung = Hung::below(scene)?;
    let is_mounted = hung.holder.is_some();
    let mut served = scene.serve(&["--grace", "2"])?;
    let seconds = if is_short { 5 } else { 30 };
    let work = || {
        let wish = Wish { connections: 10, requests: 90, path: "/hung/file", answers: 0 };
        let crowd = Crowd::gather(scene, &served, &wish)?;
        sleep(Duration::from_secs(seconds));
        let requests = crowd.requests;
        crowd.disperse()?;
        Ok(requests)
    };
    let outcome = scene.live_during(&served, work);
    let began = Instant::now();
    served.running.terminate();
    // With calls that still hang.
    let ended = wait_for("the server's end", || Ok((!served.running.is_running()?).then_some(())));
    let took = began.elapsed();
    hung.release();
    let (requests, live) = outcome?;
    ended?;
    let mut measured = vec![
        ("mounts that hang (else a pipe)", f64::from(u8::from(is_mounted)), ""),
        ("requests for their files", requests, ""),
        ("end after SIGTERM", took.as_secs_f64(), "s"),
    ];
    measured.extend(live.figures());
    Ok(measured)
}

/// The place of everything that a server writes stops answering while it serves.
pub(super) fn hung_state(scene: &Scene, is_short: bool) -> Result<Vec<Figure>> {
    let traces = scene.path("traces").display().to_string();
    let mut served = scene.serve(&["--grace", "2", "--history", "store", "--qlog", &traces])?;
    let trusted = scene.path("trusted.pem");
    std::fs::copy(&served.certificate, &trusted)?;
    served.certificate = trusted.display().to_string();
    // Something to write has come.
    if !scene.get(&served, "small").output()?.status.success() {
        return Err("the server does not serve".into());
    }
    let mut hung = Vec::new();
    for name in ["state", "traces"] {
        hung.extend(Hung::over(scene.path(name))?);
    }
    let seconds = if is_short { 3 } else { 30 };
    let outcome = scene.live_during(&served, || {
        sleep(Duration::from_secs(seconds));
        Ok(())
    });
    let began = Instant::now();
    served.running.terminate();
    let ended = served.running.wait(PATIENCE);
    let took = began.elapsed();
    let mounts = hung.len();
    hung.iter_mut().for_each(Hung::release);
    let ((), live) = outcome?;
    ended?;
    let mut measured = vec![
        ("mounts that hang (0 if none is permitted)", mounts as f64, ""),
        ("end after SIGTERM", took.as_secs_f64(), "s"),
    ];
    measured.extend(live.figures());
    Ok(measured)
}

/// A certificate for this machine that is valid between these times, in days from now, and its key, in PEM.
fn certificate([from, to]: [i64; 2]) -> Result<String> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = rcgen::CertificateParams::new(names)?;
    let day = |days: i64| {
        let length = Duration::from_secs(days.unsigned_abs() * 24 * 3600);
        let now = std::time::SystemTime::now();
        if days < 0 { now - length } else { now + length }
    };
    (params.not_before, params.not_after) = (day(from).into(), day(to).into());
    let key = rcgen::KeyPair::generate()?;
    Ok(params.self_signed(&key)?.pem() + &key.serialize_pem())
}

/// The kept certificate was made by a clock that is a year off.
pub(super) fn certificates(scene: &Scene, _: bool) -> Result<Vec<Figure>> {
    let kept = scene.path("state/localhost.pem");
    std::fs::create_dir(scene.path("state"))?;
    let cases = [("it begins in a year", [365, 700], true), ("it ended a year ago", [-700, -365], false)];
    for (what, validity, stays) in cases {
        let made = certificate(validity)?;
        std::fs::write(&kept, &made)?;
        let mut served = scene.serve(&[])?;
        served.running.terminate();
        served.running.wait(PATIENCE)?;
        let said = std::fs::read_to_string(scene.path("logs/server.stderr"))?;
        if (std::fs::read_to_string(&kept)? == made) != stays {
            return Err(format!("{what}, and it is {}replaced", if stays { "" } else { "not " }).into());
        }
        if !said.contains("the certificate in") {
            return Err(format!("{what}, and the server says: {said}").into());
        }
        if !stays && std::fs::read_to_string(scene.path("state/localhost-replaced.pem"))? != made {
            return Err("the one that is replaced is lost".into());
        }
    }
    Ok(vec![("clocks", cases.len() as f64, "")])
}

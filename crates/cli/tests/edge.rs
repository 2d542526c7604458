//! `posthaste edge` in front of a server that knows nothing of HTTP/3: nginx where it is installed, else Python's.
#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folders, PATIENCE, posthaste, run, sample, send_signal, wait};

/// A server of the folder `www`, over plain HTTP/1.1. Ended when it is dropped.
struct Site {
    child: Child,
    address: SocketAddr,
}

impl Site {
    fn start(folders: &Folders) -> Self {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = nginx(folders, address).unwrap_or_else(|| python(folders, address));
        let site = Self { child, address };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < PATIENCE, "the site does not start");
            pause();
        }
        site
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

fn nginx(folders: &Folders, address: SocketAddr) -> Option<Child> {
    let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists())?;
    let (www, state) = (folders.path("www"), folders.path("nginx"));
    std::fs::create_dir(&state).unwrap();
    let (www, state) = (www.display(), state.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {state}/{kind};"))
        .concat();
    let config = format!(
        "daemon off; master_process off; pid {state}/pid; error_log {state}/error.log;\n\
         events {{}}\n\
         http {{ access_log off; {temporary} server {{ listen {address}; root {www}; }} }}\n"
    );
    let file = folders.path("nginx.conf");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(program);
    Some(command.arg("-c").arg(file).arg("-e").arg("/dev/null").spawn().unwrap())
}

fn python(folders: &Folders, address: SocketAddr) -> Child {
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--protocol", "HTTP/1.1", "--bind", "127.0.0.1"]);
    command.arg(address.port().to_string()).arg("--directory").arg(folders.path("www"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A certificate for localhost and its key.
fn certificate(folders: &Folders) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folders.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folders.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

#[test]
fn a_site_is_served_over_http3_as_it_is() {
    let folders = Folders::new();
    let content = sample(3_000_000);
    folders.publish("file.bin", &content);
    certificate(&folders);
    let site = Site::start(&folders);
    let mut edge = posthaste()
        .args(["edge", "--json", "--listen", "127.0.0.1:0", "--to", &format!("http://{}", site.address)])
        .arg("--cert")
        .arg(folders.path("cert.pem"))
        .arg("--key")
        .arg(folders.path("key.pem"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(edge.stdout.take().unwrap()).lines();
    let mut event =
        || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let start = event();
    assert_eq!(start["event"], "listening");
    let port = start["address"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let get = |path: &str| {
        let mut command = posthaste();
        command.args(["get", "--ca"]).arg(folders.path("cert.pem"));
        command.arg(format!("https://localhost:{port}{path}"));
        command
    };
    let (code, stdout, stderr) = run(&mut get("/file.bin"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout == content);
    let (code, ..) = run(&mut get("/nothing"));
    assert_ne!(code, 0, "404 passes");
    let statuses = [event(), event()].map(|event| event["status"].as_u64().unwrap());
    assert_eq!(statuses, [200, 404]);
    // The site goes; the edge says so.
    drop(site);
    let (code, _, stderr) = run(&mut get("/file.bin"));
    assert!(code != 0 && stderr.contains("502"), "{code}: {stderr}");
    assert_eq!(event()["status"], 502);
    send_signal(edge.id(), "TERM");
    assert!(wait(&mut edge).success());
    assert_eq!(event()["event"], "stopped");
}

#[test]
fn names_that_the_certificate_does_not_cover_are_not_answered() {
    let folders = Folders::new();
    certificate(&folders);
    let mut edge = posthaste()
        .args(["edge", "--json", "--listen", "127.0.0.1:0", "--to", "http://127.0.0.1:1"])
        .arg("--cert")
        .arg(folders.path("cert.pem"))
        .arg("--key")
        .arg(folders.path("key.pem"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(edge.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let start: serde_json::Value = serde_json::from_str(&line).unwrap();
    let port = start["address"].as_str().unwrap().rsplit(':').next().unwrap();
    // This client does not look at the certificate.
    let (code, _, stderr) =
        run(posthaste().args(["get", "--insecure", &format!("https://127.0.0.1:{port}/")]));
    assert!(code != 0 && stderr.contains("421"), "{code}: {stderr}");
    send_signal(edge.id(), "TERM");
    assert!(wait(&mut edge).success());
}

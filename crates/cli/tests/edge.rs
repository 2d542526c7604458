//! `posthaste edge` in front of a server that knows nothing of HTTP/3: nginx where it is installed, else Python's.
#![cfg(unix)]

mod common;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::edge::{Edge, certificate, client};
use common::{Folders, PATIENCE, free_port, posthaste, run, sample};

/// A server of the folder `www`, over plain HTTP/1.1. Ended when it is dropped.
struct Site {
    child: Child,
    address: SocketAddr,
}

impl Site {
    fn start(folders: &Folders) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
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

#[test]
fn a_site_is_served_over_http3_as_it_is() {
    let folders = Folders::new();
    let content = sample(3_000_000);
    folders.publish("file.bin", &content);
    certificate(&folders);
    let site = Site::start(&folders);
    let mut edge = Edge::to(&folders, &format!("http://{}", site.address), &[]);
    let get = |edge: &Edge, path: &str| run(&mut edge.get(&folders, path));
    let (code, stdout, stderr) = get(&edge, "/file.bin");
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout == content);
    let (code, ..) = get(&edge, "/nothing");
    assert_ne!(code, 0, "404 passes");
    let events = [edge.event(), edge.event()];
    assert_eq!(events.each_ref().map(|event| event["status"].as_u64().unwrap()), [200, 404]);
    assert_ne!(events[0]["id"], events[1]["id"]);
    assert_eq!((&events[0]["site"], &events[0]["host"]), (&"example.org".into(), &"localhost".into()));
    assert!(events[0]["first_byte_seconds"].as_f64() <= events[0]["seconds"].as_f64());
    // The site goes; the edge says so.
    drop(site);
    let (code, _, stderr) = get(&edge, "/file.bin");
    assert!(code != 0 && stderr.contains("502"), "{code}: {stderr}");
    assert_eq!(edge.event()["status"], 502);
    assert!(edge.stop().success());
    assert_eq!(edge.event()["event"], "stopped");
}

/// A configuration whose site replies with `text`.
fn replying(text: &str) -> String {
    format!(
        "[edge]\nlisten = \"127.0.0.1:0\"\n[site.localhost]\n\
         certificate = {{ chain = \"cert.pem\", key = \"key.pem\" }}\nreply = \"{text}\"\n"
    )
}

#[test]
fn reloads_under_load_fail_no_request_and_keep_the_connection() {
    const RELOADS: usize = 100;
    let folders = Folders::new();
    certificate(&folders);
    let file = folders.path("edge.toml");
    std::fs::write(&file, replying("200 0")).unwrap();
    let mut edge = Edge::start(&folders, &["--config", "edge.toml"]);
    let url = posthaste_http::parse_url(&format!("https://localhost:{}/", edge.port())).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = client(&folders);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let load = runtime.spawn({
        let (client, url) = (client.clone(), url.clone());
        async move {
            let mut requests = 0;
            while !*stopped.borrow() {
                let mut response = client.get(&url).await.unwrap();
                assert_eq!(response.status(), 200);
                while response.chunk().await.unwrap().is_some() {}
                requests += 1;
            }
            requests
        }
    });
    let answer = || {
        runtime.block_on(async {
            let mut response = client.get(&url).await.unwrap();
            String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap()
        })
    };
    assert_eq!(answer(), "0");
    for reload in 1..=RELOADS {
        std::fs::write(&file, replying(&format!("200 {reload}"))).unwrap();
        edge.signal("HUP");
        assert_eq!(edge.note(), "posthaste: reloaded\n");
        assert_eq!(answer(), reload.to_string(), "the next request has the new configuration");
    }
    // A file with a fault changes nothing.
    std::fs::write(&file, replying("200 x").replace("reply", "replay")).unwrap();
    edge.signal("HUP");
    let note = edge.note();
    assert!(
        note.contains("not reloaded, nothing has changed: edge.toml:5:1: unknown field `replay`"),
        "{note}"
    );
    assert!(edge.note().contains("did you mean `reply`?"));
    assert_eq!(answer(), RELOADS.to_string());
    stop.send(true).unwrap();
    let requests: usize = runtime.block_on(load).unwrap();
    assert!(requests > 0);
    assert_eq!(client.connections().len(), 1, "the first connection is the only one");
    assert!(edge.stop().success());
}

#[test]
fn what_options_say_a_file_can_say() {
    let folders = Folders::new();
    certificate(&folders);
    folders.publish("page.txt", b"a page");
    let options = ["--files", "www", "--domain", "localhost", "--cert", "cert.pem", "--key", "key.pem"];
    let more = ["--listen", "127.0.0.1:0", "--profile", "bbr", "--grace", "1.5", "--print-config"];
    let mut print = posthaste();
    print.arg("edge").args(options).args(more).current_dir(folders.path(""));
    let (code, printed, stderr) = run(&mut print);
    assert_eq!((code, stderr.as_str()), (0, ""));
    std::fs::write(folders.path("edge.toml"), &printed).unwrap();
    let (_, again, _) = run(posthaste()
        .args(["edge", "--config", "edge.toml", "--print-config"])
        .current_dir(folders.path("")));
    assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&printed));
    let edge = Edge::start(&folders, &["--config", "edge.toml"]);
    let (code, page, stderr) = run(&mut edge.get(&folders, "/page.txt"));
    assert_eq!((code, page.as_slice(), stderr.as_str()), (0, b"a page".as_slice(), ""));
}

#[test]
fn the_schema_of_the_file_needs_no_other_option() {
    let (code, printed, stderr) = run(posthaste().args(["edge", "--print-schema"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let schema: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(schema["properties"]["site"]["type"], "object");
    let (code, _, stderr) = run(posthaste().args(["edge", "--print-schema", "--config", "edge.toml"]));
    assert!(code == 2 && stderr.contains("--print-schema"), "{code}: {stderr}");
}

#[test]
fn a_check_finds_faults_without_serving() {
    let folders = Folders::new();
    certificate(&folders);
    let check = |text: &str| {
        std::fs::write(folders.path("edge.toml"), text).unwrap();
        let (code, stdout, stderr) = run(posthaste().args(["edge", "check"]).current_dir(folders.path("")));
        (code, String::from_utf8(stdout).unwrap(), stderr)
    };
    let (code, stdout, _) = check(&replying("200"));
    assert_eq!((code, stdout.as_str()), (0, "edge.toml: sites 1, upstreams 0, certificates 1\nno faults\n"));
    // Nobody listens at port 1.
    let (code, stdout, _) = check(&replying("200").replace("reply = \"200\"", "to = \"http://127.0.0.1:1\""));
    assert!(code == 1 && stdout.contains("http://127.0.0.1:1 cannot be reached"), "{code}: {stdout}");
    let (code, _, stderr) = check("[edge]\nlisten = 443\n");
    assert!(code == 2 && stderr.contains("edge.toml:2:10: "), "{code}: {stderr}");
    std::fs::remove_file(folders.path("key.pem")).unwrap();
    let (code, _, stderr) = check(&replying("200"));
    assert!(
        code == 2 && stderr.contains("edge.toml:4:15: ") && stderr.contains("key.pem"),
        "{code}: {stderr}"
    );
}

#[test]
fn a_check_finds_what_would_keep_it_from_serving() {
    let folders = Folders::new();
    certificate(&folders);
    std::fs::create_dir_all(folders.path("www")).unwrap();
    let check = |text: &str| {
        std::fs::write(folders.path("edge.toml"), text).unwrap();
        let (code, stdout, stderr) = run(posthaste().args(["edge", "check"]).current_dir(folders.path("")));
        (code, String::from_utf8(stdout).unwrap() + &stderr)
    };
    let (code, said) = check(&replying("200").replace("[edge]", "[edge]\nprofile = \"mobil\""));
    assert!(code == 2 && said.contains("edge.toml:2:11: there is no profile `mobil`"), "{code}: {said}");
    // Over UDP the port is free.
    let taken = std::net::TcpListener::bind(("127.0.0.1", free_port())).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = check(&replying("200").replace("127.0.0.1:0", &address));
    assert!(code == 1 && said.contains(&format!("cannot listen on {address}/tcp")), "{code}: {said}");
    // Where an upstream is there, but would not be trusted, each request would be a 502.
    let upstream = Edge::start(
        &folders,
        &["--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem", "--files", "www"],
    );
    let to = |host: &str, more: &str| {
        let to = format!("to = \"https://{host}:{}\"{more}", upstream.port());
        check(&replying("200").replace("reply = \"200\"", &to))
    };
    let (code, said) = to("localhost", "");
    assert!(code == 1 && said.contains("no TLS with it"), "{code}: {said}");
    let (code, said) = to("127.0.0.1", "\nca = \"cert.pem\"");
    assert!(code == 1 && said.contains("not valid for name"), "{code}: {said}");
    let (code, said) = to("localhost", "\nca = \"cert.pem\"");
    assert!(code == 0 && said.ends_with("no faults\n"), "{code}: {said}");
}

#[test]
fn names_that_the_certificate_does_not_cover_are_not_answered() {
    let folders = Folders::new();
    certificate(&folders);
    let mut edge = Edge::to(&folders, "http://127.0.0.1:1", &[]);
    // This client does not look at the certificate.
    let (code, _, stderr) =
        run(posthaste().args(["get", "--insecure", &format!("https://127.0.0.1:{}/", edge.port())]));
    assert!(code != 0 && stderr.contains("421"), "{code}: {stderr}");
    assert!(edge.stop().success());
}

//! Other servers with HTTP/3: how they are got and configured. nginx and HAProxy are Debian's packages of the release after the
//! one that this may be, unpacked and started with their own loader; Caddy is built from its Go module. Nothing is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Place;
use crate::Result;
use crate::workspace::{run, target};

/// The release of Debian with nginx 1.26 and HAProxy 3.0.
const RELEASE: &str = "trixie";

/// Both servers and the libraries that they load.
const PACKAGES: [&str; 16] = [
    "haproxy",
    "libc6",
    "libcap2",
    "libcrypt1",
    "libgcc-s1",
    "libjemalloc2",
    "liblua5.4-0",
    "libopentracing-c-wrapper0t64",
    "libopentracing1",
    "libpcre2-8-0",
    "libssl3t64",
    "libstdc++6",
    "libsystemd0",
    "libzstd1",
    "nginx",
    "zlib1g",
];

/// Caddy's command, as a Go module.
const CADDY: &str = "github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.4";

/// Where they are kept between runs.
pub(super) struct Rivals {
    folder: PathBuf,
}

impl Rivals {
    /// Fetches what is missing.
    pub(super) fn get(wanted: &[String]) -> Result<Self> {
        let rivals = Self { folder: target().join("rivals") };
        std::fs::create_dir_all(&rivals.folder)?;
        // nginx is also the upstream of all.
        if !rivals.debian("nginx").exists() || !rivals.debian("haproxy").exists() {
            rivals.unpack()?;
        }
        if wanted.iter().any(|name| name == "caddy") && !rivals.caddy().exists() {
            eprintln!("building Caddy");
            run(Command::new("go").args(["install", CADDY]).env("GOBIN", &rivals.folder))?;
        }
        Ok(rivals)
    }

    pub(super) fn caddy(&self) -> PathBuf {
        self.folder.join("caddy")
    }

    fn debian(&self, name: &str) -> PathBuf {
        self.folder.join("debian/usr/sbin").join(name)
    }

    /// Downloads the packages with a configuration of apt of their own, from where this system's come from.
    fn unpack(&self) -> Result<()> {
        let apt = self.folder.join("apt");
        for folder in ["lists/partial", "archives/partial", "parts", "packages"] {
            std::fs::create_dir_all(apt.join(folder))?;
        }
        let listed = Command::new("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]).output()?;
        let listed = String::from_utf8(listed.stdout)?;
        let uri = listed
            .lines()
            .find(|uri| uri.trim_end_matches('/').ends_with("/debian"))
            .ok_or("apt knows no Debian mirror here: `apt-get update` first")?;
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        std::fs::write(apt.join("sources.list"), format!("deb [signed-by={keys}] {uri} {RELEASE} main\n"))?;
        std::fs::write(apt.join("status"), "")?;
        let options = [
            ("Dir::State::lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache::archives", "archives"),
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "parts"),
        ];
        let options = options.map(|(option, place)| format!("-o{option}={}", apt.join(place).display()));
        let packages = apt.join("packages");
        run(Command::new("apt-get").args(&options).args(["--quiet", "update"]))?;
        run(Command::new("apt-get")
            .args(&options)
            .args(["--quiet", "download"])
            .args(PACKAGES)
            .current_dir(&packages))?;
        for package in std::fs::read_dir(&packages)? {
            run(Command::new("dpkg").arg("--extract").arg(package?.path()).arg(self.folder.join("debian")))?;
        }
        Ok(())
    }

    /// The words that start a program of the packages, on any release.
    fn start(&self, name: &str) -> Vec<PathBuf> {
        let libraries = self.folder.join("debian/usr/lib/x86_64-linux-gnu");
        vec![libraries.join("ld-linux-x86-64.so.2"), "--library-path".into(), libraries, self.debian(name)]
    }

    /// The program and arguments of a rival. Its configuration is what its documentation gives for production, without a log.
    pub(super) fn command(&self, name: &str, place: &Place<'_>) -> Result<Vec<PathBuf>> {
        let file = Self::configure(name, place)?;
        match name {
            "nginx" => Ok(self.nginx(file)),
            "haproxy" if place.live.is_some() => {
                Ok(vec![self.starter()?, "-W".into(), "-db".into(), "-f".into(), file])
            }
            "haproxy" => Ok([self.start("haproxy"), vec!["-db".into(), "-f".into(), file]].concat()),
            _ => {
                let words = ["run", "--adapter", "caddyfile", "--config"].map(PathBuf::from);
                Ok([vec![self.caddy()], words.to_vec(), vec![file]].concat())
            }
        }
    }

    /// Writes a rival's configuration; the file.
    pub(super) fn configure(name: &str, place: &Place<'_>) -> Result<PathBuf> {
        let (file, text) = match name {
            "nginx" => {
                let file = place.folder.join("nginx.conf");
                let text = nginx(&file, &nginx_front(place), place);
                (file, text)
            }
            "haproxy" => {
                let pem = place.folder.join("haproxy.pem");
                let both = std::fs::read_to_string(place.cert)? + &std::fs::read_to_string(place.key)?;
                std::fs::write(&pem, both)?;
                (place.folder.join("haproxy.cfg"), haproxy(place, &pem))
            }
            "caddy" => (place.folder.join("Caddyfile"), caddy(place)),
            other => return Err(format!("no rival {other:?}").into()),
        };
        std::fs::write(&file, text)?;
        Ok(file)
    }

    /// A script that starts HAProxy, and that its master starts again at each reload: it knows itself by its first word.
    fn starter(&self) -> Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let script = self.folder.join("haproxy");
        let words = self.start("haproxy");
        let [loader, option, libraries, program] = &words[..] else { return Err("no loader".into()) };
        let (loader, option, libraries) = (loader.display(), option.display(), libraries.display());
        let text = format!(
            "#!/bin/sh\nexec {loader} --argv0 {} {option} {libraries} {} \"$@\"\n",
            script.display(),
            program.display()
        );
        std::fs::write(&script, text)?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
        Ok(script)
    }

    /// The application behind all: files over plain HTTP/1.1.
    pub(super) fn upstream(&self, place: &Place<'_>) -> Result<Vec<PathBuf>> {
        let server = format!(
            "server {{ listen 127.0.0.1:{} backlog=1024; root {}; }}",
            place.upstream,
            place.www.display()
        );
        let file = place.folder.join("upstream.conf");
        std::fs::write(&file, nginx(&file, &server, place))?;
        Ok(self.nginx(file))
    }

    fn nginx(&self, file: PathBuf) -> Vec<PathBuf> {
        [self.start("nginx"), vec!["-e".into(), "stderr".into(), "-c".into(), file]].concat()
    }
}

fn nginx(file: &Path, servers: &str, place: &Place<'_>) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let folder = place.folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder}/{stem}-{kind};\n"))
        .concat();
    // Only a master can reload; its workers read what its user may.
    let processes =
        if place.live.is_some() { "master_process on; user root root" } else { "master_process off" };
    format!(
        "daemon off; {processes}; worker_processes 1; pid {folder}/{stem}.pid; error_log stderr error;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n{temporary}access_log off; sendfile on; default_type application/octet-stream;\n\
         keepalive_requests 1000000000; open_file_cache max=1000;\n{servers}\n}}\n"
    )
}

/// Idle connections to the upstream that each server keeps, as the edge does by default: there are 100 requests at once.
/// HAProxy has no bound.
const IDLE_UPSTREAM: u32 = 256;

fn nginx_front(place: &Place<'_>) -> String {
    let Place { port, upstream, cert, key, www, .. } = place;
    let (reuse, more) = match &place.live {
        Some(live) => ("reuseport", format!("http2 on; add_header x-generation {};", live.generation)),
        None => ("", String::new()),
    };
    format!(
        "upstream app {{ server 127.0.0.1:{upstream}; keepalive {IDLE_UPSTREAM}; keepalive_requests 1000000000; }}\n\
         server {{\n listen 127.0.0.1:{port} quic {reuse}; listen 127.0.0.1:{port} ssl; quic_gso on; {more}\n\
         ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.3;\n\
         location {} {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}\n\
         location / {{ root {}; }}\n}}",
        cert.display(),
        key.display(),
        prefix(place),
        www.display()
    )
}

/// The paths that go to the upstream.
fn prefix(place: &Place<'_>) -> &'static str {
    place.live.as_ref().map_or("/app/", |live| live.prefix)
}

/// It has no static files: without reloads, that one comes from its memory.
fn haproxy(place: &Place<'_>, pem: &Path) -> String {
    let Place { port, upstream, www, .. } = place;
    let (pem, address) = (pem.display(), format!("127.0.0.1:{port}"));
    let (also, rule) = match &place.live {
        Some(live) => (
            format!("bind {address} ssl crt {pem} alpn h2\n "),
            format!("http-response set-header x-generation {}", live.generation),
        ),
        None => (
            String::new(),
            format!(
                "http-request return status 200 content-type application/octet-stream file {}/{} if {{ path /{} }}",
                www.display(),
                super::BYTES,
                super::BYTES
            ),
        ),
    };
    format!(
        "global\n limited-quic\n nbthread 1\n maxconn 4000\ndefaults\n mode http\n timeout connect 5s\n timeout client 60s\n \
         timeout server 60s\nfrontend front\n {also}bind quic4@{address} ssl crt {pem} alpn h3\n {rule}\n \
         default_backend app\nbackend app\n http-reuse always\n server app 127.0.0.1:{upstream}\n"
    )
}

fn caddy(place: &Place<'_>) -> String {
    let Place { port, upstream, cert, key, www, folder, .. } = place;
    let (cert, key, www, folder) = (cert.display(), key.display(), www.display(), folder.display());
    let (admin, header) = match &place.live {
        Some(live) => {
            (format!("unix/{folder}/caddy.sock"), format!("header x-generation {}\n", live.generation))
        }
        None => ("off".to_owned(), String::new()),
    };
    format!(
        "{{\n admin {admin}\n persist_config off\n auto_https off\n storage file_system {folder}/caddy\n}}\n\
         https://127.0.0.1:{port} {{\n bind 127.0.0.1\n tls {cert} {key}\n {header}\
         handle {}* {{\n reverse_proxy 127.0.0.1:{upstream} {{\n transport http {{\n \
         keepalive_idle_conns_per_host {IDLE_UPSTREAM}\n }}\n }}\n }}\n handle {{\n root * {www}\n file_server\n }}\n}}\n",
        prefix(place)
    )
}

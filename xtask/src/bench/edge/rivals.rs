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

    fn caddy(&self) -> PathBuf {
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
        match name {
            "nginx" => self.nginx(&place.folder.join("nginx.conf"), &nginx_front(place), place.folder),
            "haproxy" => {
                let file = place.folder.join("haproxy.cfg");
                let pem = place.folder.join("haproxy.pem");
                let both = std::fs::read_to_string(place.cert)? + &std::fs::read_to_string(place.key)?;
                std::fs::write(&pem, both)?;
                std::fs::write(&file, haproxy(place, &pem))?;
                Ok([self.start("haproxy"), vec!["-db".into(), "-f".into(), file]].concat())
            }
            "caddy" => {
                let file = place.folder.join("Caddyfile");
                std::fs::write(&file, caddy(place))?;
                Ok(vec![
                    self.caddy(),
                    "run".into(),
                    "--adapter".into(),
                    "caddyfile".into(),
                    "--config".into(),
                    file,
                ])
            }
            other => Err(format!("no rival {other:?}").into()),
        }
    }

    /// The application behind all: files over plain HTTP/1.1.
    pub(super) fn upstream(&self, place: &Place<'_>) -> Result<Vec<PathBuf>> {
        let server = format!(
            "server {{ listen 127.0.0.1:{} backlog=1024; root {}; }}",
            place.upstream,
            place.www.display()
        );
        self.nginx(&place.folder.join("upstream.conf"), &server, place.folder)
    }

    fn nginx(&self, file: &Path, servers: &str, folder: &Path) -> Result<Vec<PathBuf>> {
        let place = folder.display();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {place}/{stem}-{kind};\n"))
            .concat();
        let text = format!(
            "daemon off; master_process off; worker_processes 1; pid {place}/{stem}.pid; error_log stderr error;\n\
             events {{ worker_connections 8192; }}\n\
             http {{\n{temporary}access_log off; sendfile on; default_type application/octet-stream;\n\
             keepalive_requests 1000000000; open_file_cache max=1000;\n{servers}\n}}\n"
        );
        std::fs::write(file, text)?;
        Ok([self.start("nginx"), vec!["-e".into(), "stderr".into(), "-c".into(), file.to_owned()]].concat())
    }
}

/// Idle connections to the upstream that each server keeps, as the edge does by default: there are 100 requests at once.
/// HAProxy has no bound.
const IDLE_UPSTREAM: u32 = 256;

fn nginx_front(place: &Place<'_>) -> String {
    let Place { port, upstream, cert, key, www, .. } = place;
    format!(
        "upstream app {{ server 127.0.0.1:{upstream}; keepalive {IDLE_UPSTREAM}; keepalive_requests 1000000000; }}\n\
         server {{\n listen 127.0.0.1:{port} quic; listen 127.0.0.1:{port} ssl; quic_gso on;\n\
         ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.3;\n\
         location /app/ {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}\n\
         location / {{ root {}; }}\n}}",
        cert.display(),
        key.display(),
        www.display()
    )
}

/// It has no static files: that one comes from its memory.
fn haproxy(place: &Place<'_>, pem: &Path) -> String {
    let Place { port, upstream, www, .. } = place;
    format!(
        "global\n limited-quic\n nbthread 1\n maxconn 4000\ndefaults\n mode http\n timeout connect 5s\n timeout client 60s\n \
         timeout server 60s\nfrontend front\n bind quic4@127.0.0.1:{port} ssl crt {} alpn h3\n \
         http-request return status 200 content-type application/octet-stream file {}/{} if {{ path /{} }}\n \
         default_backend app\nbackend app\n http-reuse always\n server app 127.0.0.1:{upstream}\n",
        pem.display(),
        www.display(),
        super::BYTES,
        super::BYTES,
    )
}

fn caddy(place: &Place<'_>) -> String {
    let Place { port, upstream, cert, key, www, folder } = place;
    format!(
        "{{\n admin off\n persist_config off\n auto_https off\n storage file_system {}/caddy\n}}\n\
         https://127.0.0.1:{port} {{\n bind 127.0.0.1\n tls {} {}\n \
         handle /app/* {{\n reverse_proxy 127.0.0.1:{upstream} {{\n transport http {{\n \
         keepalive_idle_conns_per_host {IDLE_UPSTREAM}\n }}\n }}\n }}\n handle {{\n root * {}\n file_server\n }}\n}}\n",
        folder.display(),
        cert.display(),
        key.display(),
        www.display()
    )
}

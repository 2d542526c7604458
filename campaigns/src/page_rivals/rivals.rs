//! The other servers, and how each is started at the far end of a run's path.
//!
//! The commands are run by a shell that `posthaste page` gives the page, certificate, ports and a folder in variables.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::Result;
use crate::peers::{self, Peer};

/// Where nginx may be beside `$PATH`: users have no `sbin` in it.
const SBIN: [&str; 2] = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"];

/// A server.
#[derive(Debug)]
pub(super) struct Rival {
    pub(super) name: &'static str,
    /// What has to be built.
    pub(super) peer: Option<&'static Peer>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// nginx with the kernel's TCP under this controller.
    Nginx { protocol: &'static str, controller: &'static str },
    /// A peer of `interop/`.
    Peer,
    /// `posthaste edge` in front of nginx over HTTP/1.1, at the same end of the path.
    Edge,
}

/// As `posthaste page` reads it.
#[derive(Debug, Serialize)]
struct File {
    rival: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    protocol: &'static str,
    command: String,
}

/// All of them; the first is what ratios relate to.
pub(super) fn all() -> Vec<Rival> {
    let nginx =
        |name, protocol, controller| Rival { name, peer: None, kind: Kind::Nginx { protocol, controller } };
    let peer = |name| Rival { name, peer: peers::find(name).ok(), kind: Kind::Peer };
    vec![
        nginx("nginx-h2-cubic", "h2", "cubic"),
        nginx("nginx-h2-bbr", "h2", "bbr"),
        nginx("nginx-h1-cubic", "h1", "cubic"),
        nginx("nginx-h1-bbr", "h1", "bbr"),
        peer("quiche"),
        peer("quic-go"),
        Rival { name: "edge", peer: None, kind: Kind::Edge },
    ]
}

/// nginx's program.
pub(super) fn nginx() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join("nginx"));
    in_path.chain(SBIN.map(PathBuf::from)).find(|program| program.is_file())
}

/// The file of rivals; `posthaste` is the program whose edge takes part.
pub(super) fn file(rivals: &[Rival], posthaste: &Path) -> Result<String> {
    let nginx = nginx().unwrap_or_default();
    let entry = |rival: &Rival| {
        let (protocol, command) = match rival.kind {
            Kind::Nginx { protocol, controller } => (protocol, nginx_command(&nginx, protocol, controller)),
            Kind::Peer => ("h3", peer_command(rival)),
            Kind::Edge => ("h3", edge_command(&nginx, posthaste)),
        };
        Entry { name: rival.name, protocol, command }
    };
    Ok(toml::to_string(&File { rival: rivals.iter().map(entry).collect() })?)
}

impl Rival {
    /// Why it cannot take part here, given the controllers that the kernel has.
    pub(super) fn obstacle(&self, controllers: &str) -> Option<String> {
        if matches!(self.kind, Kind::Peer) {
            return None;
        }
        if let Kind::Nginx { controller, .. } = self.kind
            && !controllers.split_whitespace().any(|known| known == controller)
        {
            return Some(format!("this kernel has no {controller} (modprobe tcp_{controller} may load it)"));
        }
        if nginx().is_none() {
            return Some("nginx is not installed (Debian, Ubuntu: apt-get install nginx)".to_owned());
        }
        let has_ip = Command::new("ip").arg("-V").output().is_ok();
        (!has_ip).then(|| "`ip` is not installed (Debian, Ubuntu: apt-get install iproute2)".to_owned())
    }
}

/// nginx as one process, on all ports of the page. The namespace is the run's own, so routes and settings are, too:
/// which controller connections towards the browser have (the setting for all would need the machine's permission for
/// controllers other than its own), and that they learn nothing from those before.
fn nginx_command(program: &Path, protocol: &str, controller: &str) -> String {
    let http2 = if protocol == "h2" { " http2" } else { "" };
    let configuration = nginx_configuration(
        "  ssl_certificate $POSTHASTE_CERT; ssl_certificate_key $POSTHASTE_KEY;
  ssl_protocols TLSv1.3; ssl_session_cache shared:tls:1m; ssl_early_data on;
  server { $listen root $POSTHASTE_SITE; }",
    );
    format!(
        r#"set -e
device=$(ip -o route get "$POSTHASTE_FAR" | sed 's/.* dev \([^ ]*\).*/\1/')
ip route add "$POSTHASTE_FAR/32" dev "$device" congctl {controller}
echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save
cd "$POSTHASTE_SCRATCH"
listen=
for port in $POSTHASTE_PORTS; do listen="$listen listen $port ssl{http2};"; done
{configuration}
exec '{program}' -e stderr -p "$PWD" -c "$PWD/nginx.conf"
"#,
        program = program.display()
    )
}

/// The shell command that writes `nginx.conf` with these servers.
fn nginx_configuration(servers: &str) -> String {
    format!(
        r"cat > nginx.conf <<END
daemon off; master_process off; pid nginx.pid; error_log stderr error;
events {{ worker_connections 512; }}
http {{
  types {{ text/html html; text/css css; text/javascript js; application/json json; image/bmp bmp; font/woff2 woff2; }}
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_timeout 75s;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
{servers}
}}
END"
    )
}

/// An edge for each port, with the default profile and without compression, as the other servers; all pass requests on to
/// one nginx, which has the files.
fn edge_command(nginx: &Path, posthaste: &Path) -> String {
    let configuration = nginx_configuration("  server { listen 127.0.0.1:8000; root $POSTHASTE_SITE; }");
    format!(
        r#"set -e
cd "$POSTHASTE_SCRATCH"
{configuration}
'{nginx}' -e stderr -p "$PWD" -c "$PWD/nginx.conf" &
for port in $POSTHASTE_PORTS; do
  '{posthaste}' edge --to http://127.0.0.1:8000 --listen 0.0.0.0:$port --cert "$POSTHASTE_CERT" --key "$POSTHASTE_KEY" \
    --compress off --no-access-log --json >/dev/null &
done
wait
"#,
        nginx = nginx.display(),
        posthaste = posthaste.display(),
    )
}

/// A server of `interop/` for each port.
fn peer_command(rival: &Rival) -> String {
    let program = rival.peer.map(|peer| peer.command().get_program().to_owned()).unwrap_or_default();
    format!(
        "for port in $POSTHASTE_PORTS; do '{}' server --listen 0.0.0.0:$port --cert \"$POSTHASTE_CERT\" --key \"$POSTHASTE_KEY\" \
         --root \"$POSTHASTE_SITE\" >/dev/null & done; wait",
        program.to_string_lossy()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_names_every_server() {
        let text = file(&all(), Path::new("/bin/posthaste")).unwrap();
        let read: toml::Table = text.parse().unwrap();
        let rivals = read["rival"].as_array().unwrap();
        assert_eq!(rivals.len(), 7);
        let command = |index: usize| rivals[index]["command"].as_str().unwrap();
        assert!(command(1).contains("congctl bbr") && command(1).contains("ssl http2;"));
        assert!(command(2).contains("$port ssl;") && !command(2).contains("http2"));
        assert!(command(5).contains("peer-quic-go' server --listen 0.0.0.0:$port"));
        assert!(
            command(6).contains("'/bin/posthaste' edge --to")
                && command(6).contains("listen 127.0.0.1:8000;")
        );
    }
}

//! What the site says over TCP of its HTTP/3 (`Alt-Svc`, RFC 7838).

use std::net::SocketAddr;

use http::{HeaderMap, header};

use super::Subject;
use super::finding::Finding;
use super::over_tcp::Visit;
use super::versions;

/// Where HTTP/3 is said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// There is no such field.
    Nothing,
    /// The field says that there is no alternative.
    Cleared,
    /// The field has no `h3`.
    NoHttp3(String),
    /// On another host.
    Elsewhere(String),
    Port(u16),
}

/// Reads the field. What is not understood is as good as not said, as to browsers.
pub(super) fn told(fields: &HeaderMap) -> Told {
    let values = fields.get_all(header::ALT_SVC).iter().filter_map(|value| value.to_str().ok());
    let members: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    if members.is_empty() {
        return Told::Nothing;
    }
    if members.contains(&"clear") {
        return Told::Cleared;
    }
    for member in &members {
        let Some(authority) = member.strip_prefix("h3=") else { continue };
        let authority = authority.split(';').next().unwrap_or_default().trim().trim_matches('"');
        match authority.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            Some(("", Ok(port))) => return Told::Port(port),
            Some((_, Ok(_))) => return Told::Elsewhere(authority.to_owned()),
            _ => {}
        }
    }
    Told::NoHttp3(members.join(", "))
}

/// Whether browsers are led to HTTP/3. `is_on_port` says that it is on the port of the URL.
pub(super) async fn finding(
    subject: &Subject,
    told: &Told,
    visit: &Visit,
    addresses: &[SocketAddr],
    is_on_port: bool,
) -> Finding {
    const CHECK: &str = "alt-svc";
    let port = subject.port;
    let add = format!(
        "have the TCP server send `Alt-Svc: h3=\":{port}\"; ma=86400`; `posthaste edge` prints the line"
    );
    match told {
        Told::Nothing => {
            let detail =
                format!("the answer over {} has no Alt-Svc: browsers do not find HTTP/3", visit.protocol);
            Finding::failed(CHECK, detail, add)
        }
        Told::Cleared => Finding::failed(CHECK, "Alt-Svc says `clear`: browsers leave HTTP/3", add),
        Told::NoHttp3(value) => Finding::failed(CHECK, format!("Alt-Svc names no h3: {value}"), add),
        Told::Elsewhere(authority) => {
            Finding::skipped(CHECK, format!("Alt-Svc leads to {authority}; examine that host as well"))
        }
        Told::Port(other) if *other == port => Finding::ok(CHECK, format!("h3 on UDP port {port}")),
        Told::Port(other) => {
            let at = |address: &SocketAddr| SocketAddr::new(address.ip(), *other);
            let addresses: Vec<_> = addresses.iter().map(at).collect();
            if versions::any_answers(&addresses, subject.timeout).await {
                let detail =
                    format!("h3 on UDP port {other}, where QUIC answers; the checks below are of {port}");
                let next = format!(
                    "examine it with `--port {other}`, or use one port: many networks let only 443 through"
                );
                return Finding::warning(CHECK, detail, next);
            }
            let detail = format!("Alt-Svc names UDP port {other}, where nothing answers");
            let next = if is_on_port { format!("HTTP/3 is on {port}: {add}") } else { add };
            Finding::failed(CHECK, detail, next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_read() {
        let of = |values: &[&str]| {
            let fields = values.iter().map(|value| (header::ALT_SVC, value.parse().unwrap()));
            told(&fields.collect())
        };
        assert_eq!(of(&[]), Told::Nothing);
        assert_eq!(of(&["clear"]), Told::Cleared);
        assert_eq!(of(&["h3=\":443\"; ma=86400"]), Told::Port(443));
        assert_eq!(of(&["h2=\"a.test:443\", h3-29=\":1\"", "h3=\":8443\";ma=1;persist=1"]), Told::Port(8443));
        assert_eq!(of(&["h3=\"a.test:443\""]), Told::Elsewhere("a.test:443".to_owned()));
        for value in ["h3-29=\":443\"", "h3=\":x\"", "h3=", "h3", ""] {
            assert_eq!(of(&[value]), Told::NoHttp3(value.to_owned()), "{value}");
        }
    }
}

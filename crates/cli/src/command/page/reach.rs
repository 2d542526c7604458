//! Whether a page of a URL can be loaded over an emulated path: the path's far end is the network that this command is
//! in, so a server must be on this machine, and without root there is no way into that network from the path.

use std::net::{IpAddr, TcpListener, ToSocketAddrs};

use super::target::Contestant;
use crate::exit::Failure;

/// What to do about it.
const AS_IT_IS: &str = "--path none loads it over the network as it is";

/// Refuses what every visit would fail with; `is_permitted` says whether tunnels may be made where this runs.
pub(super) fn check(contestant: &Contestant, is_permitted: bool) -> Result<(), Failure> {
    let (host, _) = contestant.host_and_port();
    judge(&contestant.url(), &host, &addresses(&host), is_permitted)
}

fn judge(url: &str, host: &str, addresses: &[IpAddr], is_permitted: bool) -> Result<(), Failure> {
    if addresses.is_empty() {
        return Err(elsewhere(url, &format!("no address of {host} is known here")));
    }
    if !addresses.iter().any(|address| is_own(*address)) {
        return Err(elsewhere(url, &format!("{host} is another machine")));
    }
    if is_permitted {
        return Ok(());
    }
    Err(Failure::runtime(format!(
        "{url} over an emulated path needs root: without it the path leads into an empty network namespace, where no server is"
    ))
    .hint(format!("run it as root, or omit the path: {AS_IT_IS}")))
}

/// Refuses a server that is not at the far end.
fn elsewhere(url: &str, why: &str) -> Failure {
    Failure::usage(format!("{url} cannot be loaded over an emulated path: its far end is this machine, and {why}"))
        .hint(format!(
            "{AS_IT_IS}; a server on this machine has the name localhost, or one that means an address of it (/etc/hosts)"
        ))
}

/// What the host means here.
fn addresses(host: &str) -> Vec<IpAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // Names under it are always this machine (RFC 6761 section 6.3), and browsers do not ask.
    if host == "localhost" || host.ends_with(".localhost") {
        return vec![IpAddr::from([127, 0, 0, 1])];
    }
    let found = (host, 0).to_socket_addrs();
    found.map(|all| all.map(|address| address.ip()).collect()).unwrap_or_default()
}

/// Only one's own addresses can be listened on.
fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || TcpListener::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Protocol;
    use super::super::target::Origin;
    use super::*;

    fn refusal(url: &str, is_permitted: bool) -> Option<String> {
        let name = url.to_owned();
        let contestant = Contestant { origin: Origin::Url(name.clone()), name, protocol: Protocol::H3 };
        check(&contestant, is_permitted).err().map(|failure| failure.to_string())
    }

    #[test]
    fn a_server_on_this_machine_takes_root() {
        for url in
            ["https://localhost:4433/", "https://a.localhost/", "https://127.0.0.2/", "https://[::1]:4433/x"]
        {
            assert_eq!(refusal(url, true), None, "{url}");
            let refused = refusal(url, false).unwrap();
            assert!(refused.contains("needs root") && refused.contains("--path none"), "{refused}");
        }
    }

    #[test]
    fn a_server_elsewhere_is_not_at_the_far_end() {
        // Addresses for documentation.
        for url in ["https://192.0.2.1/", "https://[2001:db8::1]:4433/"] {
            for is_permitted in [true, false] {
                let refused = refusal(url, is_permitted).unwrap();
                assert!(
                    refused.contains("is another machine") && refused.contains("--path none"),
                    "{refused}"
                );
            }
        }
        let nowhere = judge("https://a.test/", "a.test", &[], true).unwrap_err().to_string();
        assert!(nowhere.contains("no address of a.test is known here"), "{nowhere}");
    }
}

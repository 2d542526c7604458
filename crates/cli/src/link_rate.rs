//! The speed of the network interface that leads to a server, as the system tells it (Linux).

use std::fs;
use std::net::{IpAddr, ToSocketAddrs};

use posthaste_units::Rate;

use crate::exit::Failure;

/// The speed of the interface by which packets to `host` leave.
///
/// # Errors
/// A usage error that asks for the rate: the host is unknown, no route leads to it, or the interface has no speed
/// (Wi-Fi, mobile and loopback interfaces have none).
pub(crate) fn towards(host: &str) -> Result<(String, Rate), Failure> {
    let refuse = |reason: String| {
        Failure::usage(format!("--guaranteed-rate auto: {reason}"))
            .hint("give the rate that the network guarantees, for example --guaranteed-rate 5mbit")
    };
    let address = (host.trim_matches(['[', ']']), 443).to_socket_addrs();
    let address = address.ok().and_then(|mut found| found.next());
    let address = address.ok_or_else(|| refuse(format!("{host} has no address")))?.ip();
    let interface = interface(address).ok_or_else(|| refuse(format!("no route to {address} is known")))?;
    let speed = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok();
    let rate = speed.as_deref().and_then(rate);
    let rate = rate.ok_or_else(|| refuse(format!("the interface {interface} does not tell its speed")))?;
    Ok((interface, rate))
}

/// What `/sys/class/net/*/speed` says, in Mbit/s: -1 or 0 for an unknown speed.
fn rate(speed: &str) -> Option<Rate> {
    let mbit: u64 = speed.trim().parse().ok().filter(|mbit| *mbit > 0)?;
    Some(Rate::from_bits_per_second(mbit.checked_mul(1_000_000)?))
}

#[cfg(not(target_os = "linux"))]
fn interface(_: IpAddr) -> Option<String> {
    None
}

/// The interface by which packets to `address` leave: the one with the address that the system would send them from.
#[cfg(target_os = "linux")]
fn interface(address: IpAddr) -> Option<String> {
    let own = posthaste_endpoint::source_towards((address, 443).into()).ok()?;
    let mut interfaces = nix::ifaddrs::getifaddrs().ok()?;
    let found = interfaces.find(|interface| interface.address.as_ref().and_then(ip) == Some(own))?;
    Some(found.interface_name)
}

#[cfg(target_os = "linux")]
fn ip(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = || address.as_sockaddr_in().map(|address| address.ip().into());
    address.as_sockaddr_in6().map(|address| address.ip().into()).or_else(v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_speeds_are_none() {
        assert_eq!(rate("1000\n"), Some(Rate::from_bits_per_second(1_000_000_000)));
        for unknown in ["-1\n", "0\n", "", "fast", "18446744073709551615"] {
            assert_eq!(rate(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_route_decides() {
        use std::net::Ipv4Addr;

        assert_eq!(interface(Ipv4Addr::new(127, 1, 2, 3).into()), interface(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(interface(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
    }
}

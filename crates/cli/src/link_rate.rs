//! The speed of the network interface that leads to a server, as the system tells it (Linux).

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use posthaste_units::Rate;

use crate::exit::Failure;

/// IPv6's routing table has routes that refuse (`RTF_REJECT`).
const REJECTS: u32 = 0x200;

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

/// The interface of the route to `address`.
fn interface(address: IpAddr) -> Option<String> {
    if address.is_loopback() {
        return Some("lo".to_owned());
    }
    let table = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).ok();
    match address {
        IpAddr::V4(address) => route_v4(&table("route")?, address),
        IpAddr::V6(address) => route_v6(&table("ipv6_route")?, address),
    }
}

/// A route that fits: the longest prefix wins, of several the least metric.
fn best(routes: impl Iterator<Item = (u32, u32, String)>) -> Option<String> {
    let best = routes.min_by_key(|(prefix, metric, _)| (u32::MAX - prefix, *metric));
    best.map(|(.., interface)| interface)
}

/// By `/proc/net/route`: interface, destination, gateway, flags, references, use, metric, mask; addresses as the
/// memory has them.
fn route_v4(table: &str, address: Ipv4Addr) -> Option<String> {
    let address = u32::from_ne_bytes(address.octets());
    best(table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, destination, _, _, _, _, metric, mask, ..] = fields[..] else { return None };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let (destination, mask) = (hex(destination)?, hex(mask)?);
        let fits = address & mask == destination;
        fits.then_some((mask.count_ones(), metric.parse().ok()?, interface.to_owned()))
    }))
}

/// By `/proc/net/ipv6_route`: destination, its prefix, source, its prefix, next hop, metric, references, use, flags,
/// interface.
fn route_v6(table: &str, address: Ipv6Addr) -> Option<String> {
    let address = u128::from(address);
    best(table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [destination, prefix, _, _, _, metric, _, _, flags, interface] = fields[..] else { return None };
        let destination = u128::from_str_radix(destination, 16).ok()?;
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let (prefix, metric, flags) =
            (hex(prefix).filter(|prefix| *prefix <= 128)?, hex(metric)?, hex(flags)?);
        let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        let fits = address & mask == destination && flags & REJECTS == 0;
        fits.then_some((prefix, metric, interface.to_owned()))
    }))
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
    #[cfg(target_endian = "little")]
    fn the_longest_prefix_leads_and_then_the_least_metric() {
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            cut\t00\n\
            tun0\t0000000A\t00000000\t0001\t0\t0\t600\t000000FF\t0\t0\t0\n";
        let route = |address: &str| route_v4(table, address.parse().unwrap());
        assert_eq!(route("192.0.2.1").as_deref(), Some("eth0"));
        assert_eq!(route("10.9.8.7").as_deref(), Some("tun0"));
        assert_eq!(route_v4("", Ipv4Addr::LOCALHOST), None);
    }

    #[test]
    fn routes_of_ipv6_that_refuse_do_not_lead() {
        let zero = "0".repeat(32);
        let line = |destination: &str, prefix: &str, metric: &str, flags: &str, interface: &str| {
            format!(
                "{destination} {prefix} {zero} 00 {zero} {metric} 00000001 00000000 {flags} {interface}\n"
            )
        };
        let table = [
            line(&zero, "00", "00000400", "00450003", "eth0"),
            line(&zero, "00", "00000001", "00200200", "lo"),
            line("20010db8000000000000000000000000", "20", "00000400", "00000001", "tun0"),
            line(&zero, "ff", "00000001", "00000001", "odd"),
        ];
        let route = |address: &str| route_v6(&table.concat(), address.parse().unwrap());
        assert_eq!(route("2001:db8::1").as_deref(), Some("tun0"));
        assert_eq!(route("2606::1").as_deref(), Some("eth0"));
    }
}

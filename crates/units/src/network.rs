//! Clients by their addresses.

use std::net::{IpAddr, Ipv6Addr};

/// The address that stands for all addresses of one client: an IPv4 address itself, the /64 of an IPv6 address (hosts choose
/// the lower half freely, RFC 4291 section 2.5.1). Shares between clients are counted by it.
pub fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_ipv4_address_or_the_64_of_an_ipv6_address() {
        let network = |address: &str| client_network(address.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8:0:0:ffff::2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}

//! The servers' settings, with what `[edge.limits]` says. All of them offer WebSocket, and HTTP/3 ranks by type.

use std::time::Duration;

use posthaste_edge::Limits;
use posthaste_endpoint::ByteCount;
use posthaste_http::ServerOptions;
use posthaste_tcp::TcpOptions;
use toml::Spanned;

/// For HTTP/1.1 and HTTP/2.
pub(super) fn over_tcp(limits: &Limits) -> TcpOptions {
    let mut options = TcpOptions { upgrades: true, ..TcpOptions::default() };
    set(&mut options.max_connections, limits.connections.as_ref(), count);
    // By default a part of all.
    options.max_connections_per_client = options.max_connections_per_client.min(options.max_connections);
    set(&mut options.max_connections_per_client, limits.connections_per_client.as_ref(), count);
    set(&mut options.max_requests, limits.requests.as_ref(), count);
    set(&mut options.max_streams, limits.http2_streams.as_ref(), |it| it as u32);
    set(&mut options.max_header_size, limits.head.as_ref(), |it| it.get() as u32);
    set(&mut options.handshake_timeout, limits.handshake_timeout.as_ref(), duration);
    set(&mut options.header_timeout, limits.head_timeout.as_ref(), duration);
    set(&mut options.idle_timeout, limits.idle_timeout.as_ref(), duration);
    set(&mut options.stall_timeout, limits.stall_timeout.as_ref(), duration);
    options
}

/// For HTTP/3.
pub(super) fn over_quic(limits: &Limits) -> ServerOptions {
    let mut options = ServerOptions { upgrades: true, rank_by_type: true, ..ServerOptions::default() };
    set(&mut options.max_connections, limits.connections.as_ref(), count);
    set(&mut options.max_requests, limits.requests.as_ref(), count);
    options.max_requests_per_client = options.max_requests_per_client.min(options.max_requests);
    set(&mut options.max_requests_per_client, limits.requests_per_client.as_ref(), count);
    set(&mut options.max_header_size, limits.head.as_ref(), ByteCount::get);
    set(&mut options.header_timeout, limits.head_timeout.as_ref(), duration);
    set(&mut options.stall_timeout, limits.stall_timeout.as_ref(), duration);
    options
}

fn set<T, V: Copy>(option: &mut T, value: Option<&Spanned<V>>, convert: impl FnOnce(V) -> T) {
    if let Some(value) = value {
        *option = convert(*value.get_ref());
    }
}

/// The configuration has checked the range.
fn count(value: i64) -> usize {
    value as usize
}

fn duration(value: posthaste_edge::Span) -> Duration {
    value.duration()
}

#[cfg(test)]
mod tests {
    use posthaste_edge::Config;

    use super::*;

    fn limits(text: &str) -> Limits {
        let text = format!("[edge.limits]\n{text}");
        Config::parse(std::path::Path::new("edge.toml"), text).unwrap().edge.limits
    }

    #[test]
    fn what_is_not_said_is_as_the_servers_have_it() {
        let (tcp, quic) = (over_tcp(&Limits::default()), over_quic(&Limits::default()));
        assert_eq!(tcp.max_connections, TcpOptions::default().max_connections);
        assert_eq!(tcp.max_connections_per_client, TcpOptions::default().max_connections_per_client);
        assert_eq!(quic.max_requests_per_client, ServerOptions::default().max_requests_per_client);
        assert!(tcp.upgrades && quic.upgrades);
    }

    #[test]
    fn each_limit_reaches_the_servers() {
        let limits = limits(
            "connections = 7\nconnections-per-client = 5\nrequests = 6\nrequests-per-client = 4\nhttp2-streams = 3\n\
             head = \"16KiB\"\nhandshake-timeout = \"1s\"\nhead-timeout = \"2s\"\nidle-timeout = \"3s\"\n\
             stall-timeout = \"4s\"",
        );
        let (tcp, quic) = (over_tcp(&limits), over_quic(&limits));
        assert_eq!((tcp.max_connections, quic.max_connections, tcp.max_connections_per_client), (7, 7, 5));
        assert_eq!((tcp.max_requests, quic.max_requests, quic.max_requests_per_client), (6, 6, 4));
        assert_eq!((tcp.max_streams, tcp.max_header_size, quic.max_header_size), (3, 16 << 10, 16 << 10));
        let seconds = Duration::from_secs;
        assert_eq!((tcp.handshake_timeout, tcp.header_timeout), (seconds(1), seconds(2)));
        assert_eq!((quic.header_timeout, tcp.idle_timeout), (seconds(2), seconds(3)));
        assert_eq!((tcp.stall_timeout, quic.stall_timeout), (seconds(4), seconds(4)));
    }

    #[test]
    fn a_part_is_not_above_the_whole() {
        let limits = limits("connections = 10\nrequests = 20");
        assert_eq!(over_tcp(&limits).max_connections_per_client, 10);
        assert_eq!(over_quic(&limits).max_requests_per_client, 20);
    }
}

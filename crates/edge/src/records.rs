//! How browsers learn that a site speaks HTTP/3.

/// The port of an `https` URL that names none.
const HTTPS: u16 = 443;

/// Who answers over TCP at the origin's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpSide {
    /// Nobody.
    Nobody,
    /// This edge, with HTTP/1.1 and 2.
    Edge,
    /// The server of the same site, which owns that port.
    Neighbour {
        /// The port in the site's URLs.
        port: u16,
    },
}

/// What a site's owner publishes for the edge to be found.
#[derive(Debug, Clone, Copy)]
pub struct Discovery<'a> {
    /// The site's name.
    pub domain: &'a str,
    /// The edge's UDP port.
    pub port: u16,
    /// Who answers over TCP.
    pub tcp: TcpSide,
}

impl Discovery<'_> {
    /// The port in the site's URLs.
    pub fn origin_port(&self) -> u16 {
        match self.tcp {
            TcpSide::Neighbour { port } => port,
            TcpSide::Nobody | TcpSide::Edge => self.port,
        }
    }

    /// The response field (RFC 7838).
    pub fn alt_svc(&self) -> String {
        format!("h3=\":{}\"; ma=86400", self.port)
    }

    /// The DNS record (RFC 9460). It promises what is answered at the place that it names, and nothing else:
    /// without `no-default-alpn` a record says that HTTP/1.1 is spoken there, too (section 7.1.2), and `port` moves all
    /// its protocols (section 7.2).
    pub fn https_record(&self) -> String {
        let (domain, origin) = (self.domain, self.origin_port());
        // An origin at another port has its own record (section 9.1).
        let (owner, target) = if origin == HTTPS {
            (format!("{domain}."), ".".to_owned())
        } else {
            (format!("_{origin}._https.{domain}."), format!("{domain}."))
        };
        let parameters = if self.port != origin {
            format!("alpn=\"h3\" no-default-alpn port={}", self.port)
        } else if self.tcp == TcpSide::Nobody {
            "alpn=\"h3\" no-default-alpn".to_owned()
        } else {
            "alpn=\"h3,h2\"".to_owned()
        };
        format!("{owner} 300 IN HTTPS 1 {target} {parameters}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(port: u16, tcp: TcpSide) -> String {
        Discovery { domain: "a.test", port, tcp }.https_record()
    }

    #[test]
    fn a_record_promises_only_what_is_spoken_there() {
        let h3_only = "a.test. 300 IN HTTPS 1 . alpn=\"h3\" no-default-alpn";
        assert_eq!(record(443, TcpSide::Nobody), h3_only);
        assert_eq!(record(443, TcpSide::Edge), "a.test. 300 IN HTTPS 1 . alpn=\"h3,h2\"");
        let neighbour = TcpSide::Neighbour { port: 443 };
        assert_eq!(record(443, neighbour), "a.test. 300 IN HTTPS 1 . alpn=\"h3,h2\"");
        assert_eq!(record(8443, neighbour), format!("{h3_only} port=8443"));
        assert_eq!(
            record(8443, TcpSide::Nobody),
            "_8443._https.a.test. 300 IN HTTPS 1 a.test. alpn=\"h3\" no-default-alpn"
        );
        assert_eq!(
            record(443, TcpSide::Neighbour { port: 8443 }),
            "_8443._https.a.test. 300 IN HTTPS 1 a.test. alpn=\"h3\" no-default-alpn port=443"
        );
    }
}

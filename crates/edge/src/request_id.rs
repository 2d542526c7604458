//! Names of requests, by which several logs speak of the same one.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{HeaderName, HeaderValue};
use posthaste_proxy::ipnet::IpNet;
use posthaste_service::{Peer, Request, Response};

/// Characters of an id that somebody else has given, at most.
const MAX_LENGTH: usize = 128;

/// Gives each request its id, and tells whom it is to tell.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    source: Source,
    rules: Option<Rules>,
}

/// Who else is to know of ids.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) header: HeaderName,
    /// Networks of clients whose ids are taken over.
    pub(crate) accept_from: Vec<IpNet>,
    pub(crate) upstream: bool,
    pub(crate) response: bool,
}

/// A field that the response is to have.
pub(crate) struct Told {
    header: HeaderName,
    id: HeaderValue,
}

impl RequestIds {
    pub(crate) fn new(rules: Option<Rules>) -> Self {
        Self { source: Source::default(), rules }
    }

    /// Whether the upstream or the client learns of ids.
    pub(crate) fn are_told(&self) -> bool {
        self.rules.is_some()
    }

    /// The request's id: that of a trusted client, or a new one.
    pub(crate) fn of(&self, request: &Request) -> Arc<str> {
        self.rules.as_ref().and_then(|rules| rules.accepted(request)).unwrap_or_else(|| self.source.next())
    }

    /// Writes the id into the request for the upstream, and for the response into what is returned.
    pub(crate) fn tell(&self, request: &mut Request, id: &str) -> Option<Told> {
        let rules = self.rules.as_ref()?;
        let header = rules.header.clone();
        let id = HeaderValue::from_str(id).ok()?;
        if rules.upstream {
            request.headers_mut().insert(header.clone(), id.clone());
        }
        rules.response.then_some(Told { header, id })
    }
}

impl Told {
    pub(crate) fn apply(self, response: &mut Response) {
        response.headers_mut().insert(self.header, self.id);
    }
}

impl Rules {
    fn accepted(&self, request: &Request) -> Option<Arc<str>> {
        let client = request.extensions().get::<Peer>()?.address.ip().to_canonical();
        let mut values = request.headers().get_all(&self.header).iter();
        let (Some(id), None) = (values.next(), values.next()) else { return None };
        let id = id.to_str().ok().filter(|id| is_id(id))?;
        self.is_trusted(client).then(|| id.into())
    }

    fn is_trusted(&self, client: IpAddr) -> bool {
        self.accept_from.iter().any(|network| network.contains(&client))
    }
}

/// True for what can stand in a log and in a field as it is.
fn is_id(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+/=:@".contains(&byte);
    (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(is_fine)
}

/// 128 bits as hexadecimal digits: two keyed hashes of a count, so that an id does not tell how many there were. The keys
/// are the process's own.
#[derive(Debug, Default)]
struct Source {
    keys: [RandomState; 2],
    count: AtomicU64,
}

impl Source {
    fn next(&self) -> Arc<str> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let [high, low] = [&self.keys[0], &self.keys[1]].map(|keys| keys.hash_one(count));
        format!("{high:016x}{low:016x}").into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use posthaste_service::{Body, Protocol};

    use super::*;

    fn request(client: &str, ids: &[&str]) -> Request {
        let mut request = Request::new(Body::empty());
        let address = std::net::SocketAddr::new(client.parse().unwrap(), 1);
        request.extensions_mut().insert(Peer::new(address, Protocol::Http2, None));
        for id in ids {
            request.headers_mut().append("x-request-id", id.parse().unwrap());
        }
        request
    }

    fn rules() -> Rules {
        let header = HeaderName::from_static("x-request-id");
        let accept_from = vec!["10.0.0.0/8".parse().unwrap()];
        Rules { header, accept_from, upstream: true, response: true }
    }

    #[test]
    fn new_ids_are_all_different_and_have_one_form() {
        let ids = RequestIds::new(None);
        let all: HashSet<_> = (0..1000).map(|_| ids.of(&request("10.0.0.1", &["theirs"]))).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }

    #[test]
    fn ids_of_trusted_clients_are_taken_over_if_they_can_stand_in_a_log() {
        let ids = RequestIds::new(Some(rules()));
        let long = "x".repeat(MAX_LENGTH + 1);
        for (client, given, is_taken) in [
            ("10.1.2.3", &["abc-1"][..], true),
            ("::ffff:10.1.2.3", &["abc-1"], true),
            ("192.0.2.1", &["abc-1"], false),
            ("10.1.2.3", &["a b"], false),
            ("10.1.2.3", &["a\"b"], false),
            ("10.1.2.3", &[""], false),
            ("10.1.2.3", &[&long], false),
            ("10.1.2.3", &["a", "b"], false),
            ("10.1.2.3", &[], false),
        ] {
            let id = ids.of(&request(client, given));
            assert_eq!(given.first() == Some(&id.as_ref()), is_taken, "{client} {given:?} {id}");
        }
    }

    #[test]
    fn upstreams_get_one_id_whatever_the_client_has_sent() {
        let ids = RequestIds::new(Some(rules()));
        let mut request = request("192.0.2.1", &["a", "b"]);
        let told = ids.tell(&mut request, "ours").unwrap();
        let sent: Vec<_> = request.headers().get_all("x-request-id").iter().collect();
        assert_eq!(sent, ["ours"]);
        let mut response = Response::new(Body::empty());
        told.apply(&mut response);
        assert_eq!(response.headers()["x-request-id"], "ours");
        assert!(
            RequestIds::new(Some(Rules { response: false, ..rules() })).tell(&mut request, "x").is_none()
        );
    }
}

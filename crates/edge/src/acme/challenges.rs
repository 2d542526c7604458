//! What the authority looks for to see that a name leads here (RFC 8555 section 8.3, RFC 8737).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Method, Response};
use rustls::sign::CertifiedKey;

/// The protocol in TLS by which an authority asks for [`Challenge::TlsAlpn`] (RFC 8737 section 6.2).
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// Where HTTP-01 looks.
const PATH: &str = "/.well-known/acme-challenge/";

/// How an authority is shown that a name leads here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// By a certificate of the moment on TCP port 443.
    TlsAlpn,
    /// By a file on TCP port 80.
    Http,
}

/// The answers that are there at the moment. Clones share them.
#[derive(Clone, Default)]
pub struct Challenges(Arc<Mutex<Answers>>);

#[derive(Default)]
struct Answers {
    /// Key authorizations by token.
    files: BTreeMap<String, String>,
    /// By name.
    certificates: BTreeMap<String, Arc<CertifiedKey>>,
}

impl Challenges {
    /// The answer to an authority's request over plain HTTP; `None` for other requests.
    pub fn answer(&self, request: &http::Request<()>) -> Option<Response<Bytes>> {
        let token = request.uri().path().strip_prefix(PATH).filter(|_| *request.method() == Method::GET)?;
        let authorization = self.lock().files.get(token)?.clone();
        let mut response = Response::new(Bytes::from(authorization));
        let kind = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        Some(response)
    }

    /// The certificate that shows that this name leads here.
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.lock().certificates.get(name).cloned()
    }

    /// Gives an answer until the result is dropped.
    pub(super) fn offer(&self, answer: Answer) -> Offered {
        let mut answers = self.lock();
        let key = match answer {
            Answer::File { token, authorization } => {
                answers.files.insert(token.clone(), authorization);
                (Challenge::Http, token)
            }
            Answer::Certificate { name, key } => {
                answers.certificates.insert(name.clone(), key);
                (Challenge::TlsAlpn, name)
            }
        };
        Offered { challenges: self.clone(), key }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Challenges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let answers = self.lock();
        f.debug_struct("Challenges")
            .field("files", &answers.files.len())
            .field("certificates", &answers.certificates.len())
            .finish()
    }
}

/// One answer.
pub(super) enum Answer {
    File { token: String, authorization: String },
    Certificate { name: String, key: Arc<CertifiedKey> },
}

/// An answer that is there until this is dropped.
pub(super) struct Offered {
    challenges: Challenges,
    key: (Challenge, String),
}

impl Drop for Offered {
    fn drop(&mut self) {
        let mut answers = self.challenges.lock();
        match self.key.0 {
            Challenge::Http => drop(answers.files.remove(&self.key.1)),
            Challenge::TlsAlpn => drop(answers.certificates.remove(&self.key.1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_as_long_as_it_is_offered() {
        let challenges = Challenges::default();
        let ask = |method: &str, target: &str| {
            let request = http::Request::builder().method(method).uri(target).body(()).unwrap();
            challenges.answer(&request).map(Response::into_body)
        };
        let answer = Answer::File { token: "abc".to_owned(), authorization: "abc.thumb".to_owned() };
        let offered = challenges.offer(answer);
        assert_eq!(ask("GET", "/.well-known/acme-challenge/abc").unwrap(), "abc.thumb");
        for (method, target) in [
            ("POST", "/.well-known/acme-challenge/abc"),
            ("GET", "/.well-known/acme-challenge/"),
            ("GET", "/.well-known/acme-challenge/abcd"),
            ("GET", "/abc"),
        ] {
            assert!(ask(method, target).is_none(), "{method} {target}");
        }
        drop(offered);
        assert!(ask("GET", "/.well-known/acme-challenge/abc").is_none());
    }
}

//! The names that this server answers for: those of its certificate.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::StatusCode;
use posthaste_http::{Request, Response, text};
use posthaste_proxy::Proxy;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use tower_service::Service;

/// Passes on requests for names that the certificate covers; others get 421 (RFC 9110 section 15.5.20). A client that
/// shares a connection between names then opens another one.
#[derive(Clone)]
pub(super) struct Sites {
    certificate: Arc<CertificateDer<'static>>,
    proxy: Proxy,
}

impl Sites {
    /// For the names of the first certificate in `chain`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn new(chain: &[CertificateDer<'static>], proxy: Proxy) -> Result<Self, rustls::Error> {
        let certificate = chain.first().cloned().ok_or(rustls::Error::NoCertificatesPresented)?;
        ParsedCertificate::try_from(&certificate)?;
        Ok(Self { certificate: Arc::new(certificate), proxy })
    }

    fn covers(&self, request: &Request) -> bool {
        let Some(host) = request.uri().host() else { return false };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let (Ok(name), Ok(certificate)) =
            (ServerName::try_from(host), ParsedCertificate::try_from(&*self.certificate))
        else {
            return false;
        };
        verify_server_name(&certificate, &name).is_ok()
    }
}

impl Service<Request> for Sites {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if self.covers(&request) {
            return self.proxy.call(request);
        }
        let detail = "this server has no certificate for that name";
        Box::pin(ready(Ok(text(StatusCode::MISDIRECTED_REQUEST, detail))))
    }
}

//! Requests to the authority: bounded in time and size.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::time::timeout;

/// Time for a request and its whole response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a response.
const MAX_BODY: usize = 1 << 20;

/// A client for https only.
#[derive(Clone)]
pub(super) struct Http(legacy::Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>);

impl Http {
    /// With the trust of `tls`, whose ALPN must be empty.
    pub(super) fn new(tls: rustls::ClientConfig) -> Self {
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
        Self(legacy::Client::builder(TokioExecutor::new()).build(connector))
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let response = self.0.request(request);
        let exchange = async move {
            let (parts, body) = response.await.map_err(|error| Error::Other(error.into()))?.into_parts();
            let body = Limited::new(body, MAX_BODY).collect().await.map_err(Error::Other)?;
            Ok(BytesResponse { parts, body: Box::new(body.to_bytes()) })
        };
        Box::pin(async move {
            let late = || Error::Other("the authority does not answer".into());
            timeout(TIMEOUT, exchange).await.unwrap_or_else(|_| Err(late()))
        })
    }
}

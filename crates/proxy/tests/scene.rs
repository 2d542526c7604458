//! An upstream, a proxy in front of it, and an HTTP/3 server that runs the proxy.

use std::time::Duration;

use http::{Method, StatusCode};
use posthaste_http::client::Response;
use posthaste_http::{Body, Client, ClientError, Request};
use posthaste_proxy::{Proxy, ProxyOptions, Upstream};
use tokio::time::timeout;

use crate::common::{PATIENCE, Server};
use crate::recorder::{Message, Recorder, Reply, When};

pub(crate) struct Scene {
    pub(crate) upstream: Recorder,
    pub(crate) server: Server,
    pub(crate) client: Client,
}

impl Scene {
    /// With an upstream that answers whole requests.
    pub(crate) async fn new(answer: impl Fn(&Message) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(When::Whole, |_| {}, answer).await
    }

    pub(crate) async fn with(
        when: When,
        configure: impl FnOnce(&mut ProxyOptions),
        answer: impl Fn(&Message) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let upstream = Recorder::start(when, answer).await;
        let server = Server::start(proxy(&format!("http://{}", upstream.address), configure), |_| {});
        let client = server.client();
        Self { upstream, server, client }
    }

    pub(crate) fn request(&self, method: &Method, path: &str, body: impl Into<Body>) -> Request {
        let request = http::Request::builder().method(method).uri(self.server.uri(path));
        request.body(body.into()).unwrap()
    }

    pub(crate) async fn send(&self, request: Request) -> Result<Response, ClientError> {
        timeout(PATIENCE, self.client.send(request)).await.expect("no response comes")
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Response, ClientError> {
        self.send(self.request(&Method::GET, path, Body::empty())).await
    }

    /// The status of a further, harmless request, which must be answered.
    pub(crate) async fn is_well(&self) {
        assert_eq!(self.get("/well").await.unwrap().status(), StatusCode::OK);
    }
}

/// A proxy in front of this URL that need not wait long.
pub(crate) fn proxy(url: &str, configure: impl FnOnce(&mut ProxyOptions)) -> Proxy {
    let mut options = ProxyOptions { name: "edge".to_owned(), ..ProxyOptions::default() };
    // A busy machine is no slow upstream; tests of timeouts set their own.
    options.connect_timeout = PATIENCE;
    options.first_frame_timeout = Duration::from_secs(10);
    configure(&mut options);
    Proxy::new(Upstream::parse(url, None).unwrap(), options).unwrap()
}

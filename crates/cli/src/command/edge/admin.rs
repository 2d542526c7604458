//! The listener for operators: dashboard, figures, health, status.

use std::net::{IpAddr, SocketAddr};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use posthaste_edge::{MEDIA_TYPE, Metrics, Settings};
use posthaste_http::service::host_field;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::dashboard::Dashboard;
use crate::command::running::cannot_listen_over;
use crate::exit::Failure;

/// What there is, for those who ask for something else.
const PATHS: &str = "/         dashboard for browsers\n/metrics  figures for Prometheus\n/status   the most important ones as JSON\n\
                     /connections  open HTTP/3 connections as JSON: the slowest hundred\n\
                     /healthz  200 while the process lives\n/readyz   503 once it takes no more connections\n";

/// A listener that runs until it is dropped.
pub(super) struct Admin {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Admin {
    /// Begins to listen, if the configuration wants it.
    pub(super) async fn begin(settings: &Settings, metrics: &Metrics) -> Result<Option<Self>, Failure> {
        let Some(address) = settings.admin.as_ref().map(|address| *address.get_ref()) else {
            return Ok(None);
        };
        let failed = |error: &_| cannot_listen_over("TCP", address, error);
        let listener = TcpListener::bind(address).await.map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let (metrics, is_public) = (metrics.clone(), settings.admin_public);
        let dashboard = Dashboard::new();
        let answer = move |request: &Request<()>| answer(&metrics, &dashboard, is_public, request);
        let task = tokio::spawn(posthaste_tcp::plain(listener, answer));
        Ok(Some(Self { address, task }))
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn answer(
    metrics: &Metrics,
    dashboard: &Dashboard,
    is_public: bool,
    request: &Request<()>,
) -> Response<Bytes> {
    if !is_public && !is_local(request) {
        // A page in a browser on this machine may have a name of its own lead here.
        return text(StatusCode::MISDIRECTED_REQUEST, "ask for localhost or an address\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only\n");
    }
    match request.uri().path() {
        "/" => page(dashboard),
        "/metrics" => of_type(MEDIA_TYPE, metrics.text()),
        "/status" => json(&metrics.status(SystemTime::now())),
        "/connections" => json(&metrics.live_connections()),
        "/healthz" => text(StatusCode::OK, "alive\n"),
        "/readyz" if metrics.is_ready() => text(StatusCode::OK, "ready\n"),
        "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        _ => text(StatusCode::NOT_FOUND, PATHS),
    }
}

/// True for requests to `localhost` or an address.
fn is_local(request: &Request<()>) -> bool {
    let Some(authority) = host_field(request.headers()) else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
}

fn text(status: StatusCode, text: &str) -> Response<Bytes> {
    let mut response = of_type("text/plain; charset=utf-8", text.to_owned());
    *response.status_mut() = status;
    response
}

fn json(value: &impl serde::Serialize) -> Response<Bytes> {
    match serde_json::to_string_pretty(value) {
        Ok(json) => of_type("application/json", json + "\n"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn page(Dashboard { html, policy }: &Dashboard) -> Response<Bytes> {
    let mut response = of_type("text/html; charset=utf-8", html.clone());
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn of_type(kind: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_somebody_else_has_led_here_are_not_answered() {
        let is_local = |host: &str| is_local(&Request::builder().header("host", host).body(()).unwrap());
        for host in ["localhost:9443", "LOCALHOST", "127.0.0.1:9443", "[::1]:9443", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["evil.test", "localhost.evil.test", "", "a@localhost x"] {
            assert!(!is_local(host), "{host}");
        }
    }
}

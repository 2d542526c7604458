//! What answers a request.

use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::uri::PathAndQuery;
use http::{StatusCode, Uri};
use posthaste_http::StaticFiles;
use posthaste_proxy::Proxy;
use posthaste_service::{Body, Request, Response, text};
use tower_service::Service;

/// Stands for the request's path and query in the URL of a redirect.
const PATH: &str = "{path}";

/// What answers requests of a route.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Servers behind this one: a proxy per worker.
    Proxy(Arc<[Proxy]>),
    /// Files, looked up without `prefix`, which does not end in a slash.
    Files { files: StaticFiles, prefix: Arc<str> },
    /// 308 to this URL.
    Redirect(Arc<str>),
    /// Always the same.
    Reply { status: StatusCode, text: Arc<str> },
}

impl Action {
    /// From the text `STATUS TEXT`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn reply(text: &str) -> Result<Self, String> {
        let (status, text) = text.split_once(' ').unwrap_or((text, ""));
        let status = status.parse::<u16>().ok().filter(|status| (200..=599).contains(status));
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.ok_or("begins with a status from 200 to 599, such as \"404\" or \"200 pong\"")?;
        Ok(Self::Reply { status, text: text.into() })
    }

    /// To a URL in which `{path}` may stand.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn redirect(url: &str) -> Result<Self, String> {
        let uri = url.replace(PATH, "/").parse::<Uri>().ok();
        let is_whole = uri.is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
        });
        // Behind the host or later: elsewhere a client's path would become a part of the host.
        let host_end = url.find("://").and_then(|at| url[at + 3..].find(['/', '{']).map(|end| at + 3 + end));
        let is_placed = url.find(PATH).is_none_or(|at| host_end.is_some_and(|end| at >= end));
        if is_whole && is_placed {
            return Ok(Self::Redirect(url.into()));
        }
        Err(format!("is not a URL such as \"https://www.example.org{PATH}\""))
    }

    /// Answers a request that this worker has got.
    pub(crate) async fn answer(self, worker: usize, request: Request) -> Response {
        match self {
            Self::Proxy(proxies) => {
                let Some(mut proxy) = proxies.get(worker).cloned() else {
                    return text(StatusCode::INTERNAL_SERVER_ERROR, "");
                };
                let Ok(response) = proxy.call(request).await;
                response
            }
            Self::Files { files, prefix } => from_files(files, &prefix, request).await,
            Self::Redirect(url) => {
                let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
                let path = if path.starts_with('/') { path } else { "/" };
                redirect(&url.replace(PATH, path))
            }
            Self::Reply { status, text } => {
                let mut response = http::Response::new(Body::from(text.to_string()));
                *response.status_mut() = status;
                let kind = HeaderValue::from_static("text/plain; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                response
            }
        }
    }
}

fn redirect(to: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(to) else {
        return text(StatusCode::BAD_REQUEST, "the path is not valid");
    };
    let mut response = text(StatusCode::PERMANENT_REDIRECT, "");
    response.headers_mut().insert(header::LOCATION, location);
    response
}

async fn from_files(mut files: StaticFiles, prefix: &str, mut request: Request) -> Response {
    if !prefix.is_empty() {
        let whole = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let rest = whole.strip_prefix(prefix).unwrap_or(whole);
        if !rest.starts_with('/') {
            // The directory itself: what its page names lies below it.
            return redirect(&format!("{prefix}/{rest}"));
        }
        let Ok(path) = rest.parse::<PathAndQuery>() else {
            return text(StatusCode::BAD_REQUEST, "the path is not valid");
        };
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = Some(path);
        // What was a URI stays one with another path.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    }
    let Ok(mut response) = files.call(request).await;
    // Redirects among the files are to paths below the route's.
    if let Some(location) = response.headers().get(header::LOCATION).filter(|_| !prefix.is_empty())
        && let Ok(location) = HeaderValue::from_bytes(&[prefix.as_bytes(), location.as_bytes()].concat())
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_and_replies_are_checked_when_they_are_read() {
        for url in ["https://a.test{path}", "https://a.test/x{path}", "http://a.test:80/"] {
            assert!(Action::redirect(url).is_ok(), "{url}");
        }
        for url in ["/x", "{path}", "a.test", "https://{path}", "ftp://a", "https://a.test{path"] {
            assert!(Action::redirect(url).is_err(), "{url}");
        }
        for reply in ["200", "404 nothing here", "599"] {
            assert!(Action::reply(reply).is_ok(), "{reply}");
        }
        for reply in ["", "ok", "100", "600", "20x"] {
            assert!(Action::reply(reply).is_err(), "{reply}");
        }
    }
}

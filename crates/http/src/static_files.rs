//! Files below one directory, and nothing else (RFC 9110: GET, HEAD, ranges, preconditions).

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::handler::{Body, Handler, HandlerFuture, Response};

mod conditional;
mod file_body;
mod listing;
mod locate;
mod range;

pub use file_body::FileBody;

use conditional::{Validators, Verdict};
use file_body::Transfers;
use locate::{Found, PathError, RequestPath};
use range::RangeRequest;

/// The file that answers for its directory.
const INDEX: &str = "index.html";

/// Serves the files below one directory.
///
/// - GET and HEAD; a path to a directory serves its `index.html`, or a listing if that is switched on; without its
///   slash it redirects to the path with it.
/// - Single byte ranges; a request for several ranges is answered with the whole, as RFC 9110 permits.
/// - Strong entity tags and modification dates, with all preconditions of RFC 9110 section 13. Answers may be
///   stored but must be revalidated (`cache-control: no-cache`): the server knows nothing of the files' future.
/// - Links are followed as long as they stay below the directory. Everything else that leads out, and whatever is
///   neither a file nor a directory, does not exist.
/// - Files are read in chunks while they are sent. A file that becomes shorter meanwhile resets its stream.
#[derive(Debug, Clone)]
pub struct StaticFiles {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// A real path: absolute, without links.
    root: PathBuf,
    listing: bool,
    transfers: Transfers,
}

impl StaticFiles {
    /// Serves what is below `root`; `listing` shows directories that have no `index.html`.
    ///
    /// # Errors
    /// If `root` cannot be resolved or is no directory.
    pub fn new(root: &Path, listing: bool) -> io::Result<Self> {
        let root = root.canonicalize()?;
        // Not only to see that it is a directory: one that cannot be read is better reported now.
        std::fs::read_dir(&root)?;
        Ok(Self { inner: Arc::new(Inner { root, listing, transfers: Transfers::default() }) })
    }

    /// The directory, resolved.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }
}

impl Handler for StaticFiles {
    fn handle<'a>(&'a self, request: &'a http::Request<()>) -> HandlerFuture<'a> {
        Box::pin(async move {
            let is_head = request.method() == Method::HEAD;
            if !is_head && request.method() != Method::GET {
                return Response::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD")
                    .with_header(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            }
            let inner = Arc::clone(&self.inner);
            let (uri, headers) = (request.uri().clone(), request.headers().clone());
            let answer = tokio::task::spawn_blocking(move || inner.answer(&uri, &headers, is_head, now()));
            answer.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a file could not be looked up");
                Response::text(StatusCode::INTERNAL_SERVER_ERROR, "")
            })
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "file times are wall-clock times; nothing below the endpoint sees this"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

impl Inner {
    /// Answers a GET or HEAD request. Blocks on the file system.
    fn answer(&self, uri: &http::Uri, headers: &HeaderMap, is_head: bool, now: SystemTime) -> Response {
        self.try_answer(uri, headers, is_head, now).unwrap_or_else(|error| match error {
            PathError::Malformed => Response::text(StatusCode::BAD_REQUEST, "this path cannot name a file"),
            PathError::NotFound => Response::text(StatusCode::NOT_FOUND, ""),
            PathError::Forbidden => Response::text(StatusCode::FORBIDDEN, "the file system denies access"),
            PathError::Failed => Response::text(StatusCode::INTERNAL_SERVER_ERROR, ""),
        })
    }

    fn try_answer(
        &self,
        uri: &http::Uri,
        headers: &HeaderMap,
        is_head: bool,
        now: SystemTime,
    ) -> Result<Response, PathError> {
        let path = RequestPath::parse(uri.path())?;
        let target = path.below(&self.root);
        match locate::open(&self.root, &target)? {
            Found::File(..) if path.is_directory => Err(PathError::NotFound),
            Found::File(file, metadata) => {
                self.file(&target, file, &metadata, &Ask { headers, is_head, now })
            }
            Found::Directory(_) if !path.is_directory => Ok(redirect(&path, uri.query())),
            Found::Directory(directory) => {
                let index = target.join(INDEX);
                match locate::open(&self.root, &index) {
                    Ok(Found::File(file, metadata)) => {
                        self.file(&index, file, &metadata, &Ask { headers, is_head, now })
                    }
                    Ok(Found::Directory(_)) | Err(PathError::NotFound) if self.listing => {
                        let page = listing::page(&self.root, &directory, uri.path())?;
                        Ok(html(page))
                    }
                    Ok(Found::Directory(_)) => Err(PathError::NotFound),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Answers with a file, or with what its state and the request's preconditions make of it.
    fn file(
        &self,
        path: &Path,
        file: File,
        metadata: &Metadata,
        ask: &Ask<'_>,
    ) -> Result<Response, PathError> {
        let validators = Validators::of(metadata, ask.now);
        let length = metadata.len();
        let range = match conditional::evaluate(ask.headers, &validators) {
            Verdict::NotModified => {
                return Ok(with_validators(Response::new(StatusCode::NOT_MODIFIED), &validators));
            }
            Verdict::Failed => {
                let response =
                    Response::text(StatusCode::PRECONDITION_FAILED, "the file is in another state");
                return Ok(with_validators(response, &validators));
            }
            Verdict::Proceed { range_applies } => requested_range(ask, range_applies, length),
        };
        let (status, start, end) = match range {
            RangeRequest::Unsatisfiable => {
                let response =
                    Response::text(StatusCode::RANGE_NOT_SATISFIABLE, "the file has no such bytes")
                        .with_header(header::CONTENT_RANGE, value(&format!("bytes */{length}")));
                return Ok(with_validators(response, &validators));
            }
            RangeRequest::Whole => (StatusCode::OK, 0, length),
            RangeRequest::Part { start, end } => (StatusCode::PARTIAL_CONTENT, start, end),
        };
        let mut response = with_validators(Response::new(status), &validators)
            .with_header(header::CONTENT_TYPE, content_type(path))
            .with_header(header::CONTENT_LENGTH, HeaderValue::from(end - start))
            .with_header(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {start}-{}/{length}", end - 1);
            response = response.with_header(header::CONTENT_RANGE, value(&range));
        }
        if !ask.is_head && end > start {
            response.body = Body::File(FileBody::open(file, start, end, &self.transfers)?);
        }
        Ok(response)
    }
}

/// What a request says beyond its path.
struct Ask<'a> {
    headers: &'a HeaderMap,
    is_head: bool,
    now: SystemTime,
}

/// Only GET has ranges (RFC 9110 section 14.2), and several `range` fields are none.
fn requested_range(ask: &Ask<'_>, range_applies: bool, length: u64) -> RangeRequest {
    let mut fields = ask.headers.get_all(header::RANGE).iter();
    match (fields.next().map(HeaderValue::to_str), fields.next()) {
        (Some(Ok(field)), None) if range_applies && !ask.is_head => range::parse(field, length),
        _ => RangeRequest::Whole,
    }
}

/// Adds what a client may keep and how it asks whether that is still current. The files' types are the server's
/// word: `nosniff` keeps a browser from guessing another.
fn with_validators(response: Response, validators: &Validators) -> Response {
    let response = response
        .with_header(header::ETAG, value(&validators.etag))
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    match validators.modified {
        Some(modified) => {
            response.with_header(header::LAST_MODIFIED, value(&httpdate::fmt_http_date(modified)))
        }
        None => response,
    }
}

fn redirect(path: &RequestPath, query: Option<&str>) -> Response {
    let mut location = path.directory_location();
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    Response::text(StatusCode::MOVED_PERMANENTLY, &location).with_header(header::LOCATION, value(&location))
}

fn html(page: String) -> Response {
    Response::new(StatusCode::OK)
        .with_header(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with_header(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
        )
        .with_body(Bytes::from(page))
}

/// The type by the name's extension; text is taken for UTF-8.
fn content_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    let is_text =
        guess.type_() == "text" || matches!(guess.essence_str(), "application/json" | "image/svg+xml");
    if is_text && guess.get_param("charset").is_none() {
        value(&format!("{}; charset=utf-8", guess.essence_str()))
    } else {
        value(guess.as_ref())
    }
}

/// A field value of text made here: visible ASCII, or what a query brought along, which was checked on its way in.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests;

//! Files below one directory, and nothing else (RFC 9110: GET, HEAD, ranges, preconditions).

use std::convert::Infallible;
use std::fs::{File, Metadata};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::time::Instant;
use tower_service::Service;

use crate::service::{Body, Coding, Response, accepted_codings, text};

mod cache;
mod calls;
mod conditional;
mod described;
mod file_body;
mod in_place;
mod listing;
mod locate;
mod precompressed;
mod range;
mod read_budget;
mod stamp;

use cache::{Cache, Kept, Opened};
use calls::{Calls, Lane};
use conditional::Verdict;
use described::Described;
use file_body::FileBody;
use locate::{Found, PathError, RequestPath};
use range::RangeRequest;
use read_budget::ReadBudget;
use stamp::Stamp;

/// Header fields of a response with a file, and those that the server adds.
const FIELDS: usize = 12;

/// The file that answers for its directory.
const INDEX: &str = "index.html";

/// Serves the files below one directory: a service for [`serve`](crate::serve), or for a path of an axum `Router`
/// (`nest_service`).
///
/// - GET and HEAD; a path to a directory serves its `index.html`, or a listing if that is switched on; without its
///   slash it redirects to the path with it.
/// - Single byte ranges; a request for several ranges is answered with the whole, as RFC 9110 permits.
/// - Strong entity tags and modification dates, with all preconditions of RFC 9110 section 13. Answers may be
///   stored but must be revalidated (`cache-control: no-cache`): the server knows nothing of the files' future.
/// - Links are followed as long as they stay below the directory. Everything else that leads out, and whatever is
///   neither a file nor a directory, does not exist.
/// - Names that begin with a dot do not exist either, except `/.well-known` (RFC 8615): they are `.git`, `.env` and
///   the like. [`StaticFiles::with_hidden_files`] serves them, too.
/// - Files of up to 256 KiB are kept in memory, 32 MiB and 4096 files at most. A response shows a state that the file had
///   when the request came, or up to 5 ms before.
/// - Other files are read in chunks while they are sent. What is read and not yet sent is 32 MiB at most for all of them
///   together, and 8 KiB for each response beyond that. A file that becomes shorter meanwhile resets its stream.
#[derive(Debug, Clone)]
pub struct StaticFiles {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// A real path: absolute, without links.
    root: PathBuf,
    listing: bool,
    /// Whether names that begin with a dot are served.
    hidden: bool,
    /// Whether a file is answered with one next to it that holds its content in a coding.
    precompressed: bool,
    budget: ReadBudget,
    calls: Calls,
    cache: Cache,
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
        Ok(Self { inner: Arc::new(Inner { root, listing, ..Inner::default() }) })
    }

    /// The same directory with the files and directories whose names begin with a dot; listings do not name them.
    #[must_use]
    pub fn with_hidden_files(self) -> Self {
        Self { inner: Arc::new(Inner { hidden: true, ..self.inner.same() }) }
    }

    /// Answers with `app.js.br`, `app.js.zst` or `app.js.gz` instead of `app.js` if the client accepts that coding (RFC 9110
    /// section 12.5.3) and the file exists and is not older. One that appears later is noticed within a second.
    #[must_use]
    pub fn with_precompressed(self) -> Self {
        Self { inner: Arc::new(Inner { precompressed: true, ..self.inner.same() }) }
    }

    /// The directory, resolved.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }
}

impl<B> Service<http::Request<B>> for StaticFiles {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        let (head, _) = request.into_parts();
        Box::pin(async move { Ok(inner.respond(head).await) })
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
    /// The same directory and choices, with nothing in memory.
    fn same(&self) -> Self {
        let Self { listing, hidden, precompressed, .. } = *self;
        Self { root: self.root.clone(), listing, hidden, precompressed, ..Self::default() }
    }

    /// The codings that a request accepts, if there may be files in them.
    fn codings(&self, fields: &HeaderMap) -> Vec<Coding> {
        if self.precompressed { accepted_codings(fields, &precompressed::ORDER) } else { Vec::new() }
    }

    /// What the path leads to for a client that accepts these codings, if that is known without blocking.
    fn kept(&self, path: &str, codings: &[Coding]) -> Option<Arc<Kept>> {
        self.cache.find(&precompressed::key(path, codings))
    }

    async fn respond(self: Arc<Self>, request: http::request::Parts) -> Response {
        let is_head = request.method == Method::HEAD;
        if !is_head && request.method != Method::GET {
            let response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            return with(response, header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        let codings = self.codings(&request.headers);
        // Only what may be served is kept.
        if let Some(kept) = self.kept(request.uri.path(), &codings) {
            return kept.answer(&request.headers, is_head);
        }
        let path = match RequestPath::parse(request.uri.path()) {
            Ok(path) => path,
            Err(error) => return refusal(error),
        };
        let lane = self.calls.below(path.segments.first().map_or("", String::as_str));
        let looked_up = lane.clone().call(move || {
            let (uri, headers) = (&request.uri, &request.headers);
            let ask = Ask { uri, headers, codings: &codings, is_head, now: now(), lane };
            self.look_up(&path, &ask).unwrap_or_else(|error| {
                self.cache.forget(ask.uri.path());
                refusal(error)
            })
        });
        looked_up.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a file could not be looked up");
            match error.kind() {
                io::ErrorKind::TimedOut => {
                    text(StatusCode::SERVICE_UNAVAILABLE, "the file system does not answer")
                }
                _ => text(StatusCode::INTERNAL_SERVER_ERROR, ""),
            }
        })
    }

    /// Answers a GET or HEAD request. Blocks on the file system.
    fn look_up(&self, path: &RequestPath, ask: &Ask<'_>) -> Result<Response, PathError> {
        if path.is_hidden() && !self.hidden {
            return Err(PathError::NotFound);
        }
        let seen = Instant::now();
        let target = path.below(&self.root);
        match locate::open(&self.root, &target)? {
            Found::File(..) if path.is_directory => Err(PathError::NotFound),
            Found::File(file, metadata) => self.file(&target, file, &metadata, seen, ask),
            Found::Directory(_) if !path.is_directory => Ok(redirect(path, ask.uri.query())),
            Found::Directory(directory) => {
                let index = target.join(INDEX);
                match locate::open(&self.root, &index) {
                    Ok(Found::File(file, metadata)) => self.file(&index, file, &metadata, seen, ask),
                    Ok(Found::Directory(_)) | Err(PathError::NotFound) if self.listing => {
                        let page = listing::page(&self.root, &directory, ask.uri.path())?;
                        Ok(html(page))
                    }
                    Ok(Found::Directory(_)) => Err(PathError::NotFound),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Answers with a file, which the path was seen to lead to after `seen`. Blocks on the file system.
    fn file(
        &self,
        path: &Path,
        file: File,
        metadata: &Metadata,
        seen: Instant,
        ask: &Ask<'_>,
    ) -> Result<Response, PathError> {
        let mut described = Described::new(path, metadata, ask.now);
        let mut sources = vec![(path.to_owned(), Stamp::of(metadata))];
        let (mut file, mut coding) = (file, None);
        if let Some(coded) = precompressed::find(&self.root, path, metadata, ask.codings) {
            described = Described::new(path, &coded.metadata, ask.now).in_coding(coded.coding);
            sources.insert(0, (coded.path, Stamp::of(&coded.metadata)));
            (file, coding) = (coded.file, Some(coded.coding));
        }
        described.varies = self.precompressed;
        let key = precompressed::key(ask.uri.path(), ask.codings);
        let opened = Opened { sources, file: &file, described: &described, seen, now: ask.now };
        if let Some(kept) = self.cache.keep(&key, opened, precompressed::lifetime(coding, ask.codings)) {
            return Ok(kept.answer(ask.headers, ask.is_head));
        }
        answer(&described, ask.headers, ask.is_head, |start, end| {
            Ok(Body::new(FileBody::open(file, start, end, &self.budget, &ask.lane)?))
        })
    }
}

/// Answers with a file, or with what its state and the request's preconditions make of it; `part` gives the content from a
/// byte to before another, and is asked at most once.
fn answer<E>(
    described: &Described,
    asked: &HeaderMap,
    is_head: bool,
    part: impl FnOnce(u64, u64) -> Result<Body, E>,
) -> Result<Response, E> {
    let length = described.length;
    let range = match conditional::evaluate(asked, &described.validators) {
        Verdict::NotModified => return Ok(validated(empty(StatusCode::NOT_MODIFIED), described)),
        Verdict::Failed => {
            let response = text(StatusCode::PRECONDITION_FAILED, "the file is in another state");
            return Ok(validated(response, described));
        }
        Verdict::Proceed { range_applies } => requested_range(asked, range_applies && !is_head, length),
    };
    let (status, start, end) = match range {
        RangeRequest::Unsatisfiable => {
            let response = text(StatusCode::RANGE_NOT_SATISFIABLE, "the file has no such bytes");
            let response = with(response, header::CONTENT_RANGE, value(&format!("bytes */{length}")));
            return Ok(validated(response, described));
        }
        RangeRequest::Whole => (StatusCode::OK, 0, length),
        RangeRequest::Part { start, end } => (StatusCode::PARTIAL_CONTENT, start, end),
    };
    let mut response = empty(status);
    let fields = response.headers_mut();
    fields.reserve(FIELDS);
    described.validate(fields);
    described.describe(end - start, fields);
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {start}-{}/{length}", end - 1);
        fields.insert(header::CONTENT_RANGE, value(&range));
    }
    if !is_head && end > start {
        *response.body_mut() = part(start, end)?;
    }
    Ok(response)
}

/// What the client of an impossible or refused request is told.
fn refusal(error: PathError) -> Response {
    match error {
        PathError::Malformed => text(StatusCode::BAD_REQUEST, "this path cannot name a file"),
        PathError::NotFound => text(StatusCode::NOT_FOUND, ""),
        PathError::Forbidden => text(StatusCode::FORBIDDEN, "the file system denies access"),
        PathError::Failed => text(StatusCode::INTERNAL_SERVER_ERROR, ""),
    }
}

/// What a request says beyond its path, and its share of the file system.
struct Ask<'a> {
    uri: &'a http::Uri,
    headers: &'a HeaderMap,
    /// Those of files that may answer, the best first.
    codings: &'a [Coding],
    is_head: bool,
    now: SystemTime,
    lane: Lane,
}

/// Only GET has ranges (RFC 9110 section 14.2), and several `range` fields are none.
fn requested_range(asked: &HeaderMap, range_applies: bool, length: u64) -> RangeRequest {
    let mut fields = asked.get_all(header::RANGE).iter();
    match (fields.next().map(HeaderValue::to_str), fields.next()) {
        (Some(Ok(field)), None) if range_applies => range::parse(field, length),
        _ => RangeRequest::Whole,
    }
}

/// A response without a body.
fn empty(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

/// The same response with this header field instead of any of its name.
fn with(mut response: Response, name: HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}

/// The same response with the file's validators.
fn validated(mut response: Response, described: &Described) -> Response {
    described.validate(response.headers_mut());
    response
}

fn redirect(path: &RequestPath, query: Option<&str>) -> Response {
    let mut location = path.directory_location();
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    with(text(StatusCode::MOVED_PERMANENTLY, &location), header::LOCATION, value(&location))
}

fn html(page: String) -> Response {
    let length = page.len();
    let mut response = http::Response::new(Body::from(page));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    fields.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// A field value of text made here: visible ASCII, or what a query brought along, which was checked on its way in.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests;

//! `--continue`: a download that was interrupted goes on where it stopped, if the file is still the same.
//!
//! Beside the file that is fetched lie its beginning and a note, of which URL and state it is. If-Range makes the server
//! send the rest of that state, or the whole of another (RFC 9110 section 13.1.5).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use posthaste_http::Client;
use posthaste_http::client::Response;
use serde::{Deserialize, Serialize};

use super::output::{Destination, Output, joined};
use super::report::Transfer;
use super::{Means, Problem, accept, receive};
use crate::args::Get;
use crate::exit::Failure;
use crate::output_file::{OutputError, PartialFile};
use crate::printer;

/// What is kept of an incomplete file.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    url: String,
    /// A strong entity tag.
    etag: String,
}

/// Refuses what cannot be continued before anything is fetched.
pub(super) fn check(args: &Get, destinations: &[Destination]) -> Result<(), Failure> {
    let is_file = |destination: &Destination| matches!(destination, Destination::File(_));
    if args.resume && !destinations.iter().all(is_file) {
        return Err(Failure::usage("--continue needs a file that can be continued")
            .hint("name it with -o FILE, or a directory with -O DIR"));
    }
    Ok(())
}

/// Fetches one URL into a file, or what is missing of it.
pub(super) async fn fetch(
    means: Means<'_>,
    uri: &Uri,
    path: &Path,
    transfer: &mut Transfer,
) -> Result<(), Problem> {
    let fail = |error| OutputError { shown: path.display().to_string(), error };
    let note = note_of(path).map_err(fail)?;
    let (claim, kept) = {
        let (uri, path, note) = (uri.to_string(), path.to_owned(), note.clone());
        let claimed = tokio::task::spawn_blocking(move || {
            let claim = PartialFile::claim(&path)?;
            let kept = kept(&uri, claim.0.metadata()?.len(), &note);
            Ok((claim, kept))
        });
        joined(claimed.await).map_err(fail)?
    };
    let (response, from) = ask(means.client, uri, kept).await?;
    transfer.begin(&response);
    if from == 0 {
        accept(response.status())?;
    } else {
        means.progress.suspend(|| printer::note(format_args!("{uri}: continued at byte {from}")));
    }
    let said = strong_tag(&response).map(|etag| Note { url: uri.to_string(), etag });
    let opened = {
        let note = note.clone();
        tokio::task::spawn_blocking(move || open(claim, &note, from, said.as_ref())).await
    };
    let (file, partial) = joined(opened).map_err(fail)?;
    let output = Output::of(file, partial, path);
    receive(&mut response.into(), output, means, uri, transfer).await?;
    // Without its beginning it says nothing.
    let _ = joined(tokio::task::spawn_blocking(move || std::fs::remove_file(note)).await);
    Ok(())
}

/// Asks for the rest of what is kept, or for the whole; the response, and where its body begins.
async fn ask(
    client: &Client,
    uri: &Uri,
    kept: Option<(u64, HeaderValue)>,
) -> Result<(Response, u64), Problem> {
    if let Some((length, etag)) = kept {
        let range = HeaderValue::from_str(&format!("bytes={length}-")).map_err(|_| Problem::Part)?;
        let fields = HeaderMap::from_iter([(header::RANGE, range), (header::IF_RANGE, etag.clone())]);
        let response = client.request(&Method::GET, uri, &fields).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if is_rest(response.headers(), length, &etag) => {
                return Ok((response, length));
            }
            // Of nothing or of something else: what is kept is of no use.
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {}
            _ => return Ok((response, 0)),
        }
    }
    Ok((client.get(uri).await?, 0))
}

/// True if a 206 has the bytes from `start` to the end, of the state with this tag.
fn is_rest(headers: &HeaderMap, start: u64, etag: &HeaderValue) -> bool {
    let range = || {
        let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
        let (range, length) = range.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, length.parse::<u64>().ok()?))
    };
    let is_encoded = headers.contains_key(header::CONTENT_ENCODING);
    let is_same = headers.get(header::ETAG).is_none_or(|found| found == etag);
    let reaches =
        |(first, last, length): (u64, u64, u64)| first == start && last.checked_add(1) == Some(length);
    is_same && !is_encoded && range().is_some_and(reaches)
}

/// The tag of a response whose bytes it stands for.
fn strong_tag(response: &Response) -> Option<String> {
    let headers = response.headers();
    let tag = headers.get(header::ETAG)?.to_str().ok()?;
    let is_strong = tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"');
    (is_strong && !headers.contains_key(header::CONTENT_ENCODING)).then(|| tag.to_owned())
}

/// The name of the note about `path`.
fn note_of(path: &Path) -> io::Result<PathBuf> {
    let mut name = PartialFile::kept_name(path)?.into_os_string();
    name.push(".json");
    Ok(name.into())
}

/// How much is kept, and its tag, if what is there is of this URL.
fn kept(uri: &str, length: u64, note: &Path) -> Option<(u64, HeaderValue)> {
    let note: Note = serde_json::from_slice(&std::fs::read(note).ok()?).ok()?;
    let etag = HeaderValue::from_str(&note.etag).ok()?;
    (note.url == uri && length > 0).then_some((length, etag))
}

/// The beginning with its first `from` bytes, and a note about it: first without one, so that nobody takes what is there
/// for what it is not.
fn open(
    (mut file, mut partial): (File, PartialFile),
    note: &Path,
    from: u64,
    said: Option<&Note>,
) -> io::Result<(File, PartialFile)> {
    if from == 0 {
        let _ = std::fs::remove_file(note);
    }
    partial.keep(&mut file, from, from > 0 || said.is_some())?;
    if let (0, Some(said)) = (from, said) {
        std::fs::write(note, serde_json::to_vec(said)?)?;
    }
    Ok((file, partial))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rest_of_the_same_state_is_appended() {
        let tag = HeaderValue::from_static("\"a\"");
        let rest = |range: &'static str, etag: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_RANGE, HeaderValue::from_static(range));
            if let Some(etag) = etag {
                headers.insert(header::ETAG, HeaderValue::from_static(etag));
            }
            is_rest(&headers, 10, &tag)
        };
        assert!(rest("bytes 10-99/100", Some("\"a\"")));
        assert!(rest("bytes 10-99/100", None));
        assert!(!rest("bytes 10-99/100", Some("\"b\"")), "another state");
        for wrong in
            ["bytes 0-99/100", "bytes 10-98/100", "bytes 10-99/*", "bytes */100", "lines 10-99/100", ""]
        {
            assert!(!rest(wrong, Some("\"a\"")), "{wrong}");
        }
        assert!(!is_rest(&HeaderMap::new(), 10, &tag));
    }
}

//! Where a body goes: to a file, to stdout, or nowhere.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use tokio::time::Instant;

use crate::args::Get;
use crate::exit::Failure;
use crate::output_file::{OutputError, PartialFile, open_file};

mod parts;

/// Bytes that are collected before they are written.
const BLOCK: usize = 256 * 1024;

/// Whoever reads stdout does not wait longer than this for what has come, as long as more comes.
const FRESH: Duration = Duration::from_millis(10);

/// What a path that ends in a slash is called in a folder.
const UNNAMED: &str = "index.html";

/// Longest name that is taken from a URL, in bytes; file systems have 255.
const MAX_NAME: usize = 200;

/// Where one body is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    Stdout,
    File(PathBuf),
    /// Counted and dropped.
    Nowhere,
}

/// Where each URL's body is to go, as the command line says.
pub(super) fn destinations(args: &Get, uris: &[Uri]) -> Result<Vec<Destination>, Failure> {
    if let Some(directory) = &args.output_directory {
        let files = in_directory(directory, &args.urls, uris)?;
        std::fs::create_dir_all(directory).map_err(|error| {
            Failure::runtime(format!("cannot make the folder {}: {error}", directory.display()))
        })?;
        return Ok(files);
    }
    match &args.output {
        None if args.json => Ok(vec![Destination::Nowhere; uris.len()]),
        _ if uris.len() > 1 => {
            Err(Failure::usage("several URLs need a directory").hint("name one with -O DIR"))
        }
        Some(path) if path.as_os_str() == "-" && args.json => {
            Err(Failure::usage("stdout cannot hold both the file and --json")
                .hint("write the file with -o FILE"))
        }
        Some(path) if path.as_os_str() == "-" => Ok(vec![Destination::Stdout]),
        Some(path) if path.is_dir() => Err(Failure::usage(format!("{} is a folder", path.display()))
            .hint(format!("to write into it: -O {}", path.display()))),
        Some(path) => Ok(vec![Destination::File(path.clone())]),
        None => Ok(vec![Destination::Stdout]),
    }
}

fn in_directory(directory: &Path, typed: &[String], uris: &[Uri]) -> Result<Vec<Destination>, Failure> {
    let mut taken = BTreeSet::new();
    let mut files = Vec::new();
    for (url, uri) in typed.iter().zip(uris) {
        let name = file_name(uri.path()).map_err(|reason| {
            Failure::usage(format!("{url}: {reason}")).hint("fetch it separately with -o FILE")
        })?;
        if !taken.insert(name.clone()) {
            return Err(Failure::usage(format!("two of the URLs would be written to the file `{name}`"))
                .hint("fetch one of them separately with -o FILE"));
        }
        files.push(Destination::File(directory.join(name)));
    }
    Ok(files)
}

/// The last part of a URL's path as a file's name, unless it could be anything but a plain name somewhere.
fn file_name(path: &str) -> Result<String, &'static str> {
    let encoded = path.rsplit('/').next().unwrap_or_default();
    if encoded.is_empty() {
        return Ok(UNNAMED.to_owned());
    }
    let name = percent_decode(encoded).ok_or("the last part of its path is no text")?;
    if name == "." || name == ".." {
        return Err("the last part of its path is no name");
    }
    if name.len() > MAX_NAME {
        return Err("the last part of its path is too long for a name");
    }
    let is_unsafe = |character: char| character.is_control() || matches!(character, '/' | '\\' | ':');
    if name.contains(is_unsafe) {
        return Err("the last part of its path has characters that a name should not have");
    }
    Ok(name)
}

fn percent_decode(text: &str) -> Option<String> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' { digit(rest.next())? << 4 | digit(rest.next())? } else { byte });
    }
    String::from_utf8(bytes).ok()
}

/// Whether the rest of a body is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Yes,
    /// Nobody reads stdout any more: they have what they wanted.
    No,
}

/// Takes a body in. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Output {
    writer: Option<Writer>,
    /// Stays here while a task writes: that task may not get to its end when the process is to end.
    partial: Option<PartialFile>,
    block: Vec<u8>,
    /// What comes in parts.
    runs: Vec<parts::Run>,
    flushed: Instant,
    shown: String,
}

#[derive(Debug)]
enum Writer {
    Stdout,
    File(File),
}

impl Output {
    pub(super) async fn open(destination: Destination) -> Result<Self, OutputError> {
        let mut output = Self {
            writer: None,
            partial: None,
            block: Vec::new(),
            runs: Vec::new(),
            flushed: Instant::now(),
            shown: String::new(),
        };
        match destination {
            Destination::Nowhere => {}
            Destination::Stdout => {
                output.writer = Some(Writer::Stdout);
                "to stdout".clone_into(&mut output.shown);
            }
            Destination::File(path) => {
                output.shown = path.display().to_string();
                match joined(tokio::task::spawn_blocking(move || open_file(&path)).await) {
                    Ok((file, partial)) => {
                        output.writer = Some(Writer::File(file));
                        output.partial = partial;
                    }
                    Err(error) => return Err(OutputError { shown: output.shown, error }),
                }
            }
        }
        Ok(output)
    }

    /// Goes on with a partial file of `path`, from where the file stands.
    pub(super) fn of(file: File, partial: PartialFile, path: &Path) -> Self {
        Self {
            writer: Some(Writer::File(file)),
            partial: Some(partial),
            block: Vec::new(),
            runs: Vec::new(),
            flushed: Instant::now(),
            shown: path.display().to_string(),
        }
    }

    /// Takes the next bytes.
    pub(super) async fn write(&mut self, data: Bytes) -> Result<Wanted, OutputError> {
        if self.writer.is_none() {
            return Ok(Wanted::Yes);
        }
        self.block.extend_from_slice(&data);
        let is_stale = matches!(self.writer, Some(Writer::Stdout)) && self.flushed.elapsed() >= FRESH;
        if self.block.len() < BLOCK && !is_stale { Ok(Wanted::Yes) } else { self.flush().await }
    }

    /// Puts the file in place under its name.
    pub(super) async fn finish(mut self) -> Result<(), OutputError> {
        self.flush_parts().await?;
        self.flush().await?;
        self.writer = None;
        match self.partial.take() {
            Some(partial) => partial.place().map_err(|error| OutputError { shown: self.shown, error }),
            None => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<Wanted, OutputError> {
        let Some(mut writer) = self.writer.take() else { return Ok(Wanted::Yes) };
        let block = std::mem::take(&mut self.block);
        let written = tokio::task::spawn_blocking(move || {
            let result = match &mut writer {
                Writer::Stdout => {
                    let mut stdout = io::stdout().lock();
                    stdout.write_all(&block).and_then(|()| stdout.flush())
                }
                Writer::File(file) => file.write_all(&block),
            };
            (writer, block, result)
        });
        let fail = |error| OutputError { shown: self.shown.clone(), error };
        let (writer, mut block, result) = written.await.map_err(io::Error::other).map_err(fail)?;
        let is_stdout = matches!(writer, Writer::Stdout);
        self.writer = Some(writer);
        block.clear();
        self.block = block;
        self.flushed = Instant::now();
        match result {
            Err(error) if is_stdout && error.kind() == io::ErrorKind::BrokenPipe => Ok(Wanted::No),
            Err(error) => Err(fail(error)),
            Ok(()) => Ok(Wanted::Yes),
        }
    }
}

/// What a blocking task came to; one that panicked has failed like any other.
pub(super) fn joined<T>(result: Result<io::Result<T>, tokio::task::JoinError>) -> io::Result<T> {
    result.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests;

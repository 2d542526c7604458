//! Bytes that come in no order, each with its place in the file.

use std::io::{self, Seek, SeekFrom, Write};

use super::{BLOCK, Output, Writer};
use crate::output_file::OutputError;

/// Runs of bytes that are collected side by side: two for each connection, and twice as many that have ended. With
/// [`BLOCK`] they bound what is kept in memory, at 16 MiB.
const MAX_RUNS: usize = 64;

/// Bytes that follow each other and are not written yet.
#[derive(Debug)]
pub(super) struct Run {
    offset: u64,
    data: Vec<u8>,
}

impl Run {
    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

impl Output {
    /// Makes sure that it takes bytes in any order.
    pub(in crate::command::get) fn check_takes_parts(&mut self) -> Result<(), OutputError> {
        match &mut self.writer {
            Some(Writer::File(file)) => file
                .stream_position()
                .map(drop)
                .map_err(|error| OutputError { shown: self.shown.clone(), error }),
            Some(Writer::Stdout) => {
                Err(OutputError { shown: self.shown.clone(), error: io::ErrorKind::NotSeekable.into() })
            }
            None => Ok(()),
        }
    }

    /// Takes bytes that belong at `offset`.
    pub(in crate::command::get) async fn write_at(
        &mut self,
        offset: u64,
        data: &[u8],
    ) -> Result<(), OutputError> {
        if self.writer.is_none() {
            return Ok(());
        }
        let known = self.runs.iter().position(|run| run.end() == offset);
        if known.is_none() {
            if self.runs.len() >= MAX_RUNS {
                let oldest = self.runs.remove(0);
                self.write_run(oldest).await?;
            }
            self.runs.push(Run { offset, data: Vec::new() });
        }
        let place = known.unwrap_or(self.runs.len() - 1);
        let run = &mut self.runs[place];
        run.data.extend_from_slice(data);
        if run.data.len() >= BLOCK {
            let full = std::mem::replace(run, Run { offset: run.end(), data: Vec::new() });
            self.write_run(full).await?;
        }
        Ok(())
    }

    /// Forgets what has come: it comes anew.
    pub(in crate::command::get) fn restart(&mut self) -> Result<(), OutputError> {
        self.runs.clear();
        match &self.writer {
            // A device keeps nothing that could be in the way.
            Some(Writer::File(file)) if self.partial.is_some() => {
                file.set_len(0).map_err(|error| OutputError { shown: self.shown.clone(), error })
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn flush_parts(&mut self) -> Result<(), OutputError> {
        for run in std::mem::take(&mut self.runs) {
            self.write_run(run).await?;
        }
        Ok(())
    }

    async fn write_run(&mut self, run: Run) -> Result<(), OutputError> {
        let Some(Writer::File(mut file)) = self.writer.take_if(|_| !run.data.is_empty()) else {
            return Ok(());
        };
        let written = tokio::task::spawn_blocking(move || {
            let result = file.seek(SeekFrom::Start(run.offset)).and_then(|_| file.write_all(&run.data));
            (file, result)
        });
        let fail = |error| OutputError { shown: self.shown.clone(), error };
        let (file, result) = written.await.map_err(io::Error::other).map_err(fail)?;
        result.map_err(fail)?;
        self.writer = Some(Writer::File(file));
        Ok(())
    }
}

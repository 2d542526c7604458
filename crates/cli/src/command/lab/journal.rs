//! Where results are kept between commands.

use std::path::PathBuf;

use posthaste_campaign::identity::Identity;
use posthaste_campaign::keyed::prune;
use posthaste_lab::sweep::Journal;

use crate::{printer, state_directory};

/// The journals' folder, and this build of the program.
pub(super) struct Journals {
    folder: PathBuf,
    program: Identity,
    is_fresh: bool,
}

impl Journals {
    /// `None`, with a remark, if there is no place for them; `is_fresh` empties those that are opened.
    pub(super) fn find(is_fresh: bool) -> Option<Self> {
        let Ok(state) = state_directory::default() else {
            printer::note("results are not kept: there is no home directory");
            return None;
        };
        match Identity::of_this_program() {
            Ok(program) => Some(Self { folder: state.join("lab"), program, is_fresh }),
            Err(error) => {
                printer::note(format_args!("results are not kept: this program cannot be read: {error}"));
                None
            }
        }
    }

    /// What is opened from now on is not emptied.
    pub(super) fn keep(&mut self) {
        self.is_fresh = false;
    }

    /// The journal of an experiment; none, with a remark, if it cannot be opened.
    pub(super) fn open(&self, experiment: &str) -> Option<Journal> {
        match Journal::open(&self.folder, experiment, &self.program, self.is_fresh) {
            Ok(journal) => {
                prune(&self.folder, journal.path());
                Some(journal)
            }
            Err(error) => {
                let folder = self.folder.display();
                printer::note(format_args!("results are not kept in {folder}: {error}"));
                None
            }
        }
    }
}

//! Folders for the qlog traces of a sweep: the experiment, the cell, the seed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posthaste_endpoint::QlogDirectory;
use posthaste_lab::experiment::Experiment;
use posthaste_lab::sweep::QlogMaker;

/// Makes the folder of a run when it begins.
pub(super) fn maker(folder: &Path, experiment: &Experiment) -> Arc<QlogMaker> {
    let stem = Path::new(&experiment.name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = folder.join(plain(&stem));
    let names: Vec<String> = experiment.cells.iter().map(|cell| plain(&experiment.cell_name(cell))).collect();
    Arc::new(move |index, _, seed| {
        let folder = folder.join(format!("{index:04} {}", names[index])).join(format!("seed {seed}"));
        match prepare(&folder) {
            Ok(()) => Some(Arc::new(QlogDirectory::new(folder))),
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "traces cannot be written");
                None
            }
        }
    })
}

/// Makes the folder; traces of an earlier sweep make room for those of this one.
fn prepare(folder: &PathBuf) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sqlog") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A name that every file system takes.
fn plain(name: &str) -> String {
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || "-_.=,+".contains(*character);
    name.chars().take(150).map(|character| if is_plain(&character) { character } else { '_' }).collect()
}

//! `posthaste manual`: man pages and completions, made from the definition of the command line.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args::{Args, Manual};
use crate::exit::Failure;
use crate::printer;

/// The program's name, in files and in completions.
const NAME: &str = "posthaste";

/// Where shells look for completions, below `share`.
const COMPLETIONS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash-completion/completions", "posthaste"),
    (Shell::Zsh, "zsh/vendor-completions", "_posthaste"),
    (Shell::Fish, "fish/vendor_completions.d", "posthaste.fish"),
];

/// Writes everything.
pub(crate) fn run(args: &Manual) -> Result<ExitCode, Failure> {
    let directory = &args.directory;
    let written = write(directory);
    let (pages, completions) = written
        .map_err(|error| Failure::runtime(format!("cannot write below {}: {error}", directory.display())))?;
    let text = format!("{pages} man pages and {completions} completions below {}", directory.display());
    printer::unless_reader_left(printer::line(&text))
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// How many pages and completions there are now.
fn write(directory: &Path) -> io::Result<(usize, usize)> {
    let folder = directory.join("man/man1");
    std::fs::create_dir_all(&folder)?;
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let pages = write_pages(&command, &folder)?;
    for (shell, folder, file) in COMPLETIONS {
        let folder = directory.join(folder);
        std::fs::create_dir_all(&folder)?;
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), NAME, &mut script);
        std::fs::write(folder.join(file), script)?;
    }
    Ok((pages, COMPLETIONS.len()))
}

/// The page of a command, and those of its commands. How many there are.
fn write_pages(command: &Command, folder: &Path) -> io::Result<usize> {
    let mut count = 1;
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        count += write_pages(inner, folder)?;
    }
    let source = concat!("posthaste ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("Posthaste");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        closing(&text.to_string()).to_writer(&mut page)?;
    }
    std::fs::write(folder.join(man.get_filename()), page)?;
    Ok(count)
}

/// The text behind the options. A paragraph whose first line is a title is a section of its own, with its lines as they are;
/// `clap_mangen` would fill them. The rest is filled text.
fn closing(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_titled = true;
    for paragraph in text.split("\n\n") {
        let lines: Vec<&str> = paragraph.lines().collect();
        if let [title, listed @ ..] = &lines[..]
            && let Some(title) = title.strip_suffix(':').filter(|_| is_list(listed))
        {
            roff.control("SH", [title.to_uppercase().as_str()]);
            roff.control("nf", []);
            for line in listed {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
            is_titled = true;
            continue;
        }
        if is_titled {
            roff.control("SH", ["NOTES"]);
            is_titled = false;
        } else {
            roff.control("PP", []);
        }
        for line in lines {
            roff.text([roman(line)]);
        }
    }
    roff
}

fn is_list(lines: &[&str]) -> bool {
    !lines.is_empty() && lines.iter().all(|line| line.starts_with("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_lines_and_texts_are_filled() {
        let text = "Examples:\n  posthaste a\n  posthaste b\n\nOne text,\nstill it.\n\nAnother: text.\n\nEnvironment:\n  X  y";
        let page = closing(text).to_roff();
        let expected = ".SH EXAMPLES\n.nf\nposthaste a\nposthaste b\n.fi\n.SH NOTES\nOne text,\nstill it.\n.PP\nAnother: text.\n\
             .SH ENVIRONMENT\n.nf\nX  y\n.fi\n";
        assert_eq!(page, expected);
    }
}

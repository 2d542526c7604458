//! Code that exists twice: runs of equal lines, tests excluded.

use std::collections::HashMap;
use std::path::Path;

use super::files;
use crate::Result;

/// Equal lines in a row that count as a duplicate.
const RUN: usize = 6;

/// Lines that may be part of duplicates. This number only goes down.
const DUPLICATED_LINES: usize = 235;

/// How far below that number the count may be before the number has to be lowered.
const SLACK: usize = 60;

/// Messages to show at most.
const SHOWN: usize = 20;

/// A line of code and where it stands.
struct Line {
    file: usize,
    number: usize,
    text: String,
}

/// What is wrong with the number of duplicated lines, with places.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut names = Vec::new();
    for path in files::with_extensions(root, &["rs"])? {
        if !files::is_test(root, &path) {
            lines.extend(code(names.len(), &std::fs::read_to_string(&path)?));
            names.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    let (count, places) = duplicates(&lines);
    if (DUPLICATED_LINES.saturating_sub(SLACK)..=DUPLICATED_LINES).contains(&count) {
        return Ok(Vec::new());
    }
    let mut faults = Vec::new();
    if count > DUPLICATED_LINES {
        faults.extend(places.iter().take(SHOWN).map(|[one, other]| {
            let place = |index: usize| format!("{}:{}", names[lines[index].file], lines[index].number);
            format!("{} repeats {}", place(*other), place(*one))
        }));
    }
    faults.push(format!(
        "{count} duplicated lines; check/duplicates.rs has {DUPLICATED_LINES}, which only goes down"
    ));
    Ok(faults)
}

/// Lines of code up to the file's tests, without blank lines, comments, imports and lone brackets.
fn code(file: usize, text: &str) -> impl Iterator<Item = Line> {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().enumerate().filter_map(move |(index, line)| {
        let text = line.trim();
        let is_noise = text.starts_with("//") || text.starts_with("use ") || text.starts_with("mod ");
        let has_words = text.chars().any(char::is_alphanumeric);
        (has_words && !is_noise).then(|| Line { file, number: index + 1, text: text.to_owned() })
    })
}

/// How many lines are in duplicates, and the first and a later place of each run.
fn duplicates(lines: &[Line]) -> (usize, Vec<[usize; 2]>) {
    let mut first: HashMap<Vec<&str>, usize> = HashMap::new();
    let mut is_duplicate = vec![false; lines.len()];
    let mut places = Vec::new();
    for (start, run) in lines.windows(RUN).enumerate() {
        if run[0].file != run[RUN - 1].file {
            continue;
        }
        let texts = run.iter().map(|line| line.text.as_str()).collect();
        let original = *first.entry(texts).or_insert(start);
        if original + RUN <= start {
            if !is_duplicate[start] {
                places.push([original, start]);
            }
            is_duplicate[start..start + RUN].fill(true);
        }
    }
    (is_duplicate.iter().filter(|is| **is).count(), places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_equal_lines_are_counted_once_for_each_repetition() {
        let run =
            ["let a = 1;\n", "let b = 2;\n\n", "let c = 3;\n", "f(a);\n", "f(b);\n", "f(c);\n"].concat();
        let mut lines: Vec<Line> = code(0, &run).collect();
        assert_eq!(duplicates(&lines).0, 0);
        lines.extend(code(1, &format!("// other\n{run}}}\n")));
        let (count, places) = duplicates(&lines);
        assert_eq!((count, places.len()), (RUN, 1));
        assert_eq!((lines[places[0][1]].file, lines[places[0][1]].number), (1, 2));
    }

    #[test]
    fn tests_comments_and_imports_are_no_code() {
        let text = "use a::b;\n// c\nfn d() {\n}\n\n#[cfg(test)]\nmod tests {\n    fn e() {}\n}\n";
        assert_eq!(code(0, text).map(|line| line.text).collect::<Vec<_>>(), ["fn d() {"]);
    }
}

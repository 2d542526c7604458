//! A directory's listing as a page.

use std::fmt::Write;
use std::path::Path;

use super::locate::percent_encode;

/// Entries shown at most; a page of more is of no use to anyone.
const MAX_ENTRIES: usize = 10_000;

/// One line of a listing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Sorts directories before files.
    is_file: bool,
    name: String,
    length: u64,
}

/// A page that lists `directory`, a real path below `root`. Hidden files, what is neither a file nor a directory,
/// links that lead out of `root` and names that are not UTF-8 are left out. Blocks on the file system.
pub(super) fn page(root: &Path, directory: &Path, shown_path: &str) -> std::io::Result<String> {
    let mut entries = Vec::new();
    let mut is_complete = true;
    for entry in std::fs::read_dir(directory)? {
        if entries.len() == MAX_ENTRIES {
            is_complete = false;
            break;
        }
        entries.extend(entry.ok().and_then(|entry| describe(root, &entry)));
    }
    entries.sort_unstable();
    Ok(render(shown_path, directory != root, &entries, is_complete))
}

fn describe(root: &Path, entry: &std::fs::DirEntry) -> Option<Entry> {
    let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
    let is_link = entry.file_type().ok()?.is_symlink();
    if is_link && !entry.path().canonicalize().ok()?.starts_with(root) {
        return None;
    }
    let metadata = entry.path().metadata().ok()?;
    let (is_file, is_directory) = (metadata.is_file(), metadata.is_dir());
    (is_file || is_directory).then_some(Entry { is_file, name, length: metadata.len() })
}

fn render(shown_path: &str, has_parent: bool, entries: &[Entry], is_complete: bool) -> String {
    let title = escape(shown_path);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>body{{font-family:system-ui,sans-serif;margin:2em}}td{{padding:0 2em 0 0}}\
         td:last-child{{text-align:right}}</style></head>\n<body><h1>{title}</h1>\n<table>\n"
    );
    if has_parent {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td></tr>\n");
    }
    for entry in entries {
        let slash = if entry.is_file { "" } else { "/" };
        let mut link = String::new();
        percent_encode(&entry.name, &mut link);
        let length = if entry.is_file { entry.length.to_string() } else { String::new() };
        let name = escape(&entry.name);
        // Writing to a string does not fail.
        let _ =
            writeln!(page, "<tr><td><a href=\"{link}{slash}\">{name}{slash}</a></td><td>{length}</td></tr>");
    }
    page.push_str("</table>\n");
    if !is_complete {
        let _ = writeln!(page, "<p>Only the first {MAX_ENTRIES} entries are shown.</p>");
    }
    page.push_str("</body></html>\n");
    page
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control characters could play tricks with what is shown.
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let name = "<script>alert(1)</script>\"'&.html".to_owned();
        let page = render("/a<b>/", true, &[Entry { is_file: true, name, length: 7 }], true);
        assert!(!page.contains("<script>"));
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;.html"));
        assert!(page.contains("href=\"%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%27%26.html\""));
        assert!(page.contains("<title>/a&lt;b&gt;/</title>"));
    }

    #[test]
    fn a_name_that_looks_like_a_scheme_stays_a_name() {
        let name = "javascript:alert(1)".to_owned();
        let page = render("/", false, &[Entry { is_file: true, name, length: 0 }], true);
        assert!(page.contains("href=\"javascript%3Aalert%281%29\""));
        assert!(!page.contains("../"));
    }

    #[cfg(unix)]
    #[test]
    fn only_files_and_directories_below_the_root_are_listed() {
        let outside = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["b.txt", "a.txt", ".hidden"] {
            std::fs::write(root.join(name), "12345").unwrap();
        }
        std::fs::create_dir(root.join("z")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("escape")).unwrap();
        std::os::unix::fs::symlink(root.join("a.txt"), root.join("inside")).unwrap();
        std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let page = page(&root, &root, "/").unwrap();
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in {page}"));
        assert!(at("\"z/\"") < at("\"a.txt\"") && at("\"a.txt\"") < at("\"b.txt\""));
        at("\"inside\"");
        for absent in ["escape", "hidden", "socket"] {
            assert!(!page.contains(absent), "{absent}");
        }
    }
}

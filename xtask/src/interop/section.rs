//! A page that two commands write: the section on profiles stands between two marks, and each leaves the other's part.

use std::io;
use std::path::Path;

const BEGIN: &str = "<!-- every profile: begin -->";
const END: &str = "<!-- every profile: end -->";

/// The page as it is; nothing if there is none.
pub(super) fn read(path: &Path) -> io::Result<String> {
    if path.exists() { std::fs::read_to_string(path) } else { Ok(String::new()) }
}

/// `page` with the section put in the place of the one it has, or at its end.
pub(super) fn put(page: &str, section: &str) -> String {
    let section = format!("{BEGIN}\n{}\n{END}\n", section.trim());
    match split(page) {
        Some((before, _, after)) => format!("{before}{section}{}", after.trim_start()),
        None if page.trim().is_empty() => section,
        None => format!("{}\n\n{section}", page.trim_end()),
    }
}

/// The new `page` with the section that the old one has.
pub(super) fn kept(page: &str, old: &str) -> String {
    match split(old) {
        Some((_, section, _)) => put(page, section),
        None => page.to_owned(),
    }
}

/// What is before, in and after the section.
fn split(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (section, after) = rest.split_once(END)?;
    Some((before, section, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_writer_leaves_the_part_of_the_other() {
        let first = put("# Page\nA table\n", "## Every profile\nold");
        assert!(
            first.starts_with("# Page\nA table\n\n<!-- every profile: begin -->\n## Every profile\nold\n")
        );
        let second = put(&first, "## Every profile\nnew\n");
        assert!(second.contains("A table") && second.contains("new") && !second.contains("old"));
        let third = kept("# Page\nAnother table\n", &second);
        assert!(third.contains("Another table") && third.contains("\nnew\n") && !third.contains("A table"));
        assert_eq!(put(&third, "## Every profile\nnew"), third, "nothing piles up");
        assert_eq!(kept("text", "no section"), "text");
        assert!(put("", "x").starts_with(BEGIN));
    }
}

//! Tables in Markdown.

/// The head of a table with these columns, and the line below it, each with its end.
pub fn head<T: AsRef<str>>(columns: &[T]) -> String {
    let names = columns.iter().map(|column| match column.as_ref() {
        "" => " |".to_owned(),
        name => format!(" {name} |"),
    });
    format!("|{}\n|{}\n", names.collect::<String>(), "---|".repeat(columns.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_a_line_with_as_many_columns() {
        assert_eq!(head(&["path", "median, s", ""]), "| path | median, s | |\n|---|---|---|\n");
    }
}

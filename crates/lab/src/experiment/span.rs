//! Where in a text a fault is.
//!
//! serde reads an enum with a tag through a buffer that knows no places, so an error in it points to the whole table.
//! The message quotes what is wrong; the place of that within the table is the fault's.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line of a byte, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}

/// The key that stands, or whose value stands, at a byte, with those above it: `run.flows.0.stack`. List items count from 0.
pub(crate) fn key_at(text: &str, offset: usize) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let mut keys = Vec::new();
    walk_table(document.get_ref(), offset, &mut keys);
    (!keys.is_empty()).then(|| keys.join("."))
}

/// Adds the keys that lead to a byte; false if nothing of the table stands there. What belongs to a table with a heading
/// stands outside of the table's own place, so all values are walked.
fn walk_table(table: &DeTable<'_>, offset: usize, keys: &mut Vec<String>) -> bool {
    table.iter().any(|(key, value)| {
        let is_key = key.span().contains(&offset);
        walk_step(key.get_ref(), value, offset, is_key, keys)
    })
}

fn walk_step(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    offset: usize,
    is_key: bool,
    keys: &mut Vec<String>,
) -> bool {
    keys.push(key.to_owned());
    let is_below = match value.get_ref() {
        DeValue::Table(table) => walk_table(table, offset, keys),
        DeValue::Array(values) => values
            .iter()
            .enumerate()
            .any(|(index, value)| walk_step(&index.to_string(), value, offset, false, keys)),
        _ => false,
    };
    let is_here = is_below || is_key || value.span().contains(&offset);
    if !is_here {
        keys.pop();
    }
    is_here
}

/// The place of what `message` quotes first, if it stands within `span`; else `span`.
pub(crate) fn pinpoint(text: &str, span: Range<usize>, message: &str) -> Range<usize> {
    // What is missing stands nowhere.
    if message.starts_with("missing") {
        return span;
    }
    let Some(quoted) = message.split('`').nth(1) else { return span };
    let Ok(document) = DeTable::parse(text) else { return span };
    // The place of a table with a heading is the heading alone: what belongs to it stands elsewhere.
    let found = match table_at(document.get_ref(), &span) {
        Some(table) => find_in_table(table, &(0..text.len()), quoted),
        None => find_in_table(document.get_ref(), &span, quoted),
    };
    found.unwrap_or(span)
}

/// The table whose place is `span`.
fn table_at<'a, 'i>(table: &'a DeTable<'i>, span: &Range<usize>) -> Option<&'a DeTable<'i>> {
    table.iter().find_map(|(_, value)| table_in(value, span))
}

fn table_in<'a, 'i>(value: &'a Spanned<DeValue<'i>>, span: &Range<usize>) -> Option<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) if value.span() == *span => Some(table),
        DeValue::Table(table) => table_at(table, span),
        DeValue::Array(values) => values.iter().find_map(|value| table_in(value, span)),
        _ => None,
    }
}

fn find_in_table(table: &DeTable<'_>, within: &Range<usize>, quoted: &str) -> Option<Range<usize>> {
    table.iter().find_map(|(key, value)| {
        if contains(within, &key.span()) && key.get_ref() == quoted {
            return Some(key.span());
        }
        find(value, within, quoted)
    })
}

fn find(value: &Spanned<DeValue<'_>>, within: &Range<usize>, quoted: &str) -> Option<Range<usize>> {
    let is_it = match value.get_ref() {
        DeValue::Table(table) => return find_in_table(table, within, quoted),
        DeValue::Array(values) => return values.iter().find_map(|value| find(value, within, quoted)),
        DeValue::String(text) => text == quoted,
        DeValue::Integer(number) => number.as_str() == quoted,
        DeValue::Float(number) => number.as_str() == quoted,
        DeValue::Boolean(_) | DeValue::Datetime(_) => false,
    };
    (is_it && contains(within, &value.span())).then(|| value.span())
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

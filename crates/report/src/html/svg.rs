//! Pieces of SVG as text. Inline in HTML, so no namespace is needed; colours come from classes only, so that one
//! style sheet serves light, dark and paper.

use std::fmt::Write as _;

/// Text for use in HTML and SVG, in elements and in quoted attributes. Control characters, which neither may hold,
/// are replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A coordinate: one digit after the point, none where it is zero.
pub(super) fn coordinate(value: f64) -> String {
    // Far outside of every figure, and what a value that is none becomes.
    let value = if value.is_nan() { -9999.0 } else { value.clamp(-9999.0, 9999.0) };
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing under way.
pub(super) struct Svg {
    width: f64,
    height: f64,
    /// For those who do not see it.
    label: String,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, label: &str) -> Self {
        Self { width, height, label: label.to_owned(), body: String::new() }
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (x1, y1, x2, y2) = (coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2));
        self.push(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    /// A rectangle between two corners, in any order.
    pub(super) fn rect(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (x, y) = (coordinate(x1.min(x2)), coordinate(y1.min(y2)));
        let (width, height) = (coordinate((x2 - x1).abs()), coordinate((y2 - y1).abs()));
        self.push(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" rx="1.5"/>"#
        ));
    }

    pub(super) fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let (x, y, radius) = (coordinate(x), coordinate(y), coordinate(radius));
        self.push(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}"/>"#));
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let (x, y, text) = (coordinate(x), coordinate(y), escape(text));
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        self.push(format_args!(r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#));
    }

    /// An open path through `data` (see [`PathData`]).
    pub(super) fn path(&mut self, class: &str, data: &PathData) {
        if !data.0.is_empty() {
            self.push(format_args!(r#"<path class="{class}" d="{}"/>"#, data.0));
        }
    }

    /// What follows, up to [`Self::close`], belongs together: `class` for the style sheet, `tip` for the pointer.
    pub(super) fn open(&mut self, class: &str, tip: &str) {
        self.push(format_args!(r#"<g class="{class}">"#));
        if !tip.is_empty() {
            self.push(format_args!("<title>{}</title>", escape(tip)));
        }
    }

    pub(super) fn close(&mut self) {
        self.body.push_str("</g>");
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(text);
    }

    /// The whole element.
    pub(super) fn finish(self) -> String {
        let (width, height) = (coordinate(self.width), coordinate(self.height));
        format!(
            r#"<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{}">{}</svg>
"#,
            escape(&self.label),
            self.body
        )
    }
}

/// The `d` of a path.
#[derive(Debug, Default, Clone)]
pub(super) struct PathData(String);

impl PathData {
    fn push(&mut self, command: char, values: &[f64]) {
        self.0.push(command);
        for (index, value) in values.iter().enumerate() {
            let text = coordinate(*value);
            if index > 0 {
                self.0.push(' ');
            }
            self.0.push_str(&text);
        }
    }

    pub(super) fn move_to(&mut self, (x, y): (f64, f64)) {
        self.push('M', &[x, y]);
    }

    pub(super) fn line_to(&mut self, (x, y): (f64, f64)) {
        self.push('L', &[x, y]);
    }

    pub(super) fn horizontal(&mut self, x: f64) {
        self.push('H', &[x]);
    }

    pub(super) fn vertical(&mut self, y: f64) {
        self.push('V', &[y]);
    }
}

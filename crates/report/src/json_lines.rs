//! JSON that people can read and `grep` can search: what encloses runs is spread over lines, a run is one line.

use std::io::{self, Write};

use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// Levels that are spread over lines: document, experiments, experiment, cells, cell, and the runs or statistics in it.
const SPREAD_LEVELS: usize = 6;

/// Spreads the outer levels over lines and writes everything within them on one.
#[derive(Default)]
pub(super) struct LineARun {
    pretty: PrettyFormatter<'static>,
    /// Objects and arrays that are open.
    depth: usize,
}

impl LineARun {
    /// What formats the inside of the innermost open object or array.
    fn inner(&mut self) -> Inner<'_> {
        if self.depth <= SPREAD_LEVELS { Inner::Pretty(&mut self.pretty) } else { Inner::Compact }
    }
}

/// One of two formatters.
enum Inner<'a> {
    Pretty(&'a mut PrettyFormatter<'static>),
    Compact,
}

/// Passes a call on to the formatter of the level.
macro_rules! pass_on {
    ($inner:expr, $method:ident($($argument:expr),*)) => {
        match $inner {
            Inner::Pretty(pretty) => pretty.$method($($argument),*),
            Inner::Compact => CompactFormatter.$method($($argument),*),
        }
    };
}

impl Formatter for LineARun {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        pass_on!(self.inner(), begin_array(writer))
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let result = pass_on!(self.inner(), end_array(writer));
        self.depth -= 1;
        result
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        pass_on!(self.inner(), begin_array_value(writer, first))
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        pass_on!(self.inner(), end_array_value(writer))
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        pass_on!(self.inner(), begin_object(writer))
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let result = pass_on!(self.inner(), end_object(writer));
        self.depth -= 1;
        result
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        pass_on!(self.inner(), begin_object_key(writer, first))
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        pass_on!(self.inner(), begin_object_value(writer))
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        pass_on!(self.inner(), end_object_value(writer))
    }
}

//! The pages that come with Posthaste as files: the lab's own page descriptions made into what a browser loads.
//!
//! Each object has the bytes that the lab's has, lives on the host that it has there, and is asked for when what it
//! waits for is there: by the document, by its style sheets, by its scripts. The same description gives the same bytes.

mod content;
mod markup;
#[cfg(test)]
mod tests;

use std::path::Path;

use posthaste_lab::apps::{Page, PageObject};

use crate::exit::Failure;

/// The name that browsers are told to find at the far end of the path.
pub(super) const HOST: &str = "posthaste.test";

/// The port of a page's first host. Hosts are ports of one name: browsers coalesce connections to names that share
/// an address, but never those to different ports, so there are as many connections as the page has hosts.
pub(super) const FIRST_PORT: u16 = 4433;

/// The file that the document is in. Not `index.html`, which some servers redirect.
pub(super) const DOCUMENT: &str = "page.html";

/// What an object is to a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Document,
    Style,
    Script,
    Font,
    Data,
    Image,
}

impl Kind {
    /// By the name that the description gives it.
    fn of(object: &PageObject) -> Self {
        if object.after.is_empty() {
            return Self::Document;
        }
        match series(&object.name) {
            "style" => Self::Style,
            "script" | "vendor" | "app" | "metrics" => Self::Script,
            "font" => Self::Font,
            "headlines" => Self::Data,
            _ => Self::Image,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Document => "html",
            Self::Style => "css",
            Self::Script => "js",
            Self::Font => "woff2",
            Self::Data => "json",
            Self::Image => "bmp",
        }
    }
}

/// `image` of `image-12`.
fn series(name: &str) -> &str {
    name.rsplit_once('-')
        .filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(name, |(series, _)| series)
}

/// One object with its place.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) object: &'a PageObject,
    pub(super) kind: Kind,
    /// Name of the file.
    pub(super) file: String,
    /// Where a browser finds it.
    pub(super) url: String,
}

/// A page's objects as a browser sees them.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) members: Vec<Member<'a>>,
}

impl<'a> Site<'a> {
    pub(super) fn new(page: &'a Page) -> Self {
        let member = |object: &'a PageObject| {
            let kind = Kind::of(object);
            let file = match kind {
                Kind::Document => DOCUMENT.to_owned(),
                other => format!("{}.{}", object.name, other.extension()),
            };
            let url = format!("https://{HOST}:{}/{file}", port(object.host));
            Member { object, kind, file, url }
        };
        Self { members: page.objects.iter().map(member).collect() }
    }

    /// Every file with its bytes.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, Vec<u8>)> {
        (0..self.members.len()).map(|index| (self.members[index].file.as_str(), self.content(index)))
    }

    fn content(&self, index: usize) -> Vec<u8> {
        let member = &self.members[index];
        let bytes = member.object.bytes as usize;
        let filler = content::Filler::new(&member.file);
        match member.kind {
            Kind::Document => filler.html(&markup::document(self, index), bytes),
            Kind::Style => filler.commented(&markup::style(self, index), bytes),
            Kind::Script => filler.commented(&markup::script(self, index), bytes),
            Kind::Data => filler.json(&markup::data(self, index), bytes),
            Kind::Font => filler.noise(bytes),
            Kind::Image => filler.image(bytes),
        }
    }

    /// Members that ask for nothing before `index` is there, and whose last prerequisite in the document's order it is.
    pub(super) fn brought_by(&self, index: usize) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter().filter(move |member| member.object.after.iter().max() == Some(&index))
    }

    /// The same for each of several prerequisites of one kind in turn, so that all of them bring something.
    pub(super) fn shared_by(&self, index: usize) -> impl Iterator<Item = &Member<'a>> {
        let waiting = self.members.iter().filter(move |member| member.object.after.contains(&index));
        waiting.enumerate().filter_map(move |(turn, member)| {
            let after = &member.object.after;
            (after.get(turn % after.len()) == Some(&index)).then_some(member)
        })
    }
}

/// The port of a host of the page.
pub(super) fn port(host: usize) -> u16 {
    FIRST_PORT + host as u16
}

/// Writes the files of `page` into `folder`.
pub(super) fn write(page: &Page, folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::runtime(format!("cannot write the page into {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (file, content) in Site::new(page).files() {
        std::fs::write(folder.join(file), content).map_err(failed)?;
    }
    Ok(())
}

//! Web pages: which objects there are, on which hosts, and what must be read before each may be asked for.
//!
//! Pages come as TOML, see `pages/*.toml` in the repository:
//!
//! ```toml
//! description = "what it stands for"
//! hosts = ["www", "media"]
//!
//! [[objects]]
//! name = "html"
//! host = "www"
//! size = "30kB"
//! parse = "20ms"             # from its last byte to the requests of what depends on it; none unless given
//! critical = true            # nothing is shown before it is there: the document, style sheets, scripts; false unless given
//!
//! [[objects]]
//! name = "image"             # with `sizes` a series: image-1, image-2
//! host = "media"
//! sizes = ["12kB", "8kB"]
//! after = ["html"]           # a series' name stands for all of it
//! ```

mod error;
mod load;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use posthaste_units::{ByteCount, Duration};
use serde::Deserialize;

pub use error::PageError;
pub use load::PageLoad;

/// The pages that come with Posthaste.
const BUILT_IN: [(&str, &str); 2] =
    [("gr-page", include_str!("../../pages/gr-page.toml")), ("news", include_str!("../../pages/news.toml"))];

/// Most objects of a page.
const MAX_OBJECTS: usize = 10_000;

/// A page that can be loaded: every name is resolved, and nothing waits for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// What it stands for.
    pub description: String,
    /// Names of the web hosts; each has an object at least.
    pub hosts: Vec<String>,
    /// In the order in which a browser asks for those that it may ask for at one time.
    pub objects: Vec<PageObject>,
    /// Indices of the objects, each after all that it depends on.
    order: Vec<usize>,
}

/// One object of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageObject {
    /// Its name.
    pub name: String,
    /// Index of its host in [`Page::hosts`].
    pub host: usize,
    /// Body bytes.
    pub bytes: u64,
    /// Indices of the objects that must have been read before it is asked for.
    pub after: Vec<usize>,
    /// Time from its last byte to the requests of what depends on it.
    pub parse: Duration,
    /// Nothing is shown before it is there.
    pub is_critical: bool,
}

/// A page as its file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageFile {
    description: String,
    hosts: Vec<String>,
    #[serde(default)]
    objects: Vec<ObjectFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectFile {
    name: String,
    host: String,
    size: Option<ByteCount>,
    sizes: Option<Vec<ByteCount>>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    parse: Option<Duration>,
    #[serde(default)]
    critical: bool,
}

impl ObjectFile {
    /// Names and sizes of the objects that it stands for.
    fn members(&self) -> Result<Vec<(String, ByteCount)>, PageError> {
        match (&self.size, &self.sizes) {
            (Some(size), None) => Ok(vec![(self.name.clone(), *size)]),
            (None, Some(sizes)) if !sizes.is_empty() => {
                let name = |index| format!("{}-{}", self.name, index + 1);
                Ok(sizes.iter().enumerate().map(|(index, size)| (name(index), *size)).collect())
            }
            _ => Err(PageError::Size { object: self.name.clone() }),
        }
    }
}

impl Page {
    /// The page with this name.
    ///
    /// # Errors
    /// If there is none.
    ///
    /// # Panics
    /// Never: the pages that come with Posthaste are tested to be valid.
    pub fn named(name: &str) -> Result<Arc<Self>, PageError> {
        // Runs ask for their page several times: reading it once will do.
        static PAGES: [OnceLock<Arc<Page>>; BUILT_IN.len()] = [const { OnceLock::new() }; BUILT_IN.len()];
        let Some(index) = Self::names().position(|known| known == name) else {
            return Err(PageError::UnknownPage { name: name.to_owned() });
        };
        let read =
            || Arc::new(BUILT_IN[index].1.parse().expect("the pages that come with Posthaste are valid"));
        Ok(Arc::clone(PAGES[index].get_or_init(read)))
    }

    /// The names that [`Self::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// `bytes` in equal parts (the last takes what is left over), all asked for at once.
    pub(super) fn in_parts(bytes: u64, parts: u32) -> Self {
        let count = u64::from(parts.max(1));
        let part = |index| bytes / count + if index + 1 == count { bytes % count } else { 0 };
        let object = |index| PageObject {
            name: format!("part-{}", index + 1),
            host: 0,
            bytes: part(index),
            after: Vec::new(),
            parse: Duration::ZERO,
            is_critical: false,
        };
        Self {
            description: format!("one object in {count} parts"),
            hosts: vec!["host".to_owned()],
            objects: (0..count).map(object).collect(),
            order: (0..parts.max(1) as usize).collect(),
        }
    }

    /// Body bytes of all objects.
    pub fn body_bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }

    /// Objects in the longest chain of dependencies: request round trips that follow each other at the least.
    pub fn depth(&self) -> u32 {
        self.longest(|_| 1)
    }

    /// Time that the longest chain takes if each exchange takes `round_trip` and nothing else takes time but
    /// parsing; from the first request to the last byte.
    pub fn least_time(&self, round_trip: Duration) -> Duration {
        // The last object's own parsing delays nothing.
        let chain = |index: usize| {
            let is_last = !self.objects.iter().any(|object| object.after.contains(&index));
            let parse = if is_last { Duration::ZERO } else { self.objects[index].parse };
            (round_trip + parse).as_nanos()
        };
        Duration::from_nanos(self.longest(chain))
    }

    /// The greatest sum of `cost` along any chain of dependencies.
    fn longest<T: Copy + Ord + Default + std::ops::Add<Output = T>>(&self, cost: impl Fn(usize) -> T) -> T {
        let mut sums = vec![T::default(); self.objects.len()];
        for &index in &self.order {
            let before = self.objects[index].after.iter().map(|&before| sums[before]).max();
            sums[index] = before.unwrap_or_default() + cost(index);
        }
        sums.into_iter().max().unwrap_or_default()
    }
}

impl FromStr for Page {
    type Err = PageError;

    fn from_str(text: &str) -> Result<Self, PageError> {
        let file: PageFile = toml::from_str(text).map_err(|error| PageError::Syntax(Box::new(error)))?;
        let hosts = host_indices(&file.hosts)?;
        let names = object_indices(&file.objects)?;
        let mut objects = Vec::new();
        let mut used = vec![false; file.hosts.len()];
        for entry in &file.objects {
            let host = *hosts.get(entry.host.as_str()).ok_or_else(|| PageError::UnknownHost {
                object: entry.name.clone(),
                host: entry.host.clone(),
                hosts: file.hosts.clone(),
            })?;
            used[host] = true;
            let mut after = Vec::new();
            for dependency in &entry.after {
                let indices = names.get(dependency).ok_or_else(|| PageError::UnknownObject {
                    object: entry.name.clone(),
                    dependency: dependency.clone(),
                })?;
                after.extend_from_slice(indices);
            }
            after.sort_unstable();
            after.dedup();
            let parse = entry.parse.unwrap_or_default();
            objects.extend(entry.members()?.into_iter().map(|(name, size)| PageObject {
                name,
                host,
                bytes: size.get(),
                after: after.clone(),
                parse,
                is_critical: entry.critical,
            }));
        }
        if let Some(unused) = used.iter().position(|used| !used) {
            return Err(PageError::UnusedHost { host: file.hosts[unused].clone() });
        }
        let order = order(&objects)?;
        Ok(Self { description: file.description, hosts: file.hosts, objects, order })
    }
}

fn host_indices(hosts: &[String]) -> Result<BTreeMap<&str, usize>, PageError> {
    let mut indices = BTreeMap::new();
    for (index, host) in hosts.iter().enumerate() {
        if indices.insert(host.as_str(), index).is_some() {
            return Err(PageError::Duplicate { kind: "hosts", name: host.clone() });
        }
    }
    Ok(indices)
}

/// The objects that each name stands for: one, or for a series' name all of it.
fn object_indices(entries: &[ObjectFile]) -> Result<BTreeMap<String, Vec<usize>>, PageError> {
    let mut indices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut insert = |name: String, members: Vec<usize>| match indices.insert(name.clone(), members) {
        Some(_) => Err(PageError::Duplicate { kind: "objects", name }),
        None => Ok(()),
    };
    let mut count = 0;
    for entry in entries {
        let members = entry.members()?;
        let range = count..count + members.len();
        count = range.end;
        if entry.sizes.is_some() {
            insert(entry.name.clone(), range.clone().collect())?;
        }
        for ((name, _), index) in members.into_iter().zip(range) {
            insert(name, vec![index])?;
        }
    }
    match count {
        0 => Err(PageError::Empty),
        count if count > MAX_OBJECTS => Err(PageError::TooMany { count, max: MAX_OBJECTS }),
        _ => Ok(indices),
    }
}

/// The objects in an order in which each follows all that it depends on.
fn order(objects: &[PageObject]) -> Result<Vec<usize>, PageError> {
    let mut dependents = vec![Vec::new(); objects.len()];
    let mut missing: Vec<usize> = objects.iter().map(|object| object.after.len()).collect();
    for (index, object) in objects.iter().enumerate() {
        for &before in &object.after {
            dependents[before].push(index);
        }
    }
    let mut order: Vec<usize> = (0..objects.len()).filter(|&index| missing[index] == 0).collect();
    let mut next = 0;
    while let Some(&index) = order.get(next) {
        next += 1;
        for &dependent in &dependents[index] {
            missing[dependent] -= 1;
            if missing[dependent] == 0 {
                order.push(dependent);
            }
        }
    }
    if order.len() == objects.len() { Ok(order) } else { Err(cycle(objects, &missing)) }
}

/// Names a cycle, given how many dependencies each object still misses once all that can be ordered is.
fn cycle(objects: &[PageObject], missing: &[usize]) -> PageError {
    let is_stuck = |index: &usize| missing[*index] > 0;
    let mut walk: Vec<usize> = (0..objects.len()).find(is_stuck).into_iter().collect();
    // Every stuck object waits for another stuck one, so the walk comes back to where it has been.
    while let Some(next) =
        walk.last().and_then(|&last| objects[last].after.iter().copied().find(|index| is_stuck(index)))
    {
        let seen = walk.iter().position(|&index| index == next);
        walk.push(next);
        if let Some(seen) = seen {
            let names = walk[seen..].iter().map(|&index| objects[index].name.clone());
            return PageError::Cycle { names: names.collect() };
        }
    }
    PageError::Empty
}

//! What will be loaded, from where, over which paths: checked before anything starts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use posthaste_campaign::order;
use posthaste_lab::apps::Page as Description;
use tempfile::TempDir;

use super::background;
use super::build::Builds;
use super::record::{Key, Record};
use super::site;
use super::target::{self, Contestant, Origin};
use super::visit::find_browser;
use crate::args::Page;
use crate::exit::Failure;
use crate::identity::{Identity, KEPT};
use crate::{path_choice, profile};

/// The word for the network as it is.
const NO_PATH: &str = "none";

/// The name under which URLs' own pages stand.
const OWN_PAGE: &str = "URL";

/// Everything that a command is asked to do.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) pages: Vec<PagePlan>,
    pub(super) paths: Vec<PathPlan>,
    pub(super) contestants: Vec<Contestant>,
    pub(super) runs: u64,
    pub(super) seed: u64,
    pub(super) parallel: usize,
    /// Downloads beside each run.
    pub(super) background: u16,
    pub(super) is_warm_wanted: bool,
    /// A contestant whose first run fails ends it all.
    pub(super) gives_up: bool,
    pub(super) timeout: Duration,
    pub(super) browser: PathBuf,
    pub(super) spki: Vec<String>,
    pub(super) qlog: Option<PathBuf>,
    pub(super) net_log: Option<PathBuf>,
    /// The certificate of all servers that are started, and its key.
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) posthaste: PathBuf,
    /// What tells runs of this command from those of other builds.
    pub(super) builds: Builds,
    /// Pages, certificate and what runs leave behind; gone with the plan.
    pub(super) ground: TempDir,
}

/// A page.
#[derive(Debug)]
pub(super) struct PagePlan {
    pub(super) name: String,
    /// One line for people.
    pub(super) description: String,
    /// Its files; none for URLs.
    pub(super) folder: Option<PathBuf>,
    pub(super) requests: Option<usize>,
    pub(super) hosts: usize,
}

/// A path.
#[derive(Debug)]
pub(super) struct PathPlan {
    /// As given on the command line.
    pub(super) name: String,
    pub(super) description: String,
    /// All of it, traces included: another text is another path under the same name.
    pub(super) text: String,
    /// What `posthaste emulate` takes; none for the network as it is.
    pub(super) argument: Option<String>,
}

impl Plan {
    pub(super) fn new(args: &Page) -> Result<Self, Failure> {
        Self::of(args, target::contestants(args)?)
    }

    /// A plan for these contestants.
    pub(super) fn of(args: &Page, contestants: Vec<Contestant>) -> Result<Self, Failure> {
        let paths = args.path.iter().map(|name| path(args, name)).collect::<Result<Vec<_>, _>>()?;
        background::check(args.background, paths.iter().all(|path| path.argument.is_some()))?;
        let browser = find_browser(&args.browser).ok_or_else(|| no_browser(&args.browser))?;
        let failed = |error: &dyn std::fmt::Display| Failure::runtime(format!("cannot prepare: {error}"));
        let ground = TempDir::with_prefix("posthaste-page-").map_err(|error| failed(&error))?;
        let identity = Identity::keep_for(&ground.path().join("identity"), site::HOST, SystemTime::now())?;
        // Chain and key in one file: who looks for a key passes over the rest.
        let key = ground.path().join("identity").join(KEPT);
        let pages =
            if args.urls.is_empty() { own_pages(&args.page, ground.path())? } else { vec![page_of_urls()] };
        let mut spki = args.spki.clone();
        spki.push(identity.spki_hash.clone());
        for folder in args.qlog.iter().chain(&args.net_log) {
            profile::make_trace_folder(folder)?;
        }
        let builds = Builds::of(&paths, &contestants)?;
        let made_absolute = |path: &Option<PathBuf>| path.as_deref().map(target::absolute).transpose();
        Ok(Self {
            pages,
            paths,
            contestants,
            runs: args.runs,
            seed: args.seed,
            parallel: args.parallel.into(),
            background: args.background,
            is_warm_wanted: !args.cold_only,
            gives_up: false,
            timeout: args.timeout,
            browser,
            spki,
            qlog: made_absolute(&args.qlog)?,
            net_log: made_absolute(&args.net_log)?,
            certificate: identity.file,
            key,
            posthaste: std::env::current_exe().map_err(|error| failed(&error))?,
            builds,
            ground,
        })
    }

    /// Compares these instead. The certificate is for `host`, and one with the hash `spki` is trusted, too.
    pub(super) fn front(
        &mut self,
        contestants: Vec<Contestant>,
        host: &str,
        spki: Option<&str>,
    ) -> Result<(), Failure> {
        let folder = self.ground.path().join("front");
        let identity = Identity::keep_for(&folder, host, SystemTime::now())?;
        self.builds = Builds::of(&self.paths, &contestants)?;
        self.spki.extend([identity.spki_hash].into_iter().chain(spki.map(str::to_owned)));
        (self.certificate, self.key) = (identity.file, folder.join(KEPT));
        for page in &mut self.pages {
            host.clone_into(&mut page.name);
        }
        (self.contestants, self.gives_up) = (contestants, true);
        Ok(())
    }

    /// All runs, round by round, so that what is stopped early has about as many of each.
    pub(super) fn order(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for round in 1..=self.runs {
            for page in 0..self.pages.len() {
                for path in 0..self.paths.len() {
                    let turned = order::of_round(self.contestants.len(), round);
                    items.extend(turned.map(|contestant| Item { page, path, contestant, round }));
                }
            }
        }
        items
    }

    pub(super) fn key(&self, item: Item) -> Key {
        Key {
            page: self.pages[item.page].name.clone(),
            path: self.paths[item.path].name.clone(),
            contestant: self.contestants[item.contestant].name.clone(),
            round: item.round,
        }
    }

    /// The seed of a round's paths.
    pub(super) fn seed_of(&self, round: u64) -> u64 {
        order::seed_of(self.seed, round)
    }

    /// True if the record is one of this plan.
    pub(super) fn includes(&self, record: &Record) -> bool {
        let Key { page, path, contestant, round } = &record.key;
        record.seed == self.seed_of(*round)
            && record.background == self.background
            && (1..=self.runs).contains(round)
            && self.pages.iter().any(|known| known.name == *page)
            && self.paths.iter().any(|known| known.name == *path)
            && self.contestants.iter().any(|known| known.name == *contestant)
            && record.seen.failure.is_some()
                | (record.seen.visits.len() == 1 + usize::from(self.is_warm_wanted))
    }
}

/// One run to be made; indices into the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) page: usize,
    pub(super) path: usize,
    pub(super) contestant: usize,
    /// From 1.
    pub(super) round: u64,
}

fn path(args: &Page, name: &str) -> Result<PathPlan, Failure> {
    if name == NO_PATH {
        if args.urls.is_empty() {
            return Err(Failure::usage("--path none is for URLs: our own servers are started behind a path")
                .hint("a path of your own that does nothing is a TOML file with rtt = \"0ms\""));
        }
        let description = "the network as it is".to_owned();
        return Ok(PathPlan {
            name: name.to_owned(),
            text: description.clone(),
            description,
            argument: None,
        });
    }
    let spec = path_choice::find(name)?;
    let argument = if profile::is_file(name) {
        target::absolute(Path::new(name))?.display().to_string()
    } else {
        name.to_owned()
    };
    let description = spec.summary() + &background::describe(args.background);
    let text = format!("{spec:?}");
    Ok(PathPlan { name: name.to_owned(), description, text, argument: Some(argument) })
}

fn no_browser(name: &str) -> Failure {
    Failure::runtime(format!("the browser `{name}` is not installed")).hint(
        "install Chromium (Debian: apt-get install chromium; Ubuntu's is a snap, which cannot see the files of a run in /tmp: \
         install google-chrome there) or Firefox (--browser firefox; Debian: apt-get install firefox-esr), or name a program \
         with --browser FILE",
    )
}

fn own_pages(names: &[String], ground: &Path) -> Result<Vec<PagePlan>, Failure> {
    let page = |name: &String| {
        let description: Arc<Description> = Description::named(name).map_err(Failure::usage)?;
        let folder = ground.join("pages").join(name);
        site::write(&description, &folder)?;
        Ok(PagePlan {
            name: name.clone(),
            description: description.description.clone(),
            folder: Some(folder),
            requests: Some(description.objects.len()),
            hosts: description.hosts.len(),
        })
    };
    names.iter().map(page).collect()
}

fn page_of_urls() -> PagePlan {
    PagePlan {
        name: OWN_PAGE.to_owned(),
        description: "what is there".to_owned(),
        folder: None,
        requests: None,
        hosts: 1,
    }
}

/// Everything about paths to and from an existing server on this machine.
pub(super) fn is_started_here(contestant: &Contestant) -> bool {
    !matches!(contestant.origin, Origin::Url(_))
}

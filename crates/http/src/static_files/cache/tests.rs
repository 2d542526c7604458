use std::fs::FileTimes;
use std::io::Write;
use std::path::Path;

use super::*;
use crate::static_files::locate::{self, Found};

/// A directory, and the cache of its files.
struct Site {
    guard: tempfile::TempDir,
    cache: Cache,
}

/// A change of a file, in words.
type Change = (&'static str, fn(&Path));

#[expect(clippy::disallowed_methods, reason = "files' times follow the wall clock")]
fn wait(time: Duration) {
    std::thread::sleep(time);
}

fn opened<'a>(
    path: &Path,
    (file, metadata): (&'a File, &std::fs::Metadata),
    described: &'a Described,
    (seen, now): (Instant, SystemTime),
) -> Opened<'a> {
    Opened { sources: vec![(path.to_owned(), Stamp::of(metadata))], file, described, seen, now }
}

impl Site {
    fn new() -> Self {
        Self { guard: tempfile::tempdir().unwrap(), cache: Cache::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.guard.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Looks the file up as a blocking thread does, long after its last change.
    fn load(&self, name: &str) -> Option<Arc<Kept>> {
        let target = self.path(name);
        let seen = Instant::now();
        let Ok(Found::File(file, metadata)) = locate::open(&self.path(""), &target) else { return None };
        let later = super::super::now() + Duration::from_secs(60);
        let described = Described::new(&target, &metadata, later);
        let opened = opened(&target, (&file, &metadata), &described, (seen, later));
        self.cache.keep(&format!("/{name}"), opened, Duration::MAX)
    }

    /// What is known without blocking, once the last look counts no more.
    fn find(&self, name: &str) -> Option<Bytes> {
        wait(FRESH);
        Some(self.cache.find(&format!("/{name}"))?.content.clone())
    }

    /// Whether this machine can look at files in place.
    fn sees_in_place(&self) -> bool {
        self.write("probe", b"probe");
        self.load("probe").unwrap();
        self.find("probe").is_some()
    }
}

#[test]
fn a_file_at_rest_is_found_without_blocking() {
    let site = Site::new();
    site.write("a", b"content");
    assert!(site.cache.find("/a").is_none());
    let kept = site.load("a").unwrap();
    assert_eq!(kept.content, "content");
    let again = site.cache.find("/a").map(|kept| kept.content.clone());
    assert!(
        again.is_none_or(|content| content == "content"),
        "a slow machine may take longer than it stays fresh"
    );
    if cfg!(target_os = "linux") && kept.is_local {
        assert!(site.sees_in_place(), "the kernel is older than 5.12, or the test does not look");
        assert_eq!(site.find("a").unwrap(), "content");
    }
    let response = kept.answer(&HeaderMap::new(), false);
    assert_eq!(response.status(), 200);
}

/// Whatever happens to a kept file is seen, if it is looked at again.
#[test]
#[cfg(unix)]
fn every_change_is_noticed() {
    let site = Site::new();
    let changes: [Change; 8] = [
        ("is written to, to the same length", |path| {
            std::fs::write(path, b"CONTENT").unwrap();
        }),
        ("grows", |path| File::options().append(true).open(path).unwrap().write_all(b"more").unwrap()),
        ("shrinks", |path| File::options().write(true).open(path).unwrap().set_len(3).unwrap()),
        ("vanishes", |path| std::fs::remove_file(path).unwrap()),
        ("is replaced by a rename", |path| {
            let other = path.with_extension("other");
            std::fs::write(&other, b"CONTENT").unwrap();
            std::fs::rename(other, path).unwrap();
        }),
        ("is replaced by a directory", |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        }),
        ("is replaced by a link to itself elsewhere", |path| {
            let other = path.with_extension("other");
            std::fs::rename(path, &other).unwrap();
            std::os::unix::fs::symlink(&other, path).unwrap();
        }),
        ("is written to, and its time of modification set back", |path| {
            let modified = path.metadata().unwrap().modified().unwrap();
            std::fs::write(path, b"CONTENT").unwrap();
            let file = File::options().write(true).open(path).unwrap();
            file.set_times(FileTimes::new().set_modified(modified)).unwrap();
        }),
    ];
    for (index, (what, change)) in changes.into_iter().enumerate() {
        let name = format!("file{index}");
        site.write(&name, b"content");
        let kept = site.load(&name).unwrap();
        // Longer than a tick of the kernel's clock for files.
        wait(Duration::from_millis(20));
        if site.sees_in_place() {
            assert_eq!(site.find(&name).unwrap(), "content", "{what}: it was not even known before");
        }
        change(&site.path(&name));
        assert!(site.find(&name).is_none(), "{what}");
        // The next look of a blocking thread shows the new state, or that there is none.
        let after = site.load(&name).map(|kept| kept.content.clone());
        assert_ne!(after.is_some_and(|content| content == "content"), !what.contains("link"), "{what}");
        assert_eq!(kept.content, "content", "what was being sent is whole");
    }
}

/// A directory on the way that becomes a link out of the served directory.
#[test]
#[cfg(unix)]
fn a_directory_that_becomes_a_link_is_noticed() {
    let (site, elsewhere) = (Site::new(), tempfile::tempdir().unwrap());
    std::fs::create_dir(site.path("inner")).unwrap();
    site.write("inner/file", b"content");
    site.load("inner/file").unwrap();
    std::fs::rename(site.path("inner"), elsewhere.path().join("inner")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("inner"), site.path("inner")).unwrap();
    // The same file in the same state, but outside.
    assert_eq!(std::fs::read(site.path("inner/file")).unwrap(), b"content");
    assert!(site.find("inner/file").is_none());
    assert!(site.load("inner/file").is_none());
}

#[test]
fn what_is_not_at_rest_or_long_is_not_kept() {
    let site = Site::new();
    site.write("young", b"content");
    let target = site.path("young");
    let (file, now) = (File::open(&target).unwrap(), super::super::now());
    let metadata = file.metadata().unwrap();
    let described = Described::new(&target, &metadata, now);
    let seen = (Instant::now(), now);
    let opened = opened(&target, (&file, &metadata), &described, seen);
    assert!(site.cache.keep("/young", opened, Duration::MAX).is_none());
    site.write("long", &vec![0; MAX_LENGTH as usize + 1]);
    assert!(site.load("long").is_none());
    site.write("longest", &vec![0; MAX_LENGTH as usize]);
    assert!(site.load("longest").is_some());
    assert!(site.load("long").is_none() && site.cache.held.load(Ordering::Relaxed) == MAX_LENGTH as usize);
}

/// Links to one file stand for as many files: 100,000 paths leave the bounds as they are, and those in use stay.
#[test]
#[cfg(unix)]
fn many_files_stay_within_the_bounds() {
    let site = Site::new();
    site.write("file", b"0123456789");
    let target = site.path("file");
    let file = File::open(&target).unwrap();
    let metadata = file.metadata().unwrap();
    let later = super::super::now() + Duration::from_secs(60);
    let described = Described::new(&target, &metadata, later);
    let keep = |path: &str| {
        let opened = opened(&target, (&file, &metadata), &described, (Instant::now(), later));
        site.cache.keep(path, opened, Duration::MAX).unwrap();
    };
    keep("/used");
    for number in 0..100_000 {
        keep(&format!("/{number}"));
        if number % 1000 == 0 {
            site.cache.files().entries["/used"].is_used.store(true, Ordering::Relaxed);
        }
    }
    let files = site.cache.files();
    assert_eq!((files.entries.len(), files.order.len()), (MAX_FILES, MAX_FILES));
    assert!(files.entries.contains_key("/used"), "what is asked for all the time was given up");
    assert_eq!(site.cache.held.load(Ordering::Relaxed), 10 * MAX_FILES);
}

#[test]
#[cfg(unix)]
fn bytes_count_until_the_last_response_is_sent() {
    let site = Site::new();
    site.write("file", &vec![7; MAX_LENGTH as usize]);
    let target = site.path("file");
    let file = File::open(&target).unwrap();
    let metadata = file.metadata().unwrap();
    let later = super::super::now() + Duration::from_secs(60);
    let described = Described::new(&target, &metadata, later);
    let keep = |number: usize| {
        let opened = opened(&target, (&file, &metadata), &described, (Instant::now(), later));
        let kept = site.cache.keep(&number.to_string(), opened, Duration::MAX)?;
        Some(kept.answer(&HeaderMap::new(), false))
    };
    let room = MAX_BYTES / MAX_LENGTH as usize;
    let unread: Vec<_> = (0..room).map(|number| keep(number).unwrap()).collect();
    assert!(keep(room).is_none(), "responses that nobody reads take all the room");
    assert_eq!(site.cache.held.load(Ordering::Relaxed), MAX_BYTES);
    drop(unread);
    assert_eq!(site.cache.held.load(Ordering::Relaxed), 0);
    assert!(keep(room + 1).is_some());
}

#[test]
fn a_path_that_leads_nowhere_any_more_is_forgotten_by_the_next_look() {
    let site = Site::new();
    site.write("a", b"content");
    site.load("a").unwrap();
    site.cache.forget("/a");
    assert!(site.cache.find("/a").is_none());
    let files = site.cache.files();
    assert!(files.entries.is_empty() && files.order.is_empty());
}

#[test]
fn what_may_change_unseen_counts_for_its_lifetime() {
    let site = Site::new();
    site.write("a", b"content");
    let target = site.path("a");
    let file = File::open(&target).unwrap();
    let metadata = file.metadata().unwrap();
    let later = super::super::now() + Duration::from_secs(60);
    let described = Described::new(&target, &metadata, later);
    let keep = |lifetime| {
        let opened = opened(&target, (&file, &metadata), &described, (Instant::now(), later));
        site.cache.keep("/a", opened, lifetime).unwrap();
        site.cache.find("/a").is_some()
    };
    assert!(!keep(Duration::ZERO));
    // Longer than any machine takes from one line to the next.
    assert!(keep(Duration::from_secs(3600)) || !site.sees_in_place());
}

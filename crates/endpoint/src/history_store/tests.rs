//! Files as crashes, other versions and enemies leave them.

use posthaste_policy::sample::PathLoss;
use posthaste_units::ByteCount;

use super::*;

fn rules() -> HistoryRules {
    posthaste_schemes::named("history").unwrap().history_rules().unwrap()
}

fn client(number: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, number])
}

fn sample(window: u64) -> PathHistory {
    PathHistory {
        window: ByteCount::new(window),
        min_rtt: Duration::from_millis(40),
        age: Duration::ZERO,
        continues: false,
        loss: PathLoss::new(1_000, 80),
    }
}

fn now() -> Duration {
    Duration::from(clock::unix_time())
}

fn window(store: &HistoryStore, number: u8) -> Option<u64> {
    store.recall(now(), client(number)).map(|known| known.window.get())
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.redb");
    filled(&path);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

/// A file with one path in it.
fn filled(path: &Path) {
    let store = HistoryStore::open(path, rules()).unwrap();
    store.record(now(), client(1), &sample(90_000));
    assert!(store.flush());
}

#[test]
fn what_is_recorded_is_there_in_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.redb");
    assert_eq!(HistoryStore::read(&path).unwrap(), []);
    let store = HistoryStore::open(&path, rules()).unwrap();
    for number in 0..200 {
        store.record(now(), client(number), &sample(60_000 + u64::from(number)));
    }
    store.forget(client(7));
    assert_eq!(window(&store, 7), None);
    drop(store);
    let again = HistoryStore::open(&path, rules()).unwrap();
    assert_eq!((window(&again, 7), window(&again, 8)), (None, Some(60_008)));
    assert_eq!(HistoryStore::read(&path).unwrap().len(), 199, "readable while it is in use");
    assert_eq!(HistoryStore::clear(&path).unwrap(), 199);
    assert_eq!(HistoryStore::read(&path).unwrap(), []);
    assert_eq!(window(&again, 8), Some(60_008), "a running server keeps its own");
    again.record(now(), client(3), &sample(70_000));
    assert!(again.flush());
    assert_eq!(HistoryStore::read(&path).unwrap().len(), 1);
}

/// Waits until a file has rows, while `busy` goes on; how many.
#[expect(clippy::disallowed_methods, reason = "the file is written by a thread of its own")]
fn rows_in_time(path: &Path, busy: impl Fn(u8) + Sync) -> usize {
    let is_done = AtomicBool::new(false);
    let wait = |milliseconds| std::thread::sleep(Span::from_millis(milliseconds));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..=255).cycle().take_while(|_| !is_done.load(Ordering::Relaxed)) {
                busy(number);
            }
        });
        let mut rows = 0;
        for _ in 0..150 {
            rows = HistoryStore::read(path).map_or(0, |rows| rows.len());
            if rows > 0 {
                break;
            }
            wait(100);
        }
        is_done.store(true, Ordering::Relaxed);
        rows
    })
}

#[test]
fn a_busy_server_writes_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.redb");
    let store = HistoryStore::open(&path, rules()).unwrap();
    store.record(now(), client(1), &sample(70_000));
    // There always is a next message, but never so many changes that these alone would be reason enough to write.
    let rows = rows_in_time(&path, |number| store.forget(IpAddr::from([198, 51, 100, number])));
    assert_eq!(rows, 1, "what comes after kept it from being written");
}

#[test]
fn what_is_too_old_or_of_another_profile_is_left_out_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.redb");
    let store = HistoryStore::open(&path, rules()).unwrap();
    store.record(now().saturating_sub(Duration::from_secs(7200)), client(1), &sample(90_000));
    store.record(now(), client(2), &sample(80_000));
    drop(store);
    let again = HistoryStore::open(&path, rules()).unwrap();
    assert_eq!((window(&again, 1), window(&again, 2)), (None, Some(80_000)));
    drop(again);
    let paper = posthaste_schemes::named("history-paper").unwrap().history_rules().unwrap();
    assert_eq!(window(&HistoryStore::open(&path, paper).unwrap(), 2), None);
    assert_eq!(HistoryStore::read(&path).unwrap(), []);
}

#[test]
fn a_damaged_file_is_moved_aside_and_a_new_one_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.redb");
    filled(&path);
    let whole = std::fs::read(&path).unwrap();
    let mut versions = whole.clone();
    versions[8..16].fill(0xee);
    let mut noise = vec![0; 300_000];
    posthaste_units::Rng::from_test_seed(1).fill(&mut noise);
    let mut holes = whole.clone();
    let middle = holes.len() / 2;
    holes[4096..middle].fill(0x55);
    let cases: [(&str, Vec<u8>); 6] = [
        ("a text", b"this is no history".to_vec()),
        ("truncated", whole[..whole.len() / 3].to_vec()),
        ("a header alone", whole[..100].to_vec()),
        ("another version", versions),
        ("noise", noise),
        ("holes", holes),
    ];
    for (name, bytes) in cases {
        std::fs::write(&path, &bytes).unwrap();
        let error = HistoryStore::read(&path).expect_err(name);
        assert!(matches!(error, HistoryError::Damaged { .. }), "{name}: {error}");
        assert!(error.to_string().contains("history.redb"), "{name}: {error}");
        let store = HistoryStore::open(&path, rules()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(window(&store, 1), None, "{name}");
        store.record(now(), client(2), &sample(80_000));
        drop(store);
        assert_eq!(HistoryStore::read(&path).unwrap().len(), 1, "{name}");
        assert!(folder.path().join("history.redb.damaged").is_file(), "{name}");
    }
}

#[test]
fn a_redb_file_of_another_layout_or_with_nonsense_in_it_is_no_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.redb");
    let change = |work: &dyn Fn(&redb::WriteTransaction)| {
        let _ = std::fs::remove_file(&path);
        filled(&path);
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        work(&transaction);
        transaction.commit().unwrap();
        drop(database);
        HistoryStore::read(&path).unwrap_err().to_string()
    };
    let layout = change(&|transaction| {
        transaction.open_table(ABOUT).unwrap().insert(LAYOUT, 9).unwrap();
    });
    assert!(layout.contains("its layout is 9"), "{layout}");
    let foreign = change(&|transaction| {
        transaction.delete_table(ABOUT).unwrap();
    });
    assert!(foreign.contains("no history"), "{foreign}");
    let nonsense = change(&|transaction| {
        transaction.open_table(PATHS).unwrap().insert(&b"key"[..], &b"value"[..]).unwrap();
    });
    assert!(nonsense.contains("an entry makes no sense"), "{nonsense}");
    assert!(HistoryStore::open(&path, rules()).is_ok());
}

#[test]
fn a_disk_that_refuses_costs_the_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let path = inner.join("history.redb");
    let store = HistoryStore::open(&path, rules()).unwrap();
    std::fs::remove_dir_all(&inner).unwrap();
    for number in 0..10 {
        store.record(now(), client(number), &sample(70_000));
    }
    assert!(!store.flush(), "the writer goes on, and says that the file lacks something");
    assert_eq!(window(&store, 9), Some(70_000), "in memory nothing is lost");
    // The disk is back: what was missed is written with the next change.
    std::fs::create_dir(&inner).unwrap();
    store.record(now(), client(77), &sample(70_000));
    assert!(store.flush());
    drop(store);
    assert_eq!(HistoryStore::read(&path).unwrap().len(), 11);

    let none = HistoryStore::open(&folder.path().join("missing").join("history.redb"), rules());
    assert!(matches!(none, Err(HistoryError::Io { .. })));
    let directory = HistoryStore::open(folder.path(), rules());
    assert!(matches!(directory, Err(HistoryError::Io { .. })));
}

#[test]
fn a_file_in_use_is_not_taken_for_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.redb");
    filled(&path);
    let holder = Database::create(&path).unwrap();
    assert!(matches!(HistoryStore::read(&path), Err(HistoryError::InUse { .. })));
    drop(holder);
    assert_eq!(HistoryStore::read(&path).unwrap().len(), 1);
}

#[test]
fn a_disk_that_is_full_at_the_start_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let full = |path: &Path| HistoryError::Io {
        path: path.to_owned(),
        kind: ErrorKind::StorageFull,
        reason: "no space left".to_owned(),
    };
    let path = folder.path().join("history.redb");
    let memory = MemoryStore::new(rules());
    let store = HistoryStore::start(&path, memory, Some(&full(&path)), Span::from_millis(20)).unwrap();
    store.record(now(), client(1), &sample(90_000));
    assert_eq!(rows_in_time(&path, |_| ()), 1, "though nothing else changes, and nobody waits");

    // Long before the next try the server ends.
    let inner = folder.path().join("inner");
    let path = inner.join("history.redb");
    let memory = MemoryStore::new(rules());
    let store = HistoryStore::start(&path, memory, Some(&full(&path)), Span::from_secs(3600)).unwrap();
    store.record(now(), client(1), &sample(90_000));
    assert!(!store.flush(), "there is no folder yet");
    std::fs::create_dir(&inner).unwrap();
    drop(store);
    assert_eq!(HistoryStore::read(&path).unwrap().len(), 1);
}

#[test]
fn a_disk_that_fails_may_get_well_and_a_path_that_cannot_be_may_not() {
    let error = |kind| HistoryError::Io { path: PathBuf::new(), kind, reason: String::new() };
    for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge, ErrorKind::Other]
    {
        assert!(matches!(pardon::<()>(Err(error(kind))), Ok((None, Some(_)))), "{kind}");
    }
    for kind in [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::IsADirectory,
        ErrorKind::ReadOnlyFilesystem,
    ] {
        assert!(matches!(pardon::<()>(Err(error(kind))), Err(HistoryError::Io { .. })), "{kind}");
    }
    assert!(pardon::<()>(Err(HistoryError::InUse { path: PathBuf::new() })).is_err());
}

#[test]
fn gathering_ends_at_its_time_however_closely_messages_follow() {
    let (queue, messages) = sync_channel(100);
    for number in 0..100 {
        let key = PathKey::of(rules().scope, client(number));
        queue.send(Message::Changed(vec![(key, None)])).unwrap();
    }
    // A clock on which 50 ms pass at each look.
    let (begun, mut looks) = (clock::instant(), 0);
    let mut now = || {
        looks += 1;
        begun + Span::from_millis(50) * looks
    };
    let (changes, waiting) = gather(messages.recv().unwrap(), &messages, &mut now);
    assert_eq!((changes.len(), waiting.is_none()), (4, true), "of 200 ms");
    // Who waits gets what came before, at once.
    let (done, _) = sync_channel(1);
    queue.send(Message::Flush(done)).unwrap();
    let (changes, waiting) = gather(messages.recv().unwrap(), &messages, || begun);
    assert_eq!((changes.len(), waiting.is_some()), (96, true));
}

#[test]
fn a_flush_finds_room_behind_a_full_queue_or_gives_up_in_time() {
    let flush = || Message::Flush(sync_channel(1).0);
    let (queue, messages) = sync_channel(1);
    queue.try_send(flush()).unwrap();
    assert!(!send_until(&queue, flush(), clock::instant() + Span::from_millis(1)), "nobody takes anything");
    let reader = std::thread::spawn(move || messages.recv().map(|_| messages).unwrap());
    assert!(send_until(&queue, flush(), clock::instant() + Span::from_secs(20)));
    drop(reader.join().unwrap());
    assert!(!send_until(&queue, flush(), clock::instant() + Span::from_secs(20)), "the writer is gone");
}

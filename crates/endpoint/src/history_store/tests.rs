//! Files as crashes, other versions and enemies leave them.

use posthaste_policy::Profile;
use posthaste_units::ByteCount;

use super::*;

fn rules() -> HistoryRules {
    Profile::named("history").unwrap().history_rules().unwrap()
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
    }
}

fn now() -> Duration {
    Duration::from(clock::unix_time())
}

fn window(store: &HistoryStore, number: u8) -> Option<u64> {
    store.recall(now(), client(number)).map(|known| known.window.get())
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
    let paper = Profile::named("history-paper").unwrap().history_rules().unwrap();
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
    assert!(store.flush(), "the writer goes on");
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

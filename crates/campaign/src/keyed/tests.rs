use std::fs::File;

use super::*;

/// A run of which every bit matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Run {
    seed: u64,
    seconds: f64,
    packets: u64,
    hash: String,
}

fn program(byte: u8) -> Identity {
    Identity::of_parts([&[byte][..]])
}

fn open(folder: &Path) -> KeyedJournal<Run> {
    KeyedJournal::open(folder, "test", &program(1), false).unwrap()
}

fn key(seed: u64) -> Key {
    Key::new([&[0; 32][..], &seed.to_be_bytes()])
}

fn result(seed: u64) -> Run {
    Run { seed, seconds: 0.1 + 0.2, packets: u64::MAX, hash: "0123456789abcdef".repeat(10) }
}

/// What a journal has of the first ten seeds.
fn found(folder: &Path) -> Vec<u64> {
    let mut journal = open(folder);
    let keys: Vec<Key> = (0..10).map(key).collect();
    journal.load(keys.iter());
    keys.iter().filter_map(|key| journal.take(key)).map(|result| result.seed).collect()
}

#[test]
fn what_is_kept_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    for seed in [3, 1, 200] {
        journal.append(&key(seed), &result(seed)).unwrap();
    }
    assert_eq!(found(folder.path()), [1, 3]);
    let mut journal = open(folder.path());
    journal.load([key(3)].iter());
    assert_eq!(journal.take(&key(3)), Some(result(3)));
    assert_eq!(journal.take(&key(1)), None, "only what is wanted is read");
}

#[test]
fn a_line_that_was_cut_off_is_as_good_as_none_and_spoils_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    for seed in 0..3 {
        journal.append(&key(seed), &result(seed)).unwrap();
    }
    let path = journal.path().to_owned();
    let whole = std::fs::read(&path).unwrap();
    let line = whole.len() / 3;
    for cut in [0, 1, line - 1, line, line + 20, 2 * line + 1, whole.len() - 2, whole.len() - 1, whole.len()]
    {
        std::fs::write(&path, &whole[..cut]).unwrap();
        // The last line is whole also without its end.
        let kept = (cut + 1) / line;
        open(folder.path()).append(&key(7), &result(7)).unwrap();
        let expected: Vec<u64> = (0..kept as u64).chain([7]).collect();
        assert_eq!(found(folder.path()), expected, "cut at {cut} of {}", whole.len());
    }
}

#[test]
fn damage_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.append(&key(0), &result(0)).unwrap();
    journal.append(&key(1), &result(1)).unwrap();
    let path = journal.path().to_owned();
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    for damage in ["", "{}", "\u{0}\u{0}", "{\"key\":\"", &first[..80], &first.replace("seed", "sead")] {
        std::fs::write(&path, format!("{damage}\n{rest}")).unwrap();
        assert_eq!(found(folder.path()), [1], "{damage}");
    }
    let mut bytes = vec![0xff; 300];
    bytes.push(b'\n');
    bytes.extend_from_slice(rest.as_bytes());
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(found(folder.path()), [1]);
}

#[test]
fn fresh_means_empty() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).append(&key(0), &result(0)).unwrap();
    drop(KeyedJournal::<Run>::open(folder.path(), "test", &program(1), true).unwrap());
    assert_eq!(found(folder.path()), [] as [u64; 0]);
}

#[test]
fn another_program_has_another_journal() {
    let folder = tempfile::tempdir().unwrap();
    let other = KeyedJournal::<Run>::open(folder.path(), "test", &program(2), false).unwrap();
    assert_ne!(other.path(), open(folder.path()).path());
}

#[test]
fn names_are_safe() {
    for (name, expected) in
        [("hs-simple", "hs-simple"), ("../a b/own.toml", "own"), ("a:b\u{e9}", "a_b_"), ("/", ""), ("..", "")]
    {
        assert_eq!(plain(name), expected);
    }
}

#[test]
fn a_journal_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path()).bounded(100);
    let error = journal.append(&key(0), &result(0)).unwrap_err().to_string();
    assert!(error.contains("larger than"), "{error}");
    assert_eq!(found(folder.path()), [] as [u64; 0]);
}

#[test]
fn old_journals_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let name = |number: usize| folder.path().join(format!("{number:02}.jsonl"));
    for number in 0..20 {
        let file = File::create(name(number)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + number as u64))
            .unwrap();
    }
    std::fs::write(folder.path().join("other.txt"), "").unwrap();
    prune(folder.path(), &name(0));
    let left: Vec<usize> = (0..20).filter(|&number| name(number).exists()).collect();
    let expected: Vec<usize> = std::iter::once(0).chain(5..20).collect();
    assert_eq!(left, expected, "the present one and the latest 15");
    assert!(folder.path().join("other.txt").exists());

    // Sparse files stand for large ones.
    File::options().write(true).open(name(19)).unwrap().set_len(MAX_JOURNALS_BYTES + 1).unwrap();
    prune(folder.path(), &name(19));
    assert_eq!((0..20).filter(|&number| name(number).exists()).collect::<Vec<_>>(), [19]);
    prune(&folder.path().join("missing"), Path::new("x"));
}

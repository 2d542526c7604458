use std::path::Path;
use std::time::Duration;

use super::watch::Change;
use super::*;
use crate::config::CertificateFiles;

fn write(directory: &Path, name: &str, names: &[&str]) -> CertificateFiles {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let files = CertificateFiles {
        chain: directory.join(format!("{name}.pem")),
        key: directory.join(format!("{name}.key")),
    };
    std::fs::write(&files.chain, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

fn resolver(certificates: &[(&CertificateFiles, &[&str])]) -> Resolver {
    let mut all = Certificates::default();
    for (files, names) in certificates {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        all.add(Arc::new(Loaded::read(files).unwrap()), &names);
    }
    Resolver::new(all)
}

#[test]
fn the_name_asked_for_chooses_the_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let a = write(directory.path(), "a", &["a.test", "*.a.test"]);
    let b = write(directory.path(), "b", &["b.test", "127.0.0.1"]);
    let resolver = resolver(&[(&a, &["a.test"]), (&b, &["b.test"])]);
    let chosen = |name: Option<&str>| resolver.current().choose(name).unwrap().files.clone();
    assert_eq!(chosen(None), a);
    assert_eq!(chosen(Some("B.test")), b);
    assert_eq!(chosen(Some("x.a.test")), a);
    assert_eq!(chosen(Some("nobody.test")), a);
    // A connection made for one name is good for others that its certificate has.
    assert!(resolver.covers(Some("a.test"), "x.a.test"));
    assert!(!resolver.covers(Some("a.test"), "b.test"));
    assert!(!resolver.covers(None, "b.test"));
    assert!(resolver.covers(Some("b.test"), "127.0.0.1"));
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let a = write(directory.path(), "a", &["a.test"]);
    let b = write(directory.path(), "b", &["a.test"]);
    let mixed = CertificateFiles { chain: a.chain, key: b.key };
    let error = Loaded::read(&mixed).err().unwrap();
    assert!(error.contains("b.key is not that of the first certificate"), "{error}");
}

#[test]
fn changed_files_are_used_once_they_are_whole_and_bad_ones_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let files = write(directory.path(), "live", &["a.test"]);
    let resolver = resolver(&[(&files, &["a.test"])]);
    let mut watched = Watched::default();
    assert_eq!(watched.changes(&resolver), []);
    assert_eq!(watched.changes(&resolver), []);
    let covers = || resolver.covers(Some("a.test"), "b.test");
    // As certbot does: the files that are named are links to others.
    let new = write(directory.path(), "new", &["a.test", "b.test"]);
    std::fs::rename(&new.chain, &files.chain).unwrap();
    assert_eq!(watched.changes(&resolver), []);
    assert_eq!(watched.look(&resolver).len(), 1, "a chain without its key");
    assert_eq!(watched.changes(&resolver), [], "is told of once");
    assert!(!covers());
    std::fs::rename(&new.key, &files.key).unwrap();
    assert_eq!(watched.changes(&resolver), []);
    assert_eq!(watched.changes(&resolver), [Change::Renewed(files.chain.clone())]);
    assert!(covers());
    std::fs::remove_file(&files.chain).unwrap();
    assert_eq!(watched.changes(&resolver), []);
    assert!(matches!(&watched.changes(&resolver)[..], [Change::Kept(_)]));
    assert!(covers(), "the last good one stays");
}

#[cfg(unix)]
#[test]
fn links_may_change_at_any_place() {
    use std::os::unix::fs::symlink;

    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("1"), directory.path().join("2"));
    for (folder, names) in [(&one, &["a.test"][..]), (&two, &["a.test", "b.test"])] {
        std::fs::create_dir(folder).unwrap();
        write(folder, "c", names);
    }
    let data = directory.path().join("data");
    symlink(&one, &data).unwrap();
    let files = CertificateFiles { chain: data.join("c.pem"), key: data.join("c.key") };
    let resolver = resolver(&[(&files, &["a.test"])]);
    let mut watched = Watched::default();
    assert_eq!(watched.changes(&resolver), []);
    std::fs::remove_file(&data).unwrap();
    symlink(&two, &data).unwrap();
    assert_eq!(watched.changes(&resolver), []);
    assert_eq!(watched.changes(&resolver).len(), 1);
    assert!(resolver.covers(None, "b.test"));
}

#[test]
fn an_end_that_is_near_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let files = write(directory.path(), "a", &["a.test"]);
    let state = Loaded::read(&files).unwrap().state();
    let day = Duration::from_secs(86_400);
    assert_eq!(state.names, ["a.test"]);
    assert_eq!(state.warning(state.ends - 15 * day), None);
    assert!(state.warning(state.ends - 13 * day).unwrap().contains("ends in 13 days"));
    assert!(state.warning(state.ends + 3 * day).unwrap().contains("ended 3 days ago"));
}

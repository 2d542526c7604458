use clap::Parser;

use super::*;
use crate::args::{Args, Command};

fn plan(arguments: &[&str]) -> Result<Vec<Destination>, Failure> {
    let all = ["posthaste", "get"].iter().chain(arguments);
    let Command::Get(args) = Args::try_parse_from(all).unwrap().command else { panic!("no get") };
    let uris: Vec<Uri> = args.urls.iter().map(|url| url.parse().unwrap()).collect();
    destinations(&args, &uris)
}

#[test]
fn plans() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().to_str().unwrap();
    let (a, b) = ("https://h/x/a", "https://h/b?c=d");
    assert_eq!(plan(&[a]).unwrap(), [Destination::Stdout]);
    assert_eq!(plan(&[a, "-o", "-"]).unwrap(), [Destination::Stdout]);
    assert_eq!(plan(&[a, "-o", "f"]).unwrap(), [Destination::File("f".into())]);
    assert_eq!(plan(&[a, b, "--json"]).unwrap(), [Destination::Nowhere, Destination::Nowhere]);
    let files = ["a", "b"].map(|name| Destination::File(directory.path().join(name)));
    assert_eq!(plan(&[a, b, "-O", folder]).unwrap(), files);
    for (wrong, hint) in [
        (&[a, b][..], "-O DIR"),
        (&[a, b, "-o", "f"], "-O DIR"),
        (&[a, "-o", "-", "--json"], "-o FILE"),
        (&[a, "-o", folder], "-O "),
        (&[a, a, "-O", folder], "-o FILE"),
        (&["https://h/%2e%2e", "-O", folder], "-o FILE"),
    ] {
        let failure = plan(wrong).unwrap_err().to_string();
        assert!(failure.contains(hint), "{failure}");
    }
}

#[test]
fn names_from_urls() {
    for (path, expected) in [
        ("/a", "a"),
        ("/a/b.txt", "b.txt"),
        ("/", "index.html"),
        ("/a/", "index.html"),
        ("/a%20b", "a b"),
        ("/%C3%A9", "é"),
        ("/.hidden", ".hidden"),
        ("/%252e%252e", "%2e%2e"),
        ("/-o", "-o"),
    ] {
        assert_eq!(file_name(path).as_deref(), Ok(expected), "{path}");
    }
    let long = format!("/{}", "a".repeat(MAX_NAME + 1));
    for path in [
        "/..",
        "/.",
        "/%2e%2e",
        "/a/%2E%2E",
        "/a%2fb",
        "/..%2f..%2fetc%2fpasswd",
        "/a%5cb",
        "/a%00",
        "/a%0ab",
        "/c%3a",
        "/%ff",
        "/%",
        "/%zz",
        &long,
    ] {
        assert!(file_name(path).is_err(), "{path}");
    }
}

proptest::proptest! {
    /// Whatever a URL says, the file is a child of the folder.
    #[test]
    fn no_name_leaves_the_folder(path in "/[a.%25efcEFC0/\\\\:]{0,30}") {
        if let Ok(name) = file_name(&path) {
            let file = Path::new("/folder").join(&name);
            proptest::prop_assert_eq!(file.parent(), Some(Path::new("/folder")));
            proptest::prop_assert_eq!(file.file_name().and_then(|name| name.to_str()), Some(name.as_str()));
        }
    }
}

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_appears_when_it_is_whole_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "old").unwrap();
    let content = Bytes::from(vec![7; BLOCK + 5]);
    let mut output = Output::open(Destination::File(path.clone())).await.unwrap();
    output.write(content.clone()).await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(entries(directory.path()).len(), 2);
    output.finish().await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), content);
    assert_eq!(entries(directory.path()), ["file"]);
}

#[tokio::test]
async fn what_is_given_up_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "old").unwrap();
    let mut output = Output::open(Destination::File(path.clone())).await.unwrap();
    output.write(Bytes::from(vec![7; BLOCK + 5])).await.unwrap();
    drop(output);
    assert_eq!(entries(directory.path()), ["file"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_stays_and_its_target_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (link, target) = (directory.path().join("link"), directory.path().join("target"));
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let mut output = Output::open(Destination::File(link.clone())).await.unwrap();
    output.write(Bytes::from_static(b"new")).await.unwrap();
    output.finish().await.unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert!(link.is_symlink());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_device_is_told_and_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;

    let mut output = Output::open(Destination::File("/dev/full".into())).await.unwrap();
    let error = output.write(Bytes::from(vec![7; BLOCK])).await.unwrap_err().to_string();
    assert!(error.contains("no space left to write /dev/full"), "{error}");
    assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    let mut output = Output::open(Destination::File("/dev/full".into())).await.unwrap();
    output.write(Bytes::from_static(b"little")).await.unwrap();
    assert!(output.finish().await.is_err(), "the last block fails too");
}

#[tokio::test]
async fn a_missing_folder_is_told_before_anything_is_fetched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing/file");
    let error = Output::open(Destination::File(path)).await.unwrap_err().to_string();
    assert!(error.contains("there is no such folder"), "{error}");
}

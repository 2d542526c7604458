use proptest::prelude::*;

use super::*;

fn segments(path: &str) -> Result<Vec<String>, PathError> {
    RequestPath::parse(path).map(|path| path.segments)
}

#[test]
fn paths_are_decoded_once() {
    for (path, expected, is_directory) in [
        ("/", &[][..], true),
        ("/a", &["a"], false),
        ("/a/", &["a"], true),
        ("/a/.", &["a"], true),
        ("/a/%2e", &["a"], false),
        ("//a///b", &["a", "b"], false),
        ("/./a/./b", &["a", "b"], false),
        ("/a%20b", &["a b"], false),
        ("/%C3%A9", &["é"], false),
        ("/%252e%252e/a", &["%2e%2e", "a"], false),
        ("/...", &["..."], false),
        ("/..a", &["..a"], false),
        ("/a..", &["a.."], false),
        ("/a+b", &["a+b"], false),
    ] {
        let parsed = RequestPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error:?}"));
        assert_eq!(parsed.segments, expected, "{path}");
        assert_eq!(parsed.is_directory, is_directory, "{path}");
    }
}

#[test]
fn what_cannot_be_a_name_is_refused() {
    for path in [
        "",
        "a",
        "*",
        "/..",
        "/../a",
        "/a/..",
        "/a/../b",
        "/%2e%2e/a",
        "/%2E./a",
        "/.%2e",
        "/a%2fb",
        "/a%2Fb",
        "/%2fetc/passwd",
        "/..%2f..%2fetc",
        "/a%5cb",
        "/a\\b",
        "/..\\..\\a",
        "/..%5c..%5ca",
        "/a%00",
        "/%00",
        "/%",
        "/%2",
        "/%zz",
        "/%+1",
        "/%ff",
        "/%c0%ae%c0%ae/a",
    ] {
        assert_eq!(segments(path), Err(PathError::Malformed), "{path}");
    }
    assert_eq!(segments(&format!("/{}", "a".repeat(MAX_PATH))), Err(PathError::Malformed));
}

#[test]
fn a_location_never_leaves_the_host() {
    for (path, location) in [
        ("//example.com", "/example.com/"),
        ("///example.com/a", "/example.com/a/"),
        ("/a%20b", "/a%20b/"),
        ("/%22%3E", "/%22%3E/"),
        ("/%0d%0aset-cookie:a", "/%0D%0Aset-cookie%3Aa/"),
    ] {
        assert_eq!(RequestPath::parse(path).unwrap().directory_location(), location);
    }
}

proptest! {
    /// Lexically, nothing that parses climbs: every segment is one plain name.
    #[test]
    fn no_text_climbs(path in "/[a.%25efcEFC0/\\\\:]{0,40}") {
        if let Ok(path) = RequestPath::parse(&path) {
            let below = path.below(Path::new("/base/of/all"));
            prop_assert!(below.starts_with("/base/of/all"));
            prop_assert_eq!(below.components().count(), 4 + path.segments.len());
            let plain = |component| matches!(component, std::path::Component::RootDir | std::path::Component::Normal(_));
            prop_assert!(below.components().all(plain));
        }
    }

    #[test]
    fn any_text_is_survived(path in ".{0,60}") {
        let _ = RequestPath::parse(&path);
    }

    #[test]
    fn every_name_survives_encoding_and_decoding(name in "[^\\x00/\\\\]{1,30}") {
        prop_assume!(name != "." && name != "..");
        let mut encoded = String::from("/");
        percent_encode(&name, &mut encoded);
        prop_assert_eq!(segments(&encoded), Ok(vec![name]));
    }
}

#[cfg(unix)]
mod on_disk {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree {
        _guard: tempfile::TempDir,
        root: PathBuf,
    }

    /// A root with a secret beside it and every kind of way to it.
    fn tree() -> Tree {
        let guard = tempfile::tempdir().unwrap();
        let base = guard.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir_all(root.join("inner")).unwrap();
        std::fs::create_dir(base.join("root-not")).unwrap();
        for (path, content) in [
            ("secret", "secret"),
            ("root-not/secret", "secret"),
            ("root/a.txt", "plain"),
            ("root/inner/b.txt", "plain"),
        ] {
            std::fs::write(base.join(path), content).unwrap();
        }
        symlink(base.join("secret"), root.join("absolute")).unwrap();
        symlink("../secret", root.join("relative")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("/", root.join("all")).unwrap();
        symlink("../root-not", root.join("prefix")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("inner/b.txt", root.join("good")).unwrap();
        symlink("../a.txt", root.join("inner/good")).unwrap();
        Tree { _guard: guard, root }
    }

    fn look(tree: &Tree, path: &str) -> Result<String, PathError> {
        let path = RequestPath::parse(path)?;
        match open(&tree.root, &path.below(&tree.root))? {
            Found::File(file, _) => Ok(std::io::read_to_string(file).unwrap()),
            Found::Directory(directory) => {
                assert!(directory.starts_with(&tree.root));
                Ok("directory".to_owned())
            }
        }
    }

    #[test]
    fn links_that_stay_are_followed_and_links_that_leave_are_not() {
        let tree = tree();
        for path in ["/a.txt", "/inner/b.txt", "/good", "/inner/good"] {
            assert_eq!(look(&tree, path).as_deref(), Ok("plain"), "{path}");
        }
        assert_eq!(look(&tree, "/inner").as_deref(), Ok("directory"));
        for path in [
            "/absolute",
            "/relative",
            "/up",
            "/up/secret",
            "/all",
            "/all/etc/passwd",
            "/prefix",
            "/prefix/secret",
            "/loop",
            "/dangling",
            "/missing",
            "/a.txt/b",
            "/inner/b.txt/",
        ] {
            let found = look(&tree, path);
            // A trailing slash is judged by the caller, who knows that a directory was meant.
            assert!(matches!(found, Err(PathError::NotFound)) || path.ends_with('/'), "{path}: {found:?}");
        }
    }

    #[test]
    fn fifos_sockets_and_devices_do_not_exist_and_do_not_block() {
        let tree = tree();
        let fifo = tree.root.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(tree.root.join("socket")).unwrap();
        symlink("/dev/zero", tree.root.join("device")).unwrap();
        for path in ["/fifo", "/socket", "/device"] {
            assert_eq!(look(&tree, path), Err(PathError::NotFound), "{path}");
        }
    }

    /// Even if a FIFO takes a file's place after it was looked at, opening it does not wait for a writer.
    #[test]
    fn opening_never_waits() {
        let tree = tree();
        let fifo = tree.root.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let file = open_options().open(&fifo).unwrap();
        assert!(!file.metadata().unwrap().is_file());
        assert!(
            open_options().open(tree.root.join("good")).is_err(),
            "a link in the file's place is not followed"
        );
    }

    #[test]
    fn an_open_file_outside_is_noticed() {
        let tree = tree();
        let outside = File::open(tree.root.join("relative")).unwrap();
        let inside = File::open(tree.root.join("a.txt")).unwrap();
        assert!(still_below(&tree.root, &inside));
        assert!(!still_below(&tree.root, &outside) || cfg!(not(target_os = "linux")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Whatever the path is made of, the secret is never read.
        #[test]
        fn no_path_escapes(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just(".."), Just("%2e%2e"), Just("."), Just(""), Just("%2f"), Just("%5c"), Just("\\"),
                    Just("%00"), Just("secret"), Just("up"), Just("all"), Just("prefix"), Just("root"),
                    Just("absolute"), Just("relative"), Just("inner"), Just("%252e%252e"), Just("good"),
                ],
                0..8,
            ),
        ) {
            let tree = tree();
            if let Ok(content) = look(&tree, &format!("/{}", pieces.join("/"))) {
                prop_assert_ne!(content, "secret");
            }
        }
    }
}

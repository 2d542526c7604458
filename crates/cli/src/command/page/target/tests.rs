use clap::Parser;

use super::*;
use crate::args::{Args, Command};

fn parsed(arguments: &[&str]) -> Page {
    let words = ["posthaste", "page"].iter().chain(arguments);
    match Args::try_parse_from(words).expect("arguments").command {
        Command::Page(page) => page,
        other => panic!("{other:?}"),
    }
}

fn names(arguments: &[&str]) -> Result<Vec<String>, String> {
    let all = contestants(&parsed(arguments)).map_err(|failure| failure.to_string())?;
    Ok(all.into_iter().map(|contestant| contestant.name).collect())
}

#[test]
fn profiles_come_first_then_rivals_and_only_chooses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rivals.toml");
    std::fs::write(&file, "[[rival]]\nname = \"nginx\"\nprotocol = \"h2\"\ncommand = \"nginx\"\n").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(names(&[]).unwrap(), ["posthaste mobile", "posthaste cubic"]);
    assert_eq!(names(&["--profiles", "cubic", "--rivals", file]).unwrap(), ["posthaste cubic", "nginx"]);
    assert_eq!(names(&["--rivals", file, "--only", "nginx"]).unwrap(), ["nginx"]);
    assert!(names(&["--only", "x"]).unwrap_err().contains("there are: posthaste mobile"));
    assert!(names(&["--profiles", "cubic,cubic"]).unwrap_err().contains("twice"));
    assert!(names(&["--profiles", "nonesuch"]).is_err());
}

#[test]
fn a_word_stands_for_all_profiles_that_a_server_alone_can_use() {
    let all = names(&["--profiles", "standard,all-server"]).unwrap();
    assert_eq!(all[..2], ["posthaste standard", "posthaste cubic"]);
    for name in ["history", "bbr", "quicming@min_rate=1mbit", "cubic-freeze"] {
        assert!(all.contains(&format!("posthaste {name}")), "{name} is not in {all:?}");
    }
    for name in ["fast-autotune", "modquic-cubic", "mquic-cubic", "cubic-few-acks"] {
        assert!(!all.contains(&format!("posthaste {name}")), "{name} needs its client");
    }
    let incomplete = names(&["--profiles", "quicming"]).unwrap_err();
    assert!(incomplete.contains("quicming@min_rate=1mbit"), "{incomplete}");
}

#[test]
fn urls_take_the_place_of_our_own_servers() {
    assert_eq!(names(&["https://a.test/"]).unwrap(), ["https://a.test/"]);
    let both = names(&["https://a.test/", "--protocols", "h3,h1"]).unwrap();
    assert_eq!(both, ["https://a.test/ (h3)", "https://a.test/ (http/1.1)"]);
    assert!(names(&["http://a.test/"]).unwrap_err().contains("must begin with https://"));
    let contestant = contestants(&parsed(&["https://a.test/"])).unwrap().remove(0);
    assert_eq!(contestant.host_and_port(), ("a.test".to_owned(), 443));
}

#[test]
fn mistakes_in_a_file_of_rivals_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rivals.toml");
    std::fs::write(&file, "[[rival]]\nname = \"a\"\nprotocol = \"h4\"\ncommand = \"\"\n").unwrap();
    let error = names(&["--rivals", file.to_str().unwrap()]).unwrap_err();
    assert!(error.contains("line 3") && error.contains("h3"), "{error}");
    assert!(names(&["--rivals", "/nowhere/x.toml"]).unwrap_err().contains("cannot read the rivals"));
}

#[test]
fn servers_find_what_they_need_in_their_environment() {
    let around = Surroundings {
        site: Path::new("/tmp/a b"),
        certificate: Path::new("/c.pem"),
        key: Path::new("/k.pem"),
        ports: &[1, 2],
        scratch: Path::new("/s"),
        qlog: None,
        posthaste: Path::new("/bin/posthaste"),
    };
    let rival = Contestant {
        name: "x".to_owned(),
        protocol: Protocol::H2,
        origin: Origin::Command(
            "echo \"$POSTHASTE_SITE|$POSTHASTE_PORTS|$POSTHASTE_CERT|$POSTHASTE_KEY|$POSTHASTE_SCRATCH\""
                .to_owned(),
        ),
    };
    let shell =
        std::process::Command::new("sh").arg("-c").arg(rival.command(&around).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(shell.stdout).unwrap(), "/tmp/a b|1 2|/c.pem|/k.pem|/s\n");
    let ours = Contestant { origin: Origin::Profile("cubic".to_owned()), ..rival };
    assert!(ours.command(&around).unwrap().contains("serve \"$POSTHASTE_SITE\" --listen 0.0.0.0:$port"));
}

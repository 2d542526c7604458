//! `posthaste manual`: pages that man shows without complaint, and completions that shells take.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Folders, posthaste, run};

/// True if a program is there; says so if not.
fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success());
    if !is_there {
        eprintln!("skipped: no {program}");
    }
    is_there
}

/// The commands that help lists.
fn commands(words: &[&str]) -> Vec<String> {
    let (code, stdout, _) = run(posthaste().args(words).arg("--help"));
    assert_eq!(code, 0);
    let help = String::from_utf8(stdout).unwrap();
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| line.starts_with("  "));
    let names =
        names.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn page(share: &Path, name: &str) -> String {
    std::fs::read_to_string(share.join(format!("man/man1/{name}.1")))
        .unwrap_or_else(|_| panic!("no {name}.1"))
}

#[test]
fn each_command_that_help_lists_has_a_page() {
    let folders = Folders::new();
    let share = folders.path("share");
    let (code, _, stderr) = run(posthaste().arg("manual").arg(&share));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let outer = commands(&[]);
    assert!(outer.iter().any(|name| name == "edge"), "{outer:?}");
    let mut names = vec!["posthaste".to_owned()];
    for name in &outer {
        names.push(format!("posthaste-{name}"));
        names.extend(commands(&[name]).iter().map(|inner| format!("posthaste-{name}-{inner}")));
    }
    assert!(names.iter().any(|name| name == "posthaste-edge-doctor"), "{names:?}");
    for name in &names {
        let page = page(&share, name);
        assert!(page.contains(".SH SYNOPSIS\n") && page.contains(".SH DESCRIPTION\n"), "{name}: {page}");
    }
    let edge = page(&share, "posthaste-edge");
    assert!(edge.contains("\\-\\-beside") && edge.contains(".SH EXAMPLES\n.nf\n"), "{edge}");
    assert_eq!(std::fs::read_dir(share.join("man/man1")).unwrap().count(), names.len(), "{names:?}");
    if has("man") {
        for name in &names {
            let file = share.join(format!("man/man1/{name}.1"));
            let mut man = Command::new("man");
            man.args(["--warnings", "--local-file"])
                .arg(file)
                .env("MANPAGER", "cat")
                .env("LC_ALL", "C.UTF-8");
            let (code, stdout, stderr) = run(&mut man);
            assert_eq!((code, stderr.as_str()), (0, ""), "{name}");
            assert!(!stdout.is_empty());
        }
    }
}

#[test]
fn shells_complete_commands_and_options() {
    let folders = Folders::new();
    let share = folders.path("share");
    assert_eq!(run(posthaste().arg("manual").arg(&share)).0, 0);
    for file in ["zsh/vendor-completions/_posthaste", "fish/vendor_completions.d/posthaste.fish"] {
        assert!(std::fs::read_to_string(share.join(file)).unwrap().contains("posthaste"), "{file}");
    }
    if has("bash") {
        let script = share.join("bash-completion/completions/posthaste");
        let ask = "source \"$0\"; COMP_WORDS=(posthaste \"$@\"); COMP_CWORD=$#; \
                   _posthaste posthaste \"${!#}\" \"${COMP_WORDS[$#-1]}\"; echo \"${COMPREPLY[@]}\"";
        for (words, expected) in
            [(&["ed"][..], "edge"), (&["edge", "--bes"], "--beside"), (&["edge", "doc"], "doctor")]
        {
            let (code, stdout, stderr) =
                run(Command::new("bash").args(["--norc", "-c", ask]).arg(&script).args(words));
            assert_eq!(code, 0, "{stderr}");
            assert_eq!(String::from_utf8(stdout).unwrap().trim(), expected, "{words:?}: {stderr}");
        }
    }
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let folders = Folders::new();
    std::fs::write(folders.path("file"), "").unwrap();
    let (code, _, stderr) = run(posthaste().arg("manual").arg(folders.path("file")));
    assert!(code == 1 && stderr.contains("cannot write below"), "{code} {stderr}");
}

use clap::Parser;

use super::cells::Contender;
use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn parsed(words: &[&str]) -> Arguments {
    Line::try_parse_from(["kernel-fairness"].iter().chain(words)).expect("arguments").arguments
}

fn contenders(cells: &[Cell]) -> Vec<String> {
    let mut names: Vec<String> = cells.iter().map(|cell| cell.contender.to_string()).collect();
    names.dedup();
    names
}

#[test]
fn every_profile_meets_one_flow_of_each_kind_at_one_bottleneck() {
    let cells = cells(&parsed(&["--profiles", "all", "--compact"]));
    assert_eq!(cells.len(), (posthaste_schemes::names().len() + 1) * 2, "and the baseline");
    assert!(cells.iter().all(|cell| cell.to_string().contains("1 x ")));
    assert!(cells.iter().all(|cell| cell.to_string().ends_with("30 Mbit/s, 1 BDP")));
    for name in posthaste_schemes::names() {
        let of_name = cells.iter().filter(|cell| match &cell.contender {
            Contender::Profile(profile) => profile.split('@').next() == Some(name),
            Contender::Kernel(_) => false,
        });
        let rivals: Vec<Rival> = of_name.map(|cell| cell.rival).collect();
        assert_eq!(rivals, [Rival::Cubic, Rival::Bbr], "{name}");
    }
    assert!(contenders(&cells).contains(&"quicming@min_rate=1mbit".to_owned()), "with a promise");
}

#[test]
fn the_grid_has_the_profiles_that_were_named() {
    let cells = cells(&parsed(&[
        "--profiles",
        "quicming@min_rate=5mbit,all-server",
        "--flows",
        "1",
        "--rates",
        "10",
    ]));
    let names = contenders(&cells);
    assert_eq!(names[..3], ["kernel:cubic", "quicming@min_rate=5mbit", "cubic"]);
    assert!(names.contains(&"history".to_owned()) && !names.contains(&"fast-autotune".to_owned()));
    assert!(
        cells.iter().any(|cell| cell.to_string().ends_with("10 Mbit/s, 4 BDP")),
        "the grid's own buffers"
    );
}

#[test]
fn a_page_says_what_wrote_it() {
    let command = |words: &str| command(&parsed(&words.split_whitespace().collect::<Vec<_>>())).unwrap();
    for words in [
        "--markdown docs/results/kernel-fairness.md",
        "--profiles all --compact --markdown a.md",
        "--rivals bbr --flows 1,8 --rates 10,0.5 --buffers 2 --rtt 20 --warm-up 2.5 --seconds 60 --repeats 5",
        "",
    ] {
        assert_eq!(command(words), format!("cargo campaigns kernel-fairness {words}").trim_end());
    }
    assert_eq!(
        command("--rtt 40 --seconds 20 --repeats 1 --rates 10,30,100 --journal j --fresh"),
        "cargo campaigns kernel-fairness",
        "what is meant anyway, and where results are kept"
    );
}

#[test]
fn profiles_that_are_none_or_lack_their_rate_are_refused_before_anything_runs() {
    let refusal = |names: &str| check_profiles(&parsed(&["--profiles", names])).unwrap_err().to_string();
    assert!(refusal("cubic,cubik").contains("there is no profile `cubik`"));
    assert!(refusal("quicming").contains("quicming@min_rate=1mbit"));
    assert!(refusal("all,./nowhere.toml").contains("the profile ./nowhere.toml"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let file = file.to_str().unwrap();
    std::fs::write(file, "[congestion.cubic]\n").unwrap();
    assert!(check_profiles(&parsed(&["--profiles", file])).is_ok());
    std::fs::write(file, "[congestions.cubic]\n").unwrap();
    assert!(refusal(file).contains("congestions"), "{}", refusal(file));
    assert!(Line::try_parse_from(["x", "--compact", "--rates", "10"]).is_err(), "they contradict each other");
}

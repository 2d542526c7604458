//! The races as a table, and as a page that says how to read it.

use std::fmt::Write as _;
use std::process::Command;

use posthaste_campaign::raced::{Race, Racer};
use posthaste_report::markdown::head;
use posthaste_schemes::Definition;

use crate::Result;

/// Seconds at the 99th percentile from which on times say more of the machine than of a profile, as `posthaste race` has it.
const DOUBTFUL_LATENESS: f64 = 1e-3;

/// A row a profile, three columns a path.
pub(super) fn table(races: &[Race]) -> String {
    let mut columns = vec!["profile".to_owned(), "required support".to_owned()];
    for Race { path, .. } in races {
        let figures = ["median, s", "least to greatest", "x limit"];
        columns.extend(figures.map(|figure| format!("{}: {figure}", path.name)));
    }
    let mut text = head(&columns);
    let rows = races.first().map_or(0, |race| race.profiles.len());
    for index in 0..rows {
        let row: Vec<&Racer> = races.iter().filter_map(|race| race.profiles.get(index)).collect();
        let Some(first) = row.first() else { continue };
        let _ = write!(text, "| {} | {} |", first.profile, who(&first.profile));
        for racer in row {
            let _ = write!(text, " {} |", cells(racer));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// Median, range, and ratio to the limit; or how many have failed.
fn cells(racer: &Racer) -> String {
    let times = || racer.runs.iter().filter_map(|run| run.seconds);
    let (Some(median), Some(ratio), 0) = (racer.median, racer.ratio_to_limit, racer.failed) else {
        return format!("{} of {} failed | - | -", racer.failed, racer.runs.len());
    };
    let (least, greatest) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    format!("{median:.2} | {least:.2} to {greatest:.2} | {ratio:.1}")
}

/// Which end has to have a profile for a download to be another.
fn who(name: &str) -> &'static str {
    match Definition::named(name) {
        Ok(profile) if profile.is_for_server_alone() => "server",
        Ok(profile) if profile.is_for_receiver_alone() => "client",
        Ok(_) => "both",
        Err(_) => "?",
    }
}

/// The whole page.
pub(super) fn page(races: &[Race], command: &str, object: &str) -> Result<String> {
    let date = String::from_utf8(Command::new("date").args(["-u", "+%F"]).output()?.stdout)?;
    let mut text = format!(
        "# Every profile over real sockets\n\
         <!-- Written by `cargo campaigns profiles --markdown docs/results/profiles.md`; do not edit. -->\n\
         Every built-in profile downloads {object} through `posthaste race`: real HTTP/3 on loopback, over the relay that stands \
         for the path, both ends with the\nprofile, every byte compared, a new connection each time. {date}\n\
         ```sh\n{command} --markdown docs/results/profiles.md\n\
         posthaste race --profiles NAME --path PATH --runs 20         # one of them, with more runs\n```\n\
         `posthaste profiles` says what each is for. In each round all meet paths with the same seed.\n\n\
         **Required support**: *server*: the sender alone decides, so browsers benefit without changes (`all-server` on the command \
         line);\n*client*: the receiver alone does; *both*: a part of it needs each, or a client that brings a token or can be asked for \
         fewer acks.\n\n\
         - Group profiles (`mquic-*`) have one connection here, which is a group of one.\n\
         - `history` and `history-paper`: the server remembers earlier rounds (of this path), the first round has none.\n\
         - `quicming` and `quicming-paper` are promised 1 Mbit/s.\n"
    );
    for race in races {
        let Race { path, runs, parallel, limit, lateness, .. } = race;
        let doubt = if lateness.p99 > DOUBTFUL_LATENESS {
            " **The machine was too busy: times are too long.**"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "- `{}`: {}. {runs} runs each, {parallel} at a time; limit {:.3} s; packets left the path {:.2} ms late at the 99th \
             percentile.{doubt}",
            path.name,
            path.description,
            limit.seconds,
            lateness.p99 * 1e3
        );
    }
    let _ = writeln!(
        text,
        "\nWith so few runs differences below the range of a row are chance: what a profile is worth is for the lab \
         ([lab.md](lab.md), [congestion.md](congestion.md), [schemes](schemes)).\n\n{}",
        table(races)
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use posthaste_campaign::raced::Lateness;

    use super::*;

    fn race(path: &str, racers: &str) -> Race {
        let text = format!(
            r#"{{"path": {{"name": "{path}", "description": "fast"}}, "runs": 3, "parallel": 2, "limit": {{"seconds": 0.1}},
                "lateness": {{"p99": 0.0001}}, "profiles": [{racers}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    const WHOLE: &str = r#"{"profile": "history", "failed": 0, "median": 0.5, "ratio_to_limit": 5.0, "runs": [
        {"seconds": 0.4, "failure": null}, {"seconds": 0.6, "failure": null}, {"seconds": 0.5, "failure": null}]}"#;
    const BROKEN: &str = r#"{"profile": "static", "failed": 1, "median": 0.5, "ratio_to_limit": 5.0, "runs": [
        {"seconds": 0.4, "failure": null}, {"seconds": null, "failure": "a byte is wrong"}, {"seconds": 0.5, "failure": null}]}"#;

    #[test]
    fn a_row_has_all_paths_and_a_failure_is_no_figure() {
        let both = format!("{WHOLE}, {BROKEN}");
        let races = [race("average", &both), race("bad", &both)];
        let table = table(&races);
        let whole = "| history | server | 0.50 | 0.40 to 0.60 | 5.0 | 0.50 | 0.40 to 0.60 | 5.0 |";
        assert!(table.contains(whole), "{table}");
        assert!(table.contains("| static | client | 1 of 3 failed | - | - | 1 of 3 failed"), "{table}");
        assert_eq!(super::super::failures(&races).count(), 2);
        let page = page(&races, "cargo campaigns profiles", "1MB").unwrap();
        assert!(page.contains("- `bad`: fast. 3 runs each, 2 at a time; limit 0.100 s"), "{page}");
        assert!(!page.contains("too busy"), "{page}");
        let late =
            Race { lateness: Lateness { p99: 0.002, ..Lateness::default() }, ..race("average", WHOLE) };
        assert!(super::page(&[late], "", "1MB").unwrap().contains("too busy"));
    }

    #[test]
    fn who_has_to_have_it_is_said_of_every_profile() {
        for (name, expected) in [
            ("quicming@min_rate=1mbit", "server"),
            ("fast-autotune", "client"),
            ("mquic-cubic", "both"),
            ("cubic", "server"),
        ] {
            assert_eq!(who(name), expected, "{name}");
        }
    }
}

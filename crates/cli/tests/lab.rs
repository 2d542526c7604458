//! `posthaste lab` as a process.
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{PATIENCE, posthaste, read, run, send_signal, wait};

/// A folder for a test, with a place of its own for journals.
struct Lab {
    guard: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        Self { guard: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.guard.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = posthaste();
        command.arg("lab").args(arguments).env("XDG_STATE_HOME", self.path("state")).current_dir(&self.guard);
        command
    }

    /// Exit code, stdout, stderr.
    fn lab(&self, arguments: &[&str]) -> (i32, String, String) {
        let (code, stdout, stderr) = run(&mut self.command(arguments));
        (code, String::from_utf8(stdout).unwrap(), stderr)
    }

    /// The same, which must go well in silence.
    fn fine(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.lab(arguments);
        assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}: {stdout}");
        stdout
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The experiments of a report for programs.
    fn json(&self, name: &str) -> serde_json::Value {
        let report: serde_json::Value = serde_json::from_slice(&read(&self.path(name))).unwrap();
        report["experiments"].clone()
    }

    /// The only journal.
    fn journal(&self) -> PathBuf {
        let folder = self.path("state").join("posthaste/lab");
        let mut entries = std::fs::read_dir(folder).unwrap();
        let journal = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none(), "one journal");
        journal
    }

    /// Files in the folder, hidden ones too.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.guard.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// An experiment of one cell: a fetch over `path`.
fn experiment(path: &str, object: &str, deadline: &str) -> String {
    format!(
        "title = \"Own\"\nquestion = \"?\"\nsource = \"here\"\nmetrics = [\"completion\"]\n[run]\n\
         network = {{ kind = \"simple\", path = {path} }}\n\
         flows = [{{ stack = \"cubic\", workload = {{ kind = \"bulk\", object = \"{object}\" }} }}]\n\
         deadline = \"{deadline}\"\n"
    )
}

#[test]
fn experiments_are_listed_and_described() {
    let lab = Lab::new();
    let list = lab.fine(&["list"]);
    for name in ["smoke", "hs-simple", "hs-dumbbell"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
    assert!(!list.contains('\u{1b}'), "no colours in a pipe");
    let list: serde_json::Value = serde_json::from_str(&lab.fine(&["list", "--json"])).unwrap();
    let simple = list.as_array().unwrap().iter().find(|listed| listed["name"] == "hs-simple").unwrap();
    assert_eq!(simple["runs"].as_u64(), Some(simple["cells"].as_u64().unwrap() * 50));

    let text = lab.fine(&["describe", "hs-simple"]);
    for expected in [
        "history start",
        "72 cells x 50 seeds = 3600 runs",
        "good, average, bad",
        "history_start.csv row 2: ",
        "baseline_value 0.52",
        "compared with completion.mean in 1 cell",
        "posthaste lab run hs-simple --cells path=good,object=1MB,stack=standard --series 10ms",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert!(!lab.path("state").exists(), "looking leaves nothing");
}

#[test]
fn an_experiment_runs_and_reports() {
    let lab = Lab::new();
    let table = lab.fine(&["run", "smoke", "--json", "all.json", "--html", "page.html"]);
    assert!(table.contains("smoke"), "{table}");
    assert_eq!(lab.files(), ["all.json", "page.html", "state"]);
    assert!(read(&lab.path("page.html")).starts_with(b"<!doctype html>"));
    let all = lab.json("all.json");
    let smoke = &all[0];
    assert_eq!(smoke["command"], "posthaste lab run smoke --seeds 0..3");
    let cells = smoke["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let runs = cell["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 3);
        let limit = cell["limit"]["seconds"].as_f64().unwrap();
        for run in runs {
            assert_eq!(run["outcome"], "completed");
            assert!(run["flows"][0]["completion"].as_f64().unwrap() >= limit, "faster than possible");
        }
    }
}

#[test]
fn each_cells_command_repeats_it() {
    let lab = Lab::new();
    lab.fine(&["run", "smoke", "--seeds", "1..3", "--json", "all.json"]);
    let all = lab.json("all.json");
    for cell in all[0]["cells"].as_array().unwrap() {
        let command = cell["command"].as_str().unwrap().strip_prefix("posthaste ").unwrap();
        let shell = format!("{} {command} --fresh --quiet --json one.json", env!("CARGO_BIN_EXE_posthaste"));
        let mut command = Command::new("sh");
        command.args(["-c", &shell]).env("XDG_STATE_HOME", lab.path("state")).current_dir(&lab.guard);
        assert_eq!(run(&mut command).0, 0);
        let one = &lab.json("one.json")[0]["cells"][0];
        for part in ["coordinates", "command", "limit", "runs"] {
            assert_eq!(one[part], cell[part]);
        }
    }
}

/// The same bytes whatever the number of jobs, and however often a sweep was cut off.
#[test]
fn jobs_and_interruptions_change_nothing() {
    let lab = Lab::new();
    let json = |name: &str| read(&lab.path(name));
    let run = |jobs: &str, name: &str, more: &[&str]| {
        let arguments = ["run", "smoke", "--series", "20ms", "--quiet", "--jobs", jobs, "--json", name];
        assert_eq!(lab.fine(&[&arguments, more].concat()), "");
        json(name)
    };
    let one = run("1", "one.json", &[]);
    assert!(run("2", "two.json", &["--fresh"]) == one);

    // As if it had been killed in the middle of a line.
    let journal = read(&lab.journal());
    for part in [3, 2] {
        std::fs::write(lab.journal(), &journal[..journal.len() / part]).unwrap();
        assert!(run("2", "again.json", &[]) == one, "a {part}th of the journal");
    }
}

/// What is kept is used: what was changed in the journal shows.
#[test]
fn results_that_are_kept_are_not_made_again() {
    let lab = Lab::new();
    let packets = |more: &[&str]| {
        // One job, so that the first cell's first run is the journal's first line: other cells may have as many packets.
        lab.fine(&[&["run", "smoke", "--quiet", "--jobs", "1", "--json", "all.json"], more].concat());
        let all = lab.json("all.json");
        let cells = all[0]["cells"].as_array().unwrap().clone();
        cells[0]["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["packets"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let made = packets(&[]);
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    let (head, tail) = journal.split_once(&format!("\"packets\":{},", made[0])).unwrap();
    std::fs::write(lab.journal(), format!("{head}\"packets\":123456,{tail}")).unwrap();
    assert_ne!(packets(&[]), made);
    assert_eq!(packets(&["--fresh"]), made);
    assert_eq!(packets(&[]), made, "fresh results are kept too");
}

/// What a sweep says that Ctrl-C meets after its first runs.
fn interrupted(lab: &Lab, arguments: &[&str]) -> String {
    let mut child = lab.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let folder = lab.path("state").join("posthaste/lab");
    let lines = || {
        let journal = std::fs::read_dir(&folder).ok()?.next()?.ok()?.path();
        Some(std::fs::read_to_string(journal).ok()?.matches('\n').count())
    };
    while lines().is_none_or(|lines| lines < 2) {
        assert!(began.elapsed() < PATIENCE, "two runs must come to an end");
        std::thread::sleep(Duration::from_millis(10));
    }
    send_signal(child.id(), "INT");
    assert_eq!(wait(&mut child).code(), Some(130));
    std::io::read_to_string(child.stderr.take().unwrap()).unwrap()
}

#[test]
fn an_interrupted_sweep_can_go_on() {
    let lab = Lab::new();
    lab.write("long.toml", &experiment("\"bad\"", "3MB", "900s"));
    let arguments = ["run", "./long.toml", "--seeds", "5000", "--jobs", "1", "--fresh", "--json", "all.json"];
    let stderr = interrupted(&lab, &arguments);
    assert!(stderr.contains("interrupted after ") && stderr.contains("which are kept"), "{stderr}");
    let resume = "posthaste lab run ./long.toml --seeds 5000 --jobs 1 --json all.json\n";
    assert!(stderr.ends_with(resume), "without --fresh: {stderr}");
    assert_eq!(lab.files(), ["long.toml", "state"], "no half a report");

    let kept = std::fs::read_to_string(lab.journal()).unwrap();
    lab.fine(&["run", "./long.toml", "--seeds", "2", "--quiet"]);
    assert_eq!(std::fs::read_to_string(lab.journal()).unwrap(), kept, "nothing had to be made");
}

#[test]
fn a_dead_path_ends_by_its_deadline_and_is_reported() {
    let lab = Lab::new();
    let dead = "{ rtt = \"50ms\", rate = \"10mbit\", loss = 1.0 }";
    lab.write("dead.toml", &experiment(dead, "1MB", "20s"));
    let (code, _, stderr) = lab.lab(&["run", "dead.toml", "--seeds", "2", "--json", "all.json"]);
    assert_eq!(
        (code, stderr.as_str()),
        (0, "posthaste: dead.toml: 2 of 2 runs did not finish before their deadline\n")
    );
    let run = &lab.json("all.json")[0]["cells"][0]["runs"][0];
    assert_eq!((&run["outcome"], run["virtual_seconds"].as_f64()), (&"deadline".into(), Some(20.0)));
    assert_eq!(run["flows"][0]["completion"], serde_json::Value::Null);
}

#[test]
fn faults_of_an_experiment_have_a_line_and_run_nothing() {
    let lab = Lab::new();
    let good = experiment("\"good\"", "20kB", "30s");
    for (from, to, expected) in [
        ("source", "sauce", "experiment own.toml, line 3: unknown field `sauce`, expected one of `title`,"),
        ("\"good\"", "\"nice\"", "experiment own.toml, line 6: there is no path `nice`; there are good,"),
        ("20kB", "20 stones", "line 7: `20 stones` is not valid here: write a number and a unit of B, kB,"),
        ("cubic", "qubic", "line 7: there is no stack `qubic`; there are noq:newreno,"),
        ("\"30s\"", "\"0s\"", "line 8: `deadline` is out of range: from 1ms to 86400s"),
        ("\"completion\"", "\"beauty\"", "line 4: there is no metric `beauty`; there are "),
    ] {
        assert_eq!(good.matches(from).count(), 1, "{from}");
        lab.write("own.toml", &good.replace(from, to));
        for command in ["run", "describe"] {
            let (code, stdout, stderr) = lab.lab(&[command, "own.toml"]);
            assert_eq!((code, stdout.as_str()), (2, ""));
            assert!(stderr.contains(expected) && !stderr.contains("panicked"), "{stderr}");
        }
    }
    assert!(!lab.path("state").exists());
}

#[test]
fn wrong_use_is_exit_code_2_and_says_what_is_right() {
    let lab = Lab::new();
    for (arguments, expected) in [
        (&[][..], "Usage"),
        (&["list", "smoke"], "unexpected argument"),
        (&["describe"], "NAME"),
        (&["describe", "smok"], "there is no experiment `smok`; there are smoke, hs-simple"),
        (&["run"], "NAME"),
        (&["run", "smoke", "smok"], "posthaste lab list"),
        (&["run", "missing.toml"], "cannot read the experiment missing.toml: No such file"),
        (&["run", "smoke", "--seeds", "0"], "from 1 to 10000 seeds"),
        (&["run", "smoke", "--seeds", "5..2"], "from 1 to 10000 seeds"),
        (&["run", "smoke", "--seeds", "some"], "expected a count or FIRST..END"),
        (&["run", "smoke", "--jobs", "0"], "from 1 to 1024"),
        (&["run", "smoke", "--series", "10"], "a number and a unit of ns, us, ms, s, min"),
        (&["run", "smoke", "--cells", "stack"], "write axis=value,axis=value"),
        (&["run", "smoke", "--cells", "stak=cubic"], "there is no axis `stak`; there are object, stack"),
        (&["run", "smoke", "--cells", "stack=qubic"], "the axis `stack` has no value `qubic`; there are "),
        (&["run", "smoke", "--json", "a", "--html", "a"], "--json and --html name the same file"),
        (&["run", "smoke", "--json", "missing/all.json"], "there is no such folder"),
        (&["run", "smoke", "--html", "."], "is a directory"),
        (&["run", "smoke", "--qlog", "/dev/null/traces"], "--qlog DIR"),
    ] {
        let (code, stdout, stderr) = lab.lab(arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
    assert_eq!(lab.files(), [] as [&str; 0]);
}

#[test]
fn help_teaches_with_examples() {
    let lab = Lab::new();
    for (arguments, expected) in [
        (&["--help"][..], "posthaste lab run smoke"),
        (&["run", "--help"], "--cells path=good,stack=cubic"),
        (&["describe", "--help"], "posthaste lab describe hs-simple"),
    ] {
        let help = lab.fine(arguments);
        assert!(help.contains("Examples:") && help.contains(expected), "{help}");
    }
}

/// The results are not lost: they are kept, and the next command writes them.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let lab = Lab::new();
    let (code, stdout, stderr) = lab.lab(&["run", "smoke", "--json", "/dev/full", "--html", "page.html"]);
    assert_eq!(code, 1);
    assert!(stdout.contains("smoke"), "the table comes first");
    assert!(stderr.contains("no space left to write /dev/full"), "{stderr}");
    assert!(stderr.contains("the same command writes them again without running"), "{stderr}");
    assert!(lab.path("page.html").exists());
    let kept = read(&lab.journal());
    lab.fine(&["run", "smoke", "--json", "all.json"]);
    assert!(read(&lab.journal()) == kept);
}

#[test]
fn without_a_place_for_results_it_runs_all_the_same() {
    let lab = Lab::new();
    let mut command = lab.command(&["run", "smoke", "--seeds", "1", "--json", "all.json"]);
    let (code, _, stderr) = run(command.env("XDG_STATE_HOME", "/dev/null"));
    assert_eq!(code, 0);
    assert!(stderr.starts_with("posthaste: results are not kept in /dev/null/posthaste/lab: "), "{stderr}");
    assert!(lab.path("all.json").exists());
}

#[test]
fn traces_have_a_folder_for_each_run() {
    let lab = Lab::new();
    let arguments = ["run", "smoke", "--cells", "stack=cubic", "--seeds", "7..9", "--qlog", "traces"];
    for _ in 0..2 {
        lab.fine(&arguments);
        let folder = lab.path("traces/smoke");
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&folder), ["0001 object=20kB,stack=cubic", "0003 object=50kB,stack=cubic"]);
        for cell in names(&folder) {
            assert_eq!(names(&folder.join(&cell)), ["seed 7", "seed 8"]);
            let traces = names(&folder.join(&cell).join("seed 7"));
            assert_eq!(traces.len(), 2, "{traces:?}");
            for trace in traces {
                assert!(read(&folder.join(&cell).join("seed 7").join(trace)).len() > 1000);
            }
        }
    }
}

#[test]
fn several_experiments_run_one_after_the_other() {
    let lab = Lab::new();
    lab.write("it's mine.toml", &experiment("\"good\"", "20kB", "30s"));
    lab.fine(&["run", "smoke", "it's mine.toml", "--seeds", "1", "--json", "all.json"]);
    let all = lab.json("all.json");
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert_eq!(all[1]["cells"][0]["command"], r"posthaste lab run 'it'\''s mine.toml' --seeds 0..1");
}

#[test]
fn published_figures_are_judged() {
    let lab = Lab::new();
    let text = lab.fine(&["describe", "paper"]);
    for expected in
        ["503 rows", "History start (light-weight latency reduction", "cg-gain ", "seeds with --quick"]
    {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert!(lab.fine(&["list"]).lines().any(|line| line.starts_with("paper ")), "it is listed");
    for (arguments, expected) in [
        (&["run", "paper", "smoke"][..], "`paper` cannot be combined"),
        (&["run", "paper", "--cells", "stack=cubic"], "--cells applies to one experiment"),
        (&["run", "paper", "--quick", "--seeds", "3"], "cannot be used with"),
        (&["run", "smoke", "--quick"], "--quick applies only to `posthaste lab run paper`"),
        (&["run", "smoke", "--markdown", "a.md"], "--markdown applies only to `posthaste lab run paper`"),
        (&["run", "paper", "--html", "a", "--markdown", "a"], "--html and --markdown name the same file"),
    ] {
        let (code, stdout, stderr) = lab.lab(arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert_eq!(lab.files(), [] as [&str; 0]);
}

/// All of it is CI's (`lab run paper --quick`); here it begins, and keeps what it has when it is interrupted.
#[test]
fn the_judgement_can_be_interrupted() {
    let lab = Lab::new();
    let arguments = ["run", "paper", "--quick", "--jobs", "1", "--html", "all.html", "--markdown", "all.md"];
    let stderr = interrupted(&lab, &arguments);
    assert!(stderr.contains("which are kept"), "{stderr}");
    let resume = "posthaste lab run paper --quick --jobs 1 --html all.html --markdown all.md\n";
    assert!(stderr.ends_with(resume), "{stderr}");
    assert_eq!(lab.files(), ["state"], "no half a report");
    assert!(lab.journal().file_name().unwrap().to_string_lossy().starts_with("paper-"));
}

/// Some runs of a small experiment.
const SOME: [&str; 3] = ["smoke", "--seeds", "3"];

#[test]
fn shards_merge_into_the_report_of_one_machine() {
    let lab = Lab::new();
    let with = |more: &[&'static str]| [&["run"][..], &SOME, more].concat();
    let whole = lab.fine(&with(&["--json", "whole.json", "--html", "whole.html"]));
    for (shard, file) in [("0/3", "0.jsonl"), ("1/3", "1.jsonl"), ("2/3", "2.jsonl")] {
        let (code, stdout, stderr) = lab.lab(&with(&["--shard", shard, "--journal", file]));
        assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
        assert!(
            stderr.contains(&format!("shard {shard}: ")) && stderr.contains("posthaste lab merge"),
            "{stderr}"
        );
    }
    let merged =
        lab.fine(&["merge", "2.jsonl", "0.jsonl", "1.jsonl", "--json", "m.json", "--html", "m.html"]);
    assert_eq!(merged, whole);
    assert!(read(&lab.path("m.json")) == read(&lab.path("whole.json")));
    assert!(read(&lab.path("m.html")) == read(&lab.path("whole.html")));

    // A shard that was killed is continued; until then its runs are missed.
    let text = String::from_utf8(read(&lab.path("1.jsonl"))).unwrap();
    let lines = text.lines().count();
    lab.write("1.jsonl", &text[..text.len() - 20]);
    let files = ["merge", "0.jsonl", "1.jsonl", "2.jsonl"];
    let (code, _, stderr) = lab.lab(&files);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("1 of ") && stderr.contains("--shard 1/3 --journal FILE"), "{stderr}");
    lab.lab(&with(&["--shard", "1/3", "--journal", "1.jsonl", "--quiet"]));
    let again = String::from_utf8(read(&lab.path("1.jsonl"))).unwrap();
    // What was cut off, and what takes its place.
    assert_eq!(again.lines().count(), lines + 1);
    assert_eq!(lab.fine(&files), whole);
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let lab = Lab::new();
    let run = |arguments: &[&str]| {
        lab.fine(&[&["run", "smoke", "--quiet"], arguments].concat());
    };
    run(&["--seeds", "2", "--shard", "0/2", "--journal", "a"]);
    run(&["--seeds", "3", "--shard", "1/2", "--journal", "b"]);
    let before = read(&lab.path("a"));
    let refused = |arguments: &[&str], expected: &str| {
        let (code, stdout, stderr) = lab.lab(arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    };
    refused(&["merge", "a", "b"], "they are of `smoke --seeds 0..3`, not of `smoke --seeds 0..2`");
    let other_shard = ["run", "smoke", "--seeds", "2", "--shard", "1/2", "--journal", "a"];
    refused(&other_shard, "a holds other runs: they are of shard 0/2, not of 1/2");
    lab.write("c", "notes\n");
    refused(&["merge", "c"], "c holds no runs");
    refused(&["run", "smoke", "--journal", "c", "--fresh"], "it is left as it is");
    assert_eq!(read(&lab.path("c")), b"notes\n");
    refused(&["merge", "missing"], "cannot read missing");
    refused(&["run", "smoke", "--shard", "0/2"], "--journal");
    refused(&["run", "smoke", "--shard", "2/2", "--journal", "d"], "is not a shard");
    refused(
        &["run", "smoke", "--shard", "0/2", "--journal", "d", "--json", "x"],
        "posthaste lab merge FILES",
    );
    refused(&["run", "smoke", "smoke", "--journal", "d"], "--journal is for one experiment");
    refused(&["run", "paper", "--journal", "d"], "not to `paper`");

    // As if another build had made it.
    let text = String::from_utf8(before.clone()).unwrap();
    let at = text.find("\"program\":\"").unwrap() + 11;
    let other = format!("{}{}{}", &text[..at], "0123456789ab", &text[at + 12..]);
    lab.write("e", &other);
    refused(&["merge", "e"], "its runs are of another build of posthaste (0123456789ab");
    assert_eq!(read(&lab.path("a")), before);
}

#[test]
fn items_have_the_indices_that_shards_are_made_of() {
    let lab = Lab::new();
    let items = |arguments: &[&str]| -> Vec<serde_json::Value> {
        serde_json::from_str(&lab.fine(&[&["items", "smoke", "--seeds", "2", "--json"], arguments].concat()))
            .unwrap()
    };
    let all = items(&[]);
    assert!(all.iter().enumerate().all(|(index, item)| item["index"] == index));
    let odd = items(&["--shard", "1/2"]);
    assert_eq!(odd, all.iter().skip(1).step_by(2).cloned().collect::<Vec<_>>());
    lab.fine(&["run", "smoke", "--seeds", "2", "--shard", "1/2", "--journal", "odd", "--quiet"]);
    let runs = String::from_utf8(read(&lab.path("odd"))).unwrap().lines().count() - 1;
    assert_eq!(runs, odd.len());
    assert!(lab.fine(&["items", "smoke", "--seeds", "2"]).lines().count() == all.len());
}

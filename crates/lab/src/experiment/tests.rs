use std::fmt::Write as _;

use posthaste_units::{ByteCount, Duration};

use super::*;
use crate::spec::{NetworkSpec, WorkloadSpec};

/// A valid experiment with three axes, its lines easy to count.
const VALID: &str = r#"title = "A title"
question = "Why?"
source = "ours"
seeds = 7
metrics = ["completion"]
[run]
network = { kind = "simple", path = "good" }
flows = [
  { stack = "cubic", workload = { kind = "bulk", object = "1kB" } },
]
deadline = "20s"
[[axis]]
name = "path"
key = "network.path"
values = ["good", "average"]
[[axis]]
name = "object"
key = "flows.0.workload.object"
values = [
  "1kB",
  { label = "large", value = "10kB" },
  { label = "huge", set = { "flows.0.workload.object" = "1MB", deadline = "60s" } },
]
[[axis]]
name = "stack"
key = ["flows.0.stack", "flows.0.name"]
values = ["cubic", "standard"]
[[skip]]
path = "average"
object = ["large", "huge"]
"#;

fn parse(text: &str) -> Result<Experiment, ExperimentError> {
    Experiment::from_toml("test", text, None)
}

fn valid() -> Experiment {
    parse(VALID).unwrap()
}

fn fault(text: &str) -> String {
    match parse(text) {
        Ok(_) => panic!("it is accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// The same without lists that grow with what others add.
fn stable_fault(text: &str) -> String {
    [
        (check::metric_names(), "METRICS"),
        (crate::peers::RIVAL_NAMES.join(", "), "RIVALS"),
        (posthaste_schemes::names().join(", "), "PROFILES"),
        (posthaste_schemes::comparison_names().join(", "), "COMPARISONS"),
        (posthaste_path::PathSpec::names().join(", "), "PATHS"),
    ]
    .iter()
    .fold(fault(text), |fault, (list, name)| {
        let listed = fault.replace(&format!("there are {list}"), &format!("there are {name}"));
        let listed = listed.replace(&format!("one of {list}"), &format!("one of {name}"));
        let listed = listed.replace(&format!("profiles {list}"), &format!("profiles {name}"));
        listed.replace(&format!("for comparison {list}"), &format!("for comparison {name}"))
    })
}

fn object(cell: &Cell) -> ByteCount {
    match &cell.spec.flows[0].workload {
        WorkloadSpec::Bulk { object, .. } => *object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stack_may_be_a_profile_of_its_own() {
    let with = |stack: &str| VALID.replacen("stack = \"cubic\"", &format!("stack = {stack}"), 1);
    let tiny = "{ name = \"tiny\", credit = { stream = { fixed = { window = \"4 KiB\" } }, \
                connection = { fixed = { window = \"8 KiB\" } } } }";
    assert!(parse(&with(tiny)).is_ok());
    let axis = |value: &str| {
        let from = "values = [\"cubic\", \"standard\"]";
        let key = "key = [\"flows.0.stack\", \"flows.0.name\"]";
        VALID.replace(key, "key = \"flows.0.stack\"").replace(from, &format!("values = [{value}]"))
    };
    let experiment = parse(&axis(&format!("{{ label = \"tiny\", value = {tiny} }}"))).unwrap();
    let crate::peers::Stack::Posthaste(profile, 1) = &experiment.cells[0].spec.flows[0].stack else {
        panic!("ours")
    };
    assert_eq!((profile.name(), profile.stream_credit().window()), ("tiny", ByteCount::new(4096)));

    for (stack, part) in [
        ("{ name = \"tiny\", credits = {} }", "profile `tiny`: unknown field `credits`"),
        ("{ name = \"tiny\", credit = { stream = { fixed = { window = 0 } } } }", "from 1 KiB to 4 GiB"),
        ("{ credit = {} }", "expected a stack's name, or a profile"),
        ("3", "expected a stack's name, or a profile"),
    ] {
        let message = fault(&with(stack));
        assert!(message.contains(part) && message.contains("line 9"), "{stack}: {message}");
    }
}

#[test]
fn the_grid_is_the_product_without_what_is_skipped() {
    let experiment = valid();
    assert_eq!((experiment.seeds, experiment.title.as_str()), (7, "A title"));
    let cells: Vec<String> = experiment.cells.iter().map(|cell| cell.coordinates.join(" ")).collect();
    assert_eq!(
        cells,
        [
            "good 1kB cubic",
            "good 1kB standard",
            "good large cubic",
            "good large standard",
            "good huge cubic",
            "good huge standard",
            "average 1kB cubic",
            "average 1kB standard",
        ]
    );
    assert_eq!(experiment.axes[1].values, ["1kB", "large", "huge"]);
}

#[test]
fn a_value_sets_one_key_or_several() {
    let experiment = valid();
    let (large, huge, average) = (&experiment.cells[3], &experiment.cells[4], &experiment.cells[6]);
    assert_eq!((object(large), large.spec.deadline), (ByteCount::new(10_000), Duration::from_secs(20)));
    assert_eq!((object(huge), huge.spec.deadline), (ByteCount::new(1_000_000), Duration::from_secs(60)));
    let flow = &large.spec.flows[0];
    assert_eq!((flow.stack.to_string(), flow.name.as_str()), ("standard".to_owned(), "standard"));
    let NetworkSpec::Simple { path } = &average.spec.network else { panic!("{average:?}") };
    assert_eq!(path.rtt, Duration::from_millis(50));
}

#[test]
fn without_axes_there_is_one_cell() {
    let (head, _) = VALID.split_once("[[axis]]").unwrap();
    let experiment = parse(head).unwrap();
    assert_eq!(experiment.cells.len(), 1);
    assert!(experiment.cells[0].coordinates.is_empty());
}

/// Each fault with its message: what is wrong, where, and what would be right.
#[test]
fn faults_name_the_line_and_the_valid_choices() {
    let edits = [
        ("no TOML", "seeds = 7", "seeds = = 7"),
        ("wrong key", "source =", "sauce ="),
        ("missing key", "question = \"Why?\"\n", ""),
        ("two lines", "\"A title\"", "\"A\\ntitle\""),
        ("no seeds", "seeds = 7", "seeds = 0"),
        ("too many seeds", "seeds = 7", "seeds = 10_001"),
        ("wrong type", "seeds = 7", "seeds = \"many\""),
        ("unknown metric", "[\"completion\"]", "[\"completion\", \"beauty\"]"),
        ("no metric", "[\"completion\"]", "[]"),
        ("unknown baseline", "seeds = 7", "seeds = 7\nbaseline = \"quic\""),
        ("wrong key in run", "deadline = \"20s\"\n[[", "dead-line = \"20s\"\n[["),
        ("no unit", "deadline = \"20s\"\n[[", "deadline = 20\n[["),
        ("wrong unit", "deadline = \"20s\"\n[[", "deadline = \"20 furlongs\"\n[["),
        ("out of range", "deadline = \"20s\"\n[[", "deadline = \"0s\"\n[["),
        ("small datagrams", "deadline = \"20s\"\n[[", "datagram = 1000\n[["),
        ("fine series", "deadline = \"20s\"\n[[", "series = \"1us\"\n[["),
        ("unknown network", "kind = \"simple\"", "kind = \"simpel\""),
        ("wrong key in network", "path = \"good\" }", "pat = \"good\" }"),
        ("unknown path", "path = \"good\" }", "path = \"nice\" }"),
        ("unknown stack", "stack = \"cubic\"", "stack = \"qubic\""),
        ("unknown workload", "kind = \"bulk\"", "kind = \"bulky\""),
        ("wrong key in workload", "object = \"1kB\"", "size = \"1kB\""),
        ("wrong unit in workload", "object = \"1kB\"", "object = \"1 ton\""),
        ("no flows", "  { stack = \"cubic\", workload = { kind = \"bulk\", object = \"1kB\" } },\n", ""),
        ("only background", "stack = \"cubic\",", "background = true, stack = \"cubic\","),
        ("too many flows", "stack = \"cubic\",", "count = 257, stack = \"cubic\","),
        ("axis without name", "name = \"object\"\n", ""),
        ("wrong key in axis", "name = \"object\"", "name = \"object\"\nunit = \"kB\""),
        ("two axes of one name", "name = \"object\"", "name = \"path\""),
        ("axis name with equal sign", "name = \"object\"", "name = \"o=b\""),
        ("axis key names nothing", "\"network.path\"", "\"netwrk.path\""),
        ("axis key names nothing inside", "\"flows.0.workload.object\"\n", "\"flows.0.load.object\"\n"),
        ("axis key beyond a list", "\"flows.0.workload.object\"\n", "\"flows.1.workload.object\"\n"),
        ("axis key into a text", "\"network.path\"", "\"network.path.loss\""),
        ("axis key of no field", "\"network.path\"", "\"network.pth\""),
        ("axis key with an empty part", "\"network.path\"", "\"network..path\""),
        ("axis without key", "key = \"network.path\"\n", ""),
        ("empty axis", "[\"good\", \"average\"]", "[]"),
        ("unknown path on axis", "[\"good\", \"average\"]", "[\"good\", \"averag\"]"),
        ("unknown stack on axis", "[\"cubic\", \"standard\"]", "[\"cubic\", \"tpc:cubic\"]"),
        ("wrong unit on axis", "value = \"10kB\"", "value = \"10kg\""),
        ("wrong type on axis", "value = \"10kB\"", "value = true"),
        ("two values of one label", "label = \"huge\"", "label = \"large\""),
        ("label with comma", "label = \"huge\"", "label = \"very,huge\""),
        ("value without label", "label = \"large\", ", ""),
        ("value that sets nothing", "label = \"large\", value = \"10kB\"", "label = \"large\""),
        ("set names nothing", "deadline = \"60s\"", "\"flows.2.stack\" = \"cubic\""),
        ("set of no field", "deadline = \"60s\"", "deadlin = \"60s\""),
        ("set out of range", "deadline = \"60s\"", "deadline = \"900000s\""),
        ("skip of no axis", "path = \"average\"\n", "pth = \"average\"\n"),
        ("skip of no value", "path = \"average\"\n", "path = \"bad\"\n"),
        ("everything skipped", "object = [\"large\", \"huge\"]\n", "[[skip]]\npath = \"good\"\n"),
    ];
    let mut faults = String::new();
    for (name, from, to) in edits {
        assert_eq!(VALID.matches(from).count(), 1, "{name}: `{from}` must be in the text once");
        writeln!(faults, "{name}:\n  {}", stable_fault(&VALID.replace(from, to))).unwrap();
    }
    insta::assert_snapshot!(faults);
}

/// In tables with headings of their own too.
#[test]
fn faults_under_headings_have_their_line() {
    let (head, _) = VALID.split_once("network =").unwrap();
    let text = format!(
        "{head}[run.network]\nkind = \"simple\"\npath = \"good\"\n\n\
         [[run.flows]]\nstack = \"cubic\"\n[run.flows.workload]\nkind = \"bulk\"\nobject = \"1kB\"\n"
    );
    parse(&text).unwrap();
    for (from, to, line) in [
        ("\"simple\"", "\"simpel\"", 8),
        ("path =", "pth =", 9),
        ("\"good\"", "\"nice\"", 9),
        ("\"cubic\"", "\"qubic\"", 12),
        ("\"bulk\"", "\"bulky\"", 14),
        ("object =", "size =", 15),
        ("\"1kB\"", "\"1kg\"", 15),
    ] {
        let error = fault(&text.replace(from, to));
        assert!(error.starts_with(&format!("experiment test, line {line}: ")), "{from}: {error}");
    }
}

#[test]
fn the_grid_is_bounded() {
    let values: Vec<String> = (1..=100).map(|number| format!("\"{number}kB\"")).collect();
    let axis = |name: &str, values: &[String]| {
        format!(
            "[[axis]]\nname = \"{name}\"\nkey = \"flows.0.workload.object\"\nvalues = [{}]\n",
            values.join(", ")
        )
    };
    let (head, _) = VALID.split_once("[[axis]]").unwrap();
    let large = format!("{head}{}{}", axis("a", &values[..50]), axis("b", &values[..41]));
    assert_eq!(
        fault(&large),
        "experiment test, line 16: the grid has 50 x 41 cells; at most 2000 are possible"
    );
    let mut many = values.clone();
    many.push("\"101kB\"".to_owned());
    let error = fault(&format!("{head}{}", axis("a", &many)));
    assert_eq!(error, "experiment test, line 13: axis `a` has 101; at most 100 are possible");
    let nine: String = (0..9).map(|number| axis(&format!("a{number}"), &values[..1])).collect();
    let error = fault(&format!("{head}{nine}"));
    assert_eq!(error, "experiment test, line 44: at most 8 axes are possible");
}

#[test]
fn cells_are_chosen_by_value() {
    let experiment = valid();
    let chosen = |text: &str| experiment.select(&text.parse().unwrap());
    assert_eq!(experiment.select(&CellFilter::default()).unwrap().len(), 8);
    assert_eq!(chosen("path=average").unwrap(), [6, 7]);
    assert_eq!(chosen("stack=cubic,object=1kB,object=huge").unwrap(), [0, 4, 6]);
    let both = CellFilter::default().and("path=good".parse().unwrap()).and("object=large".parse().unwrap());
    assert_eq!(experiment.select(&both).unwrap(), [2, 3]);
    for (text, expected) in [
        ("pth=good", "there is no axis `pth`; there are path, object, stack"),
        ("path=bad", "the axis `path` has no value `bad`; there are good, average"),
        ("path=average,object=huge", "no cell is left: the experiment skips these"),
    ] {
        assert_eq!(chosen(text).unwrap_err().to_string(), expected);
    }
    for text in ["", "path", "path=", "=good", "path=good,"] {
        let error = text.parse::<CellFilter>().unwrap_err().to_string();
        assert!(error.contains("write axis=value,axis=value"), "{error}");
    }
}

/// A capacity trace beside the experiment, also as a value of an axis.
#[test]
fn traces_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("slow.csv", "0,1000000\n1,1000000\n");
    write("fast.csv", "0,8000000\n1,8000000\n");
    let table = "path = { rtt = \"50ms\", trace-file = \"slow.csv\" } }";
    let own = VALID
        .replace("path = \"good\" }", table)
        .replace("[\"good\", \"average\"]", "[\"slow.csv\", \"fast.csv\"]")
        .replace("key = \"network.path\"", "key = \"network.path.trace-file\"")
        .replace("path = \"average\"\n", "path = \"fast.csv\"\n");
    let read = |text: &str| {
        write("own.toml", text);
        Experiment::from_file(&folder.path().join("own.toml"))
    };
    let experiment = read(&own).unwrap();
    let rates: Vec<u64> = experiment
        .cells
        .iter()
        .map(|cell| match &cell.spec.network {
            NetworkSpec::Simple { path } => path.down_rate().unwrap().as_bits_per_second(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((rates[0], rates[7]), (1_000_000, 8_000_000));

    for (from, to, expected) in [
        (
            "trace-file = \"slow.csv\"",
            "trace-file = \"slo.csv\"",
            "line 7: cannot read the trace `slo.csv`: No such",
        ),
        (
            "trace-file = \"slow.csv\"",
            "rat = 1, trace-file = \"slow.csv\"",
            "line 7: unknown field `rat`, expected",
        ),
        ("\"fast.csv\"]", "\"fst.csv\"]", "line 15: axis `path`, value `fst.csv`: cannot read the trace"),
    ] {
        assert_eq!(own.matches(from).count(), 1, "{from}");
        let error = read(&own.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(
        parse(&own).unwrap_err().to_string().contains("line 7: cannot read the trace `slow.csv`: a built-in")
    );
}

/// `VALID` with published figures.
fn published(entry: &str) -> String {
    format!("{VALID}[[published]]\nfile = \"history_start.csv\"\n{entry}")
}

const ENTRY: &str = r#"rows = { experiment = "hs-simple", metric = "latency_mean" }
axes = { path = "network", object = { column = "object", labels = { "1MB" = "1kB", "10MB" = "huge" } } }
at = { stack = "cubic" }
metric = "completion"
value = "baseline_value"
unit = "s"
"#;

#[test]
fn published_figures_stand_at_their_cells() {
    let experiment = parse(&published(ENTRY)).unwrap();
    let figures: Vec<(usize, &Published)> = experiment
        .cells
        .iter()
        .enumerate()
        .flat_map(|(index, cell)| cell.published.iter().map(move |figure| (index, figure)))
        .collect();
    let figure = |value, row| Published {
        metric: "completion".into(),
        value,
        unit: "s".into(),
        source: format!("history_start.csv row {row}, 5.1.1"),
        verdict: None,
    };
    assert_eq!(figures, [(4, &figure(3.43, 4)), (6, &figure(0.52, 2))]);
    assert_eq!(experiment.published.len(), 6, "rows without a figure are kept as text");
    let row = &experiment.published[1];
    assert_eq!((row.row, row.figures[0].cells), (2, 1));
    assert!(row.columns.contains(&("scheme_value".to_owned(), "0.31".to_owned())), "{row:?}");
    assert!(experiment.published[0].figures.is_empty());
}

#[test]
fn published_rows_may_be_shown_alone_translated_to_several_cells_and_noted() {
    let (rows, _) = ENTRY.split_once("axes").unwrap();
    let experiment = parse(&published(rows)).unwrap();
    assert_eq!(experiment.published.len(), 6);
    assert!(experiment.cells.iter().all(|cell| cell.published.is_empty()));

    let several = ENTRY.replace("\"huge\" } }", "[\"large\", \"huge\"] } }") + "note = \"read twice\"\n";
    let experiment = parse(&published(&several)).unwrap();
    let at: Vec<usize> = (0..8).filter(|&index| !experiment.cells[index].published.is_empty()).collect();
    assert_eq!(at, [2, 4, 6]);
    let source = &experiment.cells[2].published[0].source;
    assert_eq!(source, "history_start.csv row 4, 5.1.1, read twice");
}

#[test]
fn published_figures_may_lie_beside_the_experiment() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.csv"), "path,seconds\ngood,1.5\n").unwrap();
    let entry = "[[published]]\nfile = \"own.csv\"\naxes = { path = \"path\" }\nmetric = \"completion\"\nvalue = \"seconds\"\n";
    let path = folder.path().join("own.toml");
    std::fs::write(&path, format!("{VALID}{entry}")).unwrap();
    let experiment = Experiment::from_file(&path).unwrap();
    assert_eq!(experiment.name, path.display().to_string());
    assert_eq!(experiment.cells.iter().filter(|cell| cell.published.len() == 1).count(), 6);
    std::fs::remove_file(folder.path().join("own.csv")).unwrap();
    let error = Experiment::from_file(&path).unwrap_err().to_string();
    assert!(error.contains("line 31: published: cannot read `own.csv`"), "{error}");
}

#[test]
fn faults_of_published_figures_are_told() {
    let mut faults = String::new();
    for (name, from, to) in [
        ("wrong key", "rows =", "row ="),
        ("no file", "history_start.csv", "history.csv"),
        ("unknown metric", "\"completion\"\nvalue", "\"speed\"\nvalue"),
        ("no column", "\"baseline_value\"", "\"base_value\""),
        ("no column in rows", "experiment = \"hs-simple\"", "experimnt = \"hs-simple\""),
        ("no rows", "\"hs-simple\"", "\"hs-complex\""),
        ("no axis", "axes = { path", "axes = { pth"),
        ("no label", "\"1kB\", \"10MB\"", "\"1 kB\", \"10MB\""),
        ("no place", "stack = \"cubic\" }\nm", "stack = \"bbr\" }\nm"),
        ("no number", "\"baseline_value\"", "\"kind\""),
        ("metric without value", "value = \"baseline_value\"\n", ""),
    ] {
        let text = published(ENTRY);
        assert_eq!(text.matches(from).count(), 1, "{name}: `{from}` must be in the text once");
        writeln!(faults, "{name}:\n  {}", stable_fault(&text.replace(from, to))).unwrap();
    }
    insta::assert_snapshot!(faults);
}

#[test]
fn built_in_experiments_are_valid() {
    for name in Experiment::names() {
        let experiment = Experiment::built_in(name).unwrap_or_else(|error| panic!("{error}"));
        assert!(!experiment.cells.is_empty() && experiment.seeds > 0);
    }
    let error = Experiment::built_in("smok").unwrap_err().to_string();
    assert!(error.starts_with("there is no experiment `smok`; there are smoke, hs-simple,"), "{error}");
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let error = Experiment::from_file(&missing).unwrap_err().to_string();
    assert!(error.contains("missing.toml: No such file"), "{error}");
    let large = folder.path().join("large.toml");
    std::fs::write(&large, vec![b'#'; MAX_FILE as usize + 1]).unwrap();
    let error = Experiment::from_file(&large).unwrap_err().to_string();
    assert!(error.ends_with("it is larger than 1048576 bytes"), "{error}");
}

#[test]
fn a_stack_may_be_a_profiles_file_with_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "[start.initial]\ndatagrams = 12\n").unwrap();
    let name = |stack: &str| stack.parse::<crate::peers::Stack>().map(|stack| stack.to_string());
    let file = path.display();
    assert_eq!(name(&file.to_string()).unwrap(), "mine");
    assert_eq!(name(&format!("{file}@datagrams=14")).unwrap(), "mine@datagrams=14");
    assert_eq!(name("quicming@min_rate=1mbit@3").unwrap(), "quicming@min_rate=1mbit@3");
    let lacking = name("quicming@3").unwrap_err().to_string();
    assert!(lacking.contains("quicming@min_rate=1mbit"), "{lacking}");
    std::fs::write(&path, "[start.initial]\ndatagrams = 1\n").unwrap();
    let fault = name(&file.to_string()).unwrap_err().to_string();
    assert!(fault.contains("mine.toml") && fault.contains("line 2"), "{fault}");
}

/// What is wrong with a single run's description: line and key.
fn fault_of_run(text: &str) -> (Option<usize>, Option<String>) {
    match Experiment::run_from_toml("test", text, None) {
        Err(ExperimentError::Invalid { line, key, .. }) => (line, key),
        other => panic!("{other:?}"),
    }
}

#[test]
fn faults_of_a_single_run_name_line_and_key() {
    let valid = r#"[run]
network = { kind = "simple", path = "good" }
deadline = "20s"
[[run.flows]]
stack = "cubic"
workload = { kind = "bulk", object = "1kB" }
"#;
    let spec = Experiment::run_from_toml("test", valid, None).unwrap();
    assert_eq!(spec.deadline, Duration::from_secs(20));
    for (right, wrong, line, key) in [
        ("object =", "objcet =", 6, "run.flows.0.workload.objcet"),
        ("\"1kB\"", "\"1 furlong\"", 6, "run.flows.0.workload.object"),
        ("\"cubic\"", "\"cubik\"", 5, "run.flows.0.stack"),
        ("deadline = \"20s\"", "deadline = \"0s\"", 3, "run.deadline"),
        ("deadline = \"20s\"", "deadline = 20", 3, "run.deadline"),
        ("\"good\"", "\"goof\"", 2, "run.network.path"),
    ] {
        let text = valid.replace(right, wrong);
        assert_eq!(fault_of_run(&text), (Some(line), Some(key.to_owned())), "{wrong}");
    }
    assert_eq!(fault_of_run("title = 1\n").0, Some(1), "nothing but a run");
}

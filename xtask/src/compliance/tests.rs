use super::*;

const LIST: &str = r#"
rfc = "rfc9000"
title = "a title"
requirements = [
    { id = "4.1 excess-closes", level = "must", text = "one" },
    { id = "4.6 lower-count-is-void", level = "must", text = "two" },
    { id = "10 silent", level = "must", text = "three", except = "not offered" },
    { id = "10 polite", level = "should", text = "four" },
]
"#;

fn lists() -> Vec<List> {
    vec![requirement::parse(LIST).expect("a list")]
}

fn citations(path: &str, text: &str) -> Vec<Citation> {
    citation::read(Path::new(path), text).expect("citations")
}

#[test]
fn what_is_cited_where_is_counted_by_section() {
    let source = "// spec: rfc9000 4.1 excess-closes\nfn f() {} // spec: rfc9000 10 polite\nmod tests {\n    \
                  // spec: rfc9000 4.1 excess-closes, 4.6 lower-count-is-void\n}\n";
    let entries = matched(lists(), citations("crates/a/src/flow.rs", source)).expect("all known");
    let report = Report::new(&entries);
    let table = report.table();
    let row = |name: &str| {
        let line = table.lines().find(|line| line.trim_start().starts_with(name)).expect("a row");
        line.split_whitespace().rev().take(5).map(str::to_owned).collect::<Vec<_>>()
    };
    // In reverse: missing, excepted, tested, implemented, total.
    assert_eq!(row("section 4"), ["1", "0", "2", "1", "2"]);
    assert_eq!(row("section 10"), ["0", "1", "0", "0", "1"]);
    assert_eq!(row("all"), ["1", "1", "2", "1", "3"]);
    assert_eq!(row("SHOULDs"), ["0", "0", "0", "1", "1"]);
    assert!((report.cited_percent() - 200.0 / 3.0).abs() < 1e-9);
    assert!(table.contains("100.0 % of those not excepted"), "{table}");
    assert_eq!(entries[0].implemented, ["crates/a/src/flow.rs:1"]);
    assert_eq!(entries[0].tested, ["crates/a/src/flow.rs:4"]);
    let json: serde_json::Value = serde_json::from_str(&report.json(&entries).expect("JSON")).expect("JSON");
    assert_eq!(json["requirements"][1]["tested"][0], "crates/a/src/flow.rs:4");
    assert_eq!(json["counts"]["all"]["missing"], 1);
    let missing = report::listing(&entries, "missing", |entry| !entry.is_cited());
    assert_eq!(missing, "\nmissing:\nrfc9000 4.6 lower-count-is-void: two\n");
}

#[test]
fn test_files_are_told_by_their_names() {
    let line = "// spec: rfc9000 4.1 excess-closes";
    for path in ["crates/a/tests/x.rs", "crates/a/src/flow_tests.rs", "crates/a/src/flow/tests.rs"] {
        assert_eq!(citations(path, line)[0].kind, Kind::Tested, "{path}");
    }
    for path in ["crates/a/src/tests_of_faith.rs", "crates/a/src/contests.rs"] {
        assert_eq!(citations(path, line)[0].kind, Kind::Implemented, "{path}");
    }
}

#[test]
fn unknown_and_excepted_requirements_are_refused_all_at_once() {
    let source =
        "// spec: rfc9000 4.1 renamed\n// spec: rfc9009 4.1 excess-closes\n// spec: rfc9000 10 silent\n";
    let error =
        matched(lists(), citations("crates/a/src/flow.rs", source)).expect_err("three faults").to_string();
    assert!(error.contains("crates/a/src/flow.rs:1: `rfc9000 4.1 renamed`"), "{error}");
    assert!(error.contains("`rfc9009 4.1 excess-closes`"), "{error}");
    assert!(error.contains("`rfc9000 10 silent` is cited here and excepted"), "{error}");
}

#[test]
fn malformed_citations_and_lists_are_refused() {
    for text in
        ["// spec: 4.1 excess-closes", "// spec: rfc9000 4.1", "// spec: rfc9000 x.1 slug", "// spec:"]
    {
        assert!(citation::read(Path::new("a.rs"), text).is_err(), "{text}");
    }
    assert_eq!(citation::read(Path::new("a.rs"), "let s = \"// spec: anything\";"), Ok(Vec::new()));
    let bad = [
        LIST.replace("4.6 lower-count-is-void", "4.1 excess-closes"),
        LIST.replace("4.6 lower-count-is-void", "lower-count-is-void"),
        LIST.replace("4.6 lower-count-is-void", "4.6 Lower"),
        LIST.replace("\"two\"", "\" \""),
        LIST.replace("not offered", ""),
        LIST.replace("\"should\"", "\"may\""),
        LIST.replace("text = \"four\"", "text = \"four\", extra = 1"),
    ];
    for list in bad {
        assert!(requirement::parse(&list).is_err(), "{list}");
    }
}

#[test]
fn the_repository_s_lists_are_well_formed() {
    let lists = read_lists(&root()).expect("well-formed lists");
    let musts =
        |list: &List| list.requirements.iter().filter(|each| each.level == requirement::Level::Must).count();
    assert_eq!(
        lists.iter().map(|list| list.rfc.as_str()).collect::<Vec<_>>(),
        [
            "rfc9000", "rfc9001", "rfc9002", "rfc9114", "rfc9204", "rfc9218", "rfc9221", "rfc9287",
            "rfc9368", "rfc9369", "rfc9959"
        ]
    );
    assert!(musts(&lists[0]) > 250, "{}", musts(&lists[0]));
}

use super::*;

fn figure(verdict: Option<Verdict>) -> JudgedFigure {
    JudgedFigure {
        what: "reduction of completion time (median)".to_owned(),
        published: "31 %".to_owned(),
        ours: "35 %".to_owned(),
        detail: "0.5 s beside 0.8 s".to_owned(),
        verdict,
        why: None,
    }
}

fn row(row: usize, verdict: Verdict) -> JudgedRow {
    JudgedRow {
        row,
        published_as: "hs-simple".to_owned(),
        setting: "good, 1MB | <b>".to_owned(),
        place: "5.1".to_owned(),
        verdict,
        is_effect: row != 3,
        figures: vec![figure(Some(verdict)), figure(None)],
        stated: None,
        reading: Some("as it stands".to_owned()),
        varied: (verdict == Verdict::NotReproduced).then(|| "the loss.".to_owned()),
        to_be_known: (verdict == Verdict::NotReproduced).then(|| "the radio.".to_owned()),
        remarks: Vec::new(),
        experiment: Some("hs-simple".to_owned()),
        cells: "path=good,stack=it's".to_owned(),
        seeds: 7,
    }
}

fn judgement() -> Judgement {
    let rule_set = JudgedRuleSet {
        scheme: "History start".to_owned(),
        source: "a paper".to_owned(),
        file: "history_start.csv".to_owned(),
        note: Some("a note of all".to_owned()),
        rows: vec![row(1, Verdict::Reproduced), row(2, Verdict::NotReproduced), row(3, Verdict::CannotHold)],
    };
    Judgement { rule_sets: vec![rule_set] }
}

fn made() -> Made {
    Made { command: "posthaste lab run paper --quick".to_owned(), runs: 12, is_quick: true }
}

#[test]
fn counts_are_by_scheme_and_in_all() {
    let table = table(&judgement());
    let numbers =
        |line: &str| -> Vec<usize> { line.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    assert_eq!(numbers(lines[1]), [3, 1, 0, 0, 1, 1, 0, 0, 0]);
    assert_eq!(numbers(lines[2]), [3, 1, 0, 0, 1, 1, 0, 0, 0]);
    assert_eq!(numbers(lines[3]), [2, 1, 0, 0, 1, 0, 0, 0, 0], "effects");
    assert_eq!(numbers(lines[4]), [1, 0, 0, 0, 0, 1, 0, 0, 0], "plain values");
    assert_eq!(judgement().unexplained(), 0);
}

#[test]
fn both_pages_say_the_same_and_notes_stand_once() {
    for page in [markdown(&judgement(), &made()), page(&judgement(), &made())] {
        for expected in [
            "31 %",
            "35 %",
            "not reproduced",
            "cannot hold",
            "posthaste lab run paper --quick",
            "a note of all",
        ] {
            assert!(page.contains(expected), "{expected} is not in {page}");
        }
        assert!(page.contains(QUICK));
        assert_eq!(page.matches("Reading: as it stands").count(), 1);
        assert_eq!(page.matches("Varied: the loss. To be known: the radio.").count(), 1);
        assert_eq!(page.matches("the radio.").count(), 2, "and by cause");
    }
    assert!(!page(&judgement(), &made()).contains("| <b>"), "text is escaped");
    assert!(markdown(&judgement(), &made()).contains("good, 1MB \\| <b>"), "a bar does not end the cell");
    assert!(!markdown(&judgement(), &Made { is_quick: false, ..made() }).contains(QUICK));
}

#[test]
fn a_row_has_the_command_that_repeats_it() {
    let expected = r"posthaste lab run hs-simple --cells 'path=good,stack=it'\''s' --seeds 7";
    assert_eq!(command(&row(1, Verdict::Reproduced)).as_deref(), Some(expected));
    let unmeasured = JudgedRow { experiment: None, ..row(1, Verdict::NotMeasured) };
    assert_eq!(command(&unmeasured), None);
}

#[test]
fn programs_get_the_judgement_and_the_runs() {
    let text = json(&judgement(), &[]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["reproduction"]["rule_sets"][0]["rows"][1]["verdict"], "not_reproduced");
    assert_eq!(value["experiments"].as_array().map(Vec::len), Some(0));
}

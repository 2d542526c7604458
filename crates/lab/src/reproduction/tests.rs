use super::*;
use crate::experiment_result::{Axis, CellResult, ExperimentResult};
use crate::result::{FlowResult, Outcome, RunResult};

/// A rule set for the smallest file, every row of it by one rule.
const RULE_SET: &str = r#"scheme = "Guaranteed rate"
source = "a paper"
file = "guaranteed_rate.csv"
[axes]
loss = { column = "loss_pct", labels = { 0 = "0%", 5 = "5%", 10 = "10%" } }
rtt = { column = "latency_ms", labels = { 0 = "0ms", 200 = "200ms", 500 = "500ms", 1000 = "1000ms" } }
[experiments]
gr-page = { seeds = 4, quick = 1 }
[[rule]]
experiment = "gr-page"
at = { rate = "8mbit", stack = "quicming-paper@min_rate=1mbit" }
baseline = { stack = "cubic" }
figure = [{ judge = "ratio", measure = "completion.mean", column = "quicming_s", against-column = "quic_s", unit = "s" }]
varied = "the rate"
to-be-known = "the queue"
[[remark]]
choose = { loss_pct = "10" }
text = "much loss"
"#;

fn rule_set(from: &str, to: &str) -> Result<Reproduction, RuleError> {
    assert_eq!(RULE_SET.matches(from).count(), 1, "{from}");
    Reproduction::from_toml("own", &RULE_SET.replace(from, to))
}

fn fault(from: &str, to: &str) -> String {
    match rule_set(from, to) {
        Ok(_) => panic!("{to} is accepted"),
        Err(error) => error.to_string(),
    }
}

fn range(low: f64, high: f64) -> Range {
    Range { low, high }
}

#[test]
fn an_effect_is_reproduced_within_a_third() {
    use Verdict::{NotReproduced, Reproduced, SameDirection};
    for (ours, published, expected) in [
        (0.30, 0.30, Reproduced),
        (0.20, 0.30, Reproduced),
        (0.199, 0.30, SameDirection),
        (0.40, 0.30, Reproduced),
        (0.401, 0.30, SameDirection),
        (0.001, 0.30, SameDirection),
        (0.0, 0.30, NotReproduced),
        (-0.30, 0.30, NotReproduced),
        (-0.20, -0.30, Reproduced),
        (-0.41, -0.30, SameDirection),
        (0.3, -0.30, NotReproduced),
        (0.0, 0.0, Reproduced),
        (NO_EFFECT, 0.0, Reproduced),
        (-NO_EFFECT, 0.0, Reproduced),
        (0.051, 0.0, NotReproduced),
    ] {
        assert_eq!(of_effect(ours, range(published, published)), expected, "{ours} beside {published}");
    }
}

#[test]
fn an_effect_whose_interval_has_zero_is_not_seen() {
    use Verdict::{NoEffect, NotReproduced, Reproduced, SameDirection};
    let published = range(0.3, 0.3);
    for (verdict, low, high, expected) in [
        (Reproduced, 0.1, 0.5, Reproduced),
        (Reproduced, -0.01, 0.5, NoEffect),
        (SameDirection, 0.0, 0.2, NoEffect),
        (SameDirection, -0.2, -0.1, SameDirection),
        (NotReproduced, -0.2, 0.1, NotReproduced),
    ] {
        assert_eq!(of_sure_effect(verdict, low, high, published), expected, "{verdict:?} {low} {high}");
    }
    assert_eq!(of_sure_effect(Reproduced, -0.1, 0.1, range(0.0, 0.0)), Reproduced, "none is published");
}

#[test]
fn a_range_has_two_borders_and_at_least_has_one() {
    use Verdict::{NotReproduced, Reproduced, SameDirection};
    for (ours, expected) in [
        (0.12, Reproduced),
        (0.119, SameDirection),
        (0.32, Reproduced),
        (0.321, SameDirection),
        (-0.1, NotReproduced),
    ] {
        assert_eq!(of_effect(ours, range(0.18, 0.24)), expected, "{ours}");
    }
    for (ours, expected) in
        [(0.2, Reproduced), (9.0, Reproduced), (0.19, SameDirection), (-1.0, NotReproduced)]
    {
        assert_eq!(of_effect(ours, range(0.3, f64::INFINITY)), expected, "{ours}");
    }
    assert_eq!(Range::parse("18..24"), Some(range(18.0, 24.0)));
    assert_eq!(Range::parse("-0.85"), Some(range(-0.85, -0.85)));
    for text in ["", "x", "24..18", "1..", "inf", "8/8/32"] {
        assert_eq!(Range::parse(text), None, "{text}");
    }
}

#[test]
fn a_value_has_no_direction() {
    assert_eq!(of_value(4.0, range(3.0, 3.0)), Verdict::Reproduced);
    assert_eq!(of_value(4.1, range(3.0, 3.0)), Verdict::NotReproduced);
    assert_eq!(of_value(2.0, range(3.0, 3.0)), Verdict::Reproduced);
    assert_eq!(of_value(1.9, range(3.0, 3.0)), Verdict::NotReproduced);
}

#[test]
fn claims_hold_all_or_most_or_not() {
    assert_eq!(of_claims(4, 4), Verdict::Reproduced);
    assert_eq!(of_claims(3, 4), Verdict::SameDirection);
    assert_eq!(of_claims(2, 4), Verdict::NotReproduced);
    assert_eq!(of_claims(0, 1), Verdict::NotReproduced);
}

#[test]
fn the_worst_figure_is_the_rows() {
    let order = [
        Verdict::Reproduced,
        Verdict::SameDirection,
        Verdict::NoEffect,
        Verdict::Fitted,
        Verdict::CannotHold,
        Verdict::NotMeasured,
        Verdict::Repeated,
        Verdict::NotReproduced,
    ];
    assert!(order.is_sorted());
}

#[test]
fn every_row_of_every_file_has_exactly_one_rule() {
    let all = Reproduction::built_in().unwrap();
    let rows: Vec<(&str, usize)> =
        all.rule_sets.iter().map(|rule_set| (rule_set.table.file.as_str(), rule_set.tasks.len())).collect();
    let expected = [
        ("history_start.csv", 18),
        ("guaranteed_rate.csv", 12),
        ("guaranteed_rate_times.csv", 48),
        ("window_on_ack.csv", 268),
        ("coordinated_group.csv", 139),
        ("fast_autotune.csv", 18),
    ];
    assert_eq!(rows, expected);
    assert_eq!(all.rows(), 503);
    for rule_set in &all.rule_sets {
        assert_eq!(rule_set.table.rows.len(), rule_set.tasks.len());
    }
}

#[test]
fn a_row_without_a_rule_or_with_two_is_refused() {
    let choose = "[[rule]]\nchoose = { loss_pct = [\"0\", \"5\"] }\n";
    assert_eq!(
        fault("[[rule]]\n", choose),
        "rules own, line 3: no rule chooses row 3, 6, 9, 12 of `guaranteed_rate.csv`"
    );
    let second = "[[rule]]\nchoose = { loss_pct = \"10\" }\ncannot-hold = \"no\"\n[[remark]]\n";
    let message = fault("[[remark]]\n", second);
    assert!(message.ends_with("row 3 of guaranteed_rate.csv is chosen by a rule above, too"), "{message}");
    assert!(message.starts_with("rules own, line 16: "), "{message}");
}

#[test]
fn what_there_is_none_of_is_refused_with_place_and_choices() {
    for (from, to, expected) in [
        (
            "[[rule]]\n",
            "[[rule]]\nchoose = { los = \"0\" }\n",
            "has no column `los`; there are experiment, latency_ms,",
        ),
        (
            "[[rule]]\n",
            "[[rule]]\nchoose = { loss_pct = \"7\" }\n",
            "no row has `7` in the column loss_pct; there are 0, 10, 5",
        ),
        (
            "experiment = \"gr-page\"",
            "experiment = \"gr-pag\"",
            "there is no experiment `gr-pag`; there are smoke,",
        ),
        (
            "rate = \"8mbit\"",
            "rates = \"8mbit\"",
            "there is no axis `rates`; there are rate, rtt, loss, stack",
        ),
        (
            "rate = \"8mbit\"",
            "rate = \"9mbit\"",
            "the axis `rate` has no value `9mbit`; there are 1mbit, 8mbit",
        ),
        ("baseline = { stack = \"cubic\" }", "baseline = { stack = \"qubic\" }", "has no value `qubic`"),
        ("baseline = { stack = \"cubic\" }", "", "needs `baseline`"),
        ("completion.mean", "beauty.mean", "there is no metric `beauty.mean`; there are completion,"),
        ("completion.mean", "saving.mean", "`saving` compares cells by itself"),
        ("column = \"quicming_s\"", "column = \"quick_s\"", "no column `quick_s`"),
        ("unit = \"s\"", "unit = \"stones\"", "`stones` is no unit of what is measured"),
        (
            "judge = \"ratio\"",
            "judge = \"beauty\"",
            "unknown variant `beauty`, expected one of `value`, `effect`",
        ),
        ("rate = \"8mbit\", ", "", "it stands at 2 cells of gr-page: say `over`, or where on rate"),
        ("gr-page = {", "gr-pages = {", "there is no experiment `gr-pages`"),
        ("seeds = 4", "seeds = 0", "from 1 to 10000 seeds are possible, not 0"),
        ("varied =", "veried =", "unknown field `veried`"),
        ("to-be-known = \"the queue\"\n", "", "need each other"),
        ("varied = \"the rate\"\n", "", "need each other"),
        ("guaranteed_rate.csv", "rate.csv", "there is no file `rate.csv` of published figures; there are"),
        ("loss_pct = \"10\" }", "loss_pct = \"11\" }", "no row has `11`"),
        ("10 = \"10%\" }", "10 = \"11%\" }", "it stands at no cell of gr-page"),
    ] {
        let message = fault(from, to);
        assert!(message.contains(expected), "{message}");
        assert!(message.starts_with("rules own, line "), "{message}");
    }
}

#[test]
fn what_must_be_run_follows_from_the_rules() {
    let all = Reproduction::from_toml("own", RULE_SET).unwrap();
    let plan = all.plan();
    assert_eq!(plan.len(), 1);
    assert_eq!((plan[0].experiment.name.as_str(), plan[0].seeds, plan[0].quick), ("gr-page", 4, 1));
    assert_eq!(plan[0].cells.len(), 24, "twelve rows, two stacks");
    assert!(plan[0].cells.is_sorted());
}

/// Results in which every cell of a stack takes this many seconds.
fn results(all: &Reproduction, seconds: impl Fn(&str) -> Option<f64>) -> ExperimentResult {
    let planned = &all.plan()[0];
    let stack = planned.experiment.axes.iter().position(|axis| axis.name == "stack").unwrap();
    let run = |completion: Option<f64>| RunResult {
        seed: 0,
        outcome: Outcome::Completed,
        virtual_seconds: 1.0,
        limit: None,
        trace_hash: String::new(),
        packets: 0,
        flows: vec![FlowResult { completion, ..FlowResult::default() }],
        links: Vec::new(),
        series: None,
    };
    let cells = planned.cells.iter().map(|&index| {
        let coordinates = planned.experiment.cells[index].coordinates.clone();
        let run = run(seconds(&coordinates[stack]));
        CellResult { coordinates, runs: vec![run], ..CellResult::default() }
    });
    ExperimentResult {
        name: planned.experiment.name.clone(),
        axes: planned.experiment.axes.iter().map(|axis| Axis { ..axis.clone() }).collect(),
        seeds: 1,
        cells: cells.collect(),
        ..ExperimentResult::default()
    }
}

#[test]
fn rows_are_judged_by_their_ratio_to_the_baseline() {
    let all = Reproduction::from_toml("own", RULE_SET).unwrap();
    let result = results(&all, |stack| Some(if stack == "cubic" { 10.0 } else { 8.0 }));
    let judged = all.judge(&[result]);
    let rows = &judged.rule_sets[0].rows;
    // 9 to 7 s is 22 % less, 29 to 25 is 14 %; ours is 20 % less.
    assert_eq!((rows[0].verdict, rows[10].verdict), (Verdict::Reproduced, Verdict::SameDirection));
    assert_eq!(rows[0].figures[0].published, "7 s (-22 %)");
    assert_eq!(rows[0].figures[0].ours, "-20 %");
    assert_eq!(rows[0].figures[0].detail, "8.00 s against 10.0 s");
    assert_eq!((rows[0].varied.as_deref(), rows[10].varied.as_deref()), (None, Some("the rate")));
    let known = rows.iter().map(|row| row.to_be_known.as_deref());
    assert_eq!(known.step_by(10).collect::<Vec<_>>(), [None, Some("the queue")]);
    assert_eq!((rows[0].remarks.len(), rows[2].remarks.len()), (0, 1));
    assert!(
        rows[0].cells.contains("rtt=0ms,loss=0%,stack=cubic,stack=quicming-paper@min_rate=1mbit"),
        "{}",
        rows[0].cells
    );
    let reversed = results(&all, |stack| Some(if stack == "cubic" { 8.0 } else { 10.0 }));
    assert_eq!(all.judge(&[reversed]).count(Verdict::NotReproduced), 12);
    assert_eq!(all.judge(&[]).count(Verdict::NotMeasured), 12);
    let late = results(&all, |stack| (stack == "cubic").then_some(8.0));
    assert_eq!(all.judge(&[late]).count(Verdict::NotReproduced), 12, "beyond the deadline");
}

#[test]
fn what_is_faster_than_the_path_cannot_hold() {
    // 1 Mbit/s: 1,311 kB take more than ten seconds.
    let value = "judge = \"value\", measure = \"completion.mean\", column = \"quicming_s\", unit = \"s\"";
    let ratio = "judge = \"ratio\", measure = \"completion.mean\", column = \"quicming_s\", against-column = \"quic_s\", unit = \"s\"";
    let text = RULE_SET.replace("8mbit", "1mbit").replace(ratio, value);
    let all = Reproduction::from_toml("own", &text).unwrap();
    let result = results(&all, |stack| Some(if stack == "cubic" { 10.0 } else { 8.0 }));
    let judged = all.judge(&[result]);
    let row = &judged.rule_sets[0].rows[0];
    assert_eq!(row.verdict, Verdict::CannotHold);
    let why = row.figures[0].why.as_deref().unwrap();
    assert!(why.starts_with("7 s is less than the 1") && why.contains("1.00 Mbit/s"), "{why}");
    assert_ne!(judged.rule_sets[0].rows[11].verdict, Verdict::CannotHold, "25 s are possible");
    // The ratio of two values that cannot be is judged as a ratio, and says so of the value.
    let all = rule_set("8mbit", "1mbit").unwrap();
    let result = results(&all, |stack| Some(if stack == "cubic" { 10.0 } else { 8.0 }));
    let row = &all.judge(&[result]).rule_sets[0].rows[0];
    assert_eq!(row.verdict, Verdict::Reproduced);
    assert!(row.figures[0].why.as_deref().unwrap().starts_with("7 s is less than the 1"));
    // A bound of the rule's own.
    let bound = format!("{value}, floor = {{ value = 20, because = \"so it is\" }}");
    let all = Reproduction::from_toml("own", &RULE_SET.replace(ratio, &bound)).unwrap();
    let result = results(&all, |_| Some(1.0));
    let judged = all.judge(&[result]);
    assert_eq!(judged.count(Verdict::CannotHold), 10);
    assert_eq!(judged.rule_sets[0].rows[0].figures[0].why.as_deref(), Some("7 s is below 20 s: so it is"));
}

#[test]
fn what_is_fitted_shown_or_printed_twice_is_never_reproduced() {
    let result = |all: &Reproduction| results(all, |stack| Some(if stack == "cubic" { 9.0 } else { 7.0 }));
    let verdict = |all: Result<Reproduction, RuleError>| {
        let all = all.unwrap();
        let row = all.judge(&[result(&all)]).rule_sets[0].rows[0].clone();
        (row.verdict, row.is_effect)
    };
    assert_eq!(verdict(rule_set("8mbit", "8mbit")), (Verdict::Reproduced, true));
    let with = |key: &str| rule_set("varied =", &format!("{key}\nvaried ="));
    assert_eq!(verdict(with("fitted = \"the rate\"")).0, Verdict::Fitted);
    assert_eq!(verdict(with("repeats = \"row 2\"")).0, Verdict::Repeated);
    let shown = rule_set("unit = \"s\"", "unit = \"s\", is-shown = true");
    assert_eq!(verdict(shown), (Verdict::NotMeasured, false), "nothing is judged");
    assert!(fault("varied =", "repeats = \"a\"\ncannot-hold = \"b\"\nvaried =").contains("one is possible"));
}

#[test]
fn slopes_and_correlations_have_signs() {
    use measure::{correlation, slope};
    assert_eq!(slope(&[(0.0, 5.0), (2.0, 1.0), (1.0, 3.0)]), Some(-2.0));
    assert_eq!(slope(&[(1.0, 5.0), (1.0, 1.0)]), None);
    assert!((correlation(&[1.0, 2.0, 3.0], &[6.0, 4.0, 2.0]).unwrap() + 1.0).abs() < 1e-12);
    assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
}

//! Results for programs come back as they were, and lines are runs.

use posthaste_report::json;

use crate::data;

#[test]
fn results_come_back_as_they_were() {
    let experiments = [data::simple(7), data::fairness(), data::along_loss()];
    let read = json::from_str(&json::to_string(&experiments)).expect("what was written");
    assert!(read == experiments);
    assert_eq!(json::from_str(&json::to_string(&[])).expect("nothing"), []);
}

#[test]
fn a_line_is_a_run() {
    let experiment = data::simple(5);
    let text = json::to_string(std::slice::from_ref(&experiment));
    let runs = text.lines().filter(|line| line.trim_start().starts_with(r#"{"seed":"#)).count();
    assert_eq!(runs, experiment.cells.len() * 5);
    assert!(text.ends_with("}\n"));
}

#[test]
fn statistics_stand_beside_the_runs() {
    let experiment = data::simple(5);
    let text = json::to_string(std::slice::from_ref(&experiment));
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let cells = value["experiments"][0]["cells"].as_array().expect("cells");
    for (cell, original) in cells.iter().zip(&experiment.cells) {
        let mut seconds: Vec<f64> = original.runs.iter().filter_map(|run| run.flows[0].completion).collect();
        seconds.sort_by(f64::total_cmp);
        let is_whole = seconds.len() == 5;
        let statistics = &cell["statistics"]["completion"];
        assert_eq!(statistics["n"], 5);
        assert_eq!(statistics["p50"].as_f64(), Some(seconds[2]));
        assert_eq!(statistics["mean"].is_null(), !is_whole, "a mean over deadlines does not exist");
        assert_eq!(cell["incomplete"].as_u64(), Some(5 - seconds.len() as u64));
        assert_eq!(cell["repeatable"].as_bool(), Some(original.coordinates[2] != "noq:bbr3"));
    }
}

#[test]
fn another_schema_is_refused() {
    let text = json::to_string(&[]).replace("\"schema\": 1", "\"schema\": 999");
    let error = json::from_str(&text).expect_err("a schema of the future").to_string();
    assert!(error.contains("999") && error.contains("reads schema 1"), "{error}");
    assert!(json::from_str("{").is_err());
}

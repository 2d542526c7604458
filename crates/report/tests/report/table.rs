//! The table for the terminal.

use posthaste_report::table::print;

use crate::data;

#[test]
fn a_table_fits_a_terminal() {
    for experiment in [data::simple(50), data::fairness(), data::along_loss()] {
        let text = print(&experiment);
        let table = text.lines().skip(3).take_while(|line| !line.starts_with("incomplete"));
        for line in table.filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= 120, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }
}

#[test]
fn columns_stand_below_each_other() {
    let text = print(&data::simple(50));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("50/50")).collect();
    assert_eq!(rows.len(), data::simple(1).cells.len() - 2, "all but the two cells with deadlines");
    let place = rows[0].find("50/50");
    assert!(rows.iter().all(|row| row.chars().position(|c| c == '/') == place.map(|place| place + 2)));
}

#[test]
fn it_says_what_the_page_says() {
    let text = print(&data::simple(50));
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert_eq!(line("bad, 1MB  "), "bad, 1MB  (limit 0.467 s)");
    assert!(line("  quinn:newreno  47/50").contains(">deadline"));
    assert_eq!(
        line("  bad, 1MB, quinn:newreno"),
        "  bad, 1MB, quinn:newreno: 3 of 50 (3 by the deadline of 300 s)"
    );
    assert!(line("  average, 1MB, cubic").contains("published 0.520 s"));
    assert!(line("  noq:bbr3\u{2020} ").contains("50/50"));
    assert!(line("\u{2020} Its controller").contains("similar runs"));
    assert!(!print(&data::fairness()).contains('\u{2020}'));
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut experiment = data::simple(2);
    experiment.title.push_str("\u{1b}[2J");
    experiment.cells[0].coordinates[0] = "\u{7}good\r".to_owned();
    experiment.metrics.push("\u{1b}]0;x".to_owned());
    let text = print(&experiment);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

//! The reports, from results made up for them.

mod data;

use posthaste_lab::report;

#[test]
fn the_page_is_written_to_be_looked_at() {
    let page = report::html::page(&[data::simple(50), data::fairness(), data::along_loss()]);
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/report.html");
    std::fs::write(file, &page).expect("a writable target directory");
    println!("{} bytes", page.len());
    println!("{}", report::table::print(&data::simple(50)));
    println!("{}", report::table::print(&data::fairness()));
}

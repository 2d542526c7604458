//! The TCP model against closed forms.

mod tcp_support;

use tcp_support::{Case, run};

#[test]
fn first() {
    for (stack, bytes) in [
        ("tcp:cubic", 10_000u64),
        ("tcp:cubic", 10_000_000),
        ("tcp:newreno", 10_000_000),
        ("tcp:cubic/h1", 1_000_000),
    ] {
        let outcome = run(&Case { stack, bytes, ..Case::default() });
        println!("{stack} {bytes}: {outcome:?}");
    }
    for loss in [0.001, 0.01, 0.02, 0.05] {
        let outcome = run(&Case { stack: "tcp:cubic", bytes: 10_000_000, loss, ..Case::default() });
        println!("cubic loss {loss}: {outcome:?}");
    }
}

//! Developer and CI commands.
fn main() {}

//! The tests over the public interface, in one program.

mod bounds;
mod common;
mod messages;

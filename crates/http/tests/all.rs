//! The tests over the public interface, in one program: each further one would link everything again.

mod bodies;
mod common;
mod conduct;
mod early_data;
mod hostile;
mod limits;
mod loopback;
mod priorities;
mod qpack;
mod split;

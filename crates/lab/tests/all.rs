//! The tests over the public interface, in one program: each further one would link everything again. `trace_hashes` is alone
//! because it is often run alone.

mod adverse;
mod apps;
mod composition;
mod extremes;
mod groups;
mod measures;
mod options;
mod repeat;
mod rivals;
mod tcp;
mod tcp_bbr;
mod tcp_content;
mod tcp_flights;
mod tcp_support;
mod tcp_theory;
mod theory;
mod warm_up;

//! `posthaste emulate`: a command behind an emulated path.

#[cfg(target_os = "linux")]
mod directions;
#[cfg(target_os = "linux")]
mod interrupt;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod meter;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod report;

#[cfg(target_os = "linux")]
pub(crate) use linux::{run, run_inside};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{run, run_inside};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::process::ExitCode;

    use crate::args::{Emulate, EmulateInside};
    use crate::exit::Failure;

    fn failure() -> Failure {
        Failure::runtime("`posthaste emulate` needs Linux: its paths join network namespaces")
            .hint("`posthaste race` emulates paths on every system")
    }

    pub(crate) fn run(_args: &Emulate) -> Result<ExitCode, Failure> {
        Err(failure())
    }

    pub(crate) fn run_inside(_args: &EmulateInside) -> ExitCode {
        failure().report()
    }
}

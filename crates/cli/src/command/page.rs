//! `posthaste page`: web pages in a real browser, over an emulated path, from one server after the other.

mod protocol;

pub(crate) use protocol::Protocol;

#[cfg(target_os = "linux")]
mod background;
#[cfg(target_os = "linux")]
mod build;
#[cfg(target_os = "linux")]
mod html;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod reach;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod site;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod tally;
#[cfg(target_os = "linux")]
mod target;
#[cfg(target_os = "linux")]
mod visit;

#[cfg(target_os = "linux")]
pub(crate) use {linux::run, visit::run as visit};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{run, visit};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::process::ExitCode;

    use crate::args::{Page, PageVisit};
    use crate::exit::Failure;

    fn failure() -> Failure {
        Failure::runtime("`posthaste page` needs Linux: its paths join network namespaces")
            .hint("`posthaste race` emulates paths on every system, without a browser")
    }

    pub(crate) async fn run(_args: Page) -> Result<ExitCode, Failure> {
        Err(failure())
    }

    pub(crate) fn visit(_args: &PageVisit) -> Result<ExitCode, Failure> {
        Err(failure())
    }
}

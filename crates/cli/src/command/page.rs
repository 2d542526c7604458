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
mod relay;
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

#[cfg(all(target_os = "linux", feature = "edge"))]
mod prove;

#[cfg(target_os = "linux")]
pub(crate) use {linux::run, relay::run as relay, visit::run as visit};

#[cfg(all(target_os = "linux", feature = "edge"))]
pub(crate) use prove::run as prove;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{relay, run, visit};

#[cfg(all(not(target_os = "linux"), feature = "edge"))]
pub(crate) use elsewhere::prove;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::process::ExitCode;

    #[cfg(feature = "edge")]
    use crate::args::EdgeProve;
    use crate::args::{Page, PageRelay, PageVisit};
    use crate::exit::Failure;

    fn failure() -> Failure {
        Failure::runtime("`posthaste page` needs Linux: its paths join network namespaces")
            .hint("`posthaste race` emulates paths on every system, without a browser")
    }

    pub(crate) async fn run(_args: Page) -> Result<ExitCode, Failure> {
        Err(failure())
    }

    #[cfg(feature = "edge")]
    pub(crate) async fn prove(_args: &EdgeProve) -> Result<ExitCode, Failure> {
        Err(Failure::runtime("`posthaste edge prove` needs Linux: its paths join network namespaces")
            .hint("run it on a Linux machine, with --resolve NAME=ADDRESS if the site is elsewhere"))
    }

    pub(crate) fn relay(_args: &PageRelay) -> Result<ExitCode, Failure> {
        Err(failure())
    }

    pub(crate) fn visit(_args: &PageVisit) -> Result<ExitCode, Failure> {
        Err(failure())
    }
}

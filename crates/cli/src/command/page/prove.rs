//! `posthaste edge prove`: a site's own page over emulated paths, as it is and through the edge. The runs are those of `page`.

mod bridge;
mod html;
mod outcome;
mod report;
mod site;
mod text;

use std::process::ExitCode;
use std::sync::Arc;

use posthaste_campaign::journal::Journal;

use self::bridge::Bridge;
use self::outcome::Outcome;
use self::site::Site;
use super::linux::{check_paths, exit_code, load_all, snap_warning};
use super::plan::Plan;
use super::visit::is_firefox;
use crate::args::{EdgeProve, Page};
use crate::exit::Failure;
use crate::interrupt::Interrupts;
use crate::output_file::OutputFile;
use crate::{printer, profile};

/// Runs below which nothing can be decided.
const FEW_RUNS: u64 = 6;

pub(crate) async fn run(args: &EdgeProve) -> Result<ExitCode, Failure> {
    profile::complete(&args.profile)?;
    let mut interrupts = Interrupts::catch()
        .map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;
    let create = || OutputFile::create(&args.html);
    let page = (!args.output.no_html).then(create).transpose().map_err(|error| {
        Failure::usage(error).hint("choose another file with --html FILE, or use --no-html")
    })?;
    let mut plan = Plan::of(&pages(args)?, Vec::new())?;
    let site = Site::reach(args)?;
    let bridge = Bridge::open(plan.ground.path(), site.address, &args.resolve)?;
    plan.front(site.contestants(&bridge, &plan.posthaste), &site.host, site.spki.as_deref())?;
    check_paths(&plan)?;
    announce(args, &plan, &site);
    let plan = Arc::new(plan);
    let (journal, _) = super::journal::open(None)?;
    let tally = load(&plan, journal, &mut interrupts).await?;
    drop(bridge);
    let outcome = Outcome::new(&plan, &tally, &site, args);
    let written = if args.output.json {
        printer::json(&report::Report::new(&outcome))
    } else {
        printer::line(text::text(&outcome).trim_end())
    };
    printer::unless_reader_left(written)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    if let Some(page) = page.filter(|_| !tally.records.is_empty()) {
        page.write(html::page(&outcome).as_bytes()).map_err(Failure::runtime)?;
        if !args.output.json {
            printer::note(format_args!("the report is in {}", args.html.display()));
        }
    }
    Ok(exit_code(&tally))
}

async fn load(
    plan: &Arc<Plan>,
    journal: Journal<super::record::Record>,
    interrupts: &mut Interrupts,
) -> Result<super::tally::Tally, Failure> {
    load_all(plan, journal, Vec::new(), interrupts).await.map_err(|failure| {
        failure.hint("both sides must load the page; try it with `posthaste edge doctor`, or in a browser")
    })
}

/// What is asked of `page`.
fn pages(args: &EdgeProve) -> Result<Page, Failure> {
    if args.path.iter().any(|path| path == "none") {
        return Err(Failure::usage("--path none: both sides need an emulated path")
            .hint("`posthaste page URL --path none` loads a page over the real network"));
    }
    if is_firefox(std::path::Path::new(&args.browser)) {
        return Err(Failure::usage("--browser: only Chromium can be led to a site of another address")
            .hint("leave it out, or name the file of a Chromium"));
    }
    Ok(Page {
        urls: vec![args.url.clone()],
        page: Vec::new(),
        profiles: Vec::new(),
        rivals: None,
        only: Vec::new(),
        protocols: Vec::new(),
        path: args.path.clone(),
        runs: args.runs,
        seed: args.seed,
        background: 0,
        cold_only: args.cold_only,
        browser: args.browser.clone(),
        spki: Vec::new(),
        parallel: 1,
        timeout: args.timeout,
        journal: None,
        html: args.html.clone(),
        output: crate::args::ReportOutput { no_html: args.output.no_html, json: args.output.json },
        qlog: None,
        net_log: None,
    })
}

fn announce(args: &EdgeProve, plan: &Plan, site: &Site) {
    if let Some(warning) = snap_warning(plan) {
        printer::note(warning);
    }
    let names: Vec<&str> = plan.paths.iter().map(|path| path.name.as_str()).collect();
    printer::note(format_args!(
        "{} over {}, {} and through the edge with profile {}: {} rounds, {} runs of some 10 s",
        printer::printable(&site.url),
        printer::printable(&names.join(", ")),
        outcome::as_it_is(site),
        printer::printable(&args.profile),
        plan.runs,
        plan.order().len(),
    ));
    if plan.runs < FEW_RUNS {
        printer::note(format_args!(
            "with fewer than {FEW_RUNS} runs nothing can be decided: every difference may be chance"
        ));
    }
    if let Some(remark) = outcome::far_away(site) {
        printer::note(remark);
    }
}

//! How the race stands, while it runs: bars on a terminal, a line a run elsewhere, nothing beside JSON.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::figures::headline;
use super::plan::Plan;
use super::tally::median;
use super::testbed::Run;
use crate::printer;

/// Racers up to which each has a bar: more do not fit into a terminal.
const MAX_BARS: usize = 16;

/// The bars, or what stands for them.
pub(super) enum Progress {
    Bars(Bars),
    Lines,
    Silent,
}

/// Below the bars.
const OVERALL: &str = "  {pos} of {len} runs, {elapsed} gone, {msg}";

/// A bar a racer, which moves with every byte, and the time that is left.
pub(super) struct Bars {
    all: MultiProgress,
    racers: Vec<ProgressBar>,
    overall: ProgressBar,
    /// Seconds of each racer's runs so far.
    times: Mutex<Vec<Vec<f64>>>,
    /// Body bytes of a run.
    bytes: u64,
    runs: u64,
}

impl Progress {
    pub(super) fn new(plan: &Plan, is_for_programs: bool) -> Self {
        if std::io::stderr().is_terminal() {
            Self::Bars(Bars::new(plan))
        } else if is_for_programs {
            Self::Silent
        } else {
            Self::Lines
        }
    }

    /// So many bytes have arrived at one of the racer's clients.
    pub(super) fn advance(&self, racer: usize, bytes: u64) {
        if let Self::Bars(bars) = self {
            bars.racers[racer].inc(bytes);
        }
    }

    /// A run is over.
    pub(super) fn finish(&self, plan: &Plan, run: &Run) {
        match self {
            Self::Bars(bars) => bars.finish(plan, run),
            Self::Lines => {
                let name = &plan.racers[run.start.racer].name;
                let outcome = match &run.outcome {
                    Ok(()) => spent(plan, run),
                    Err(reason) => format!("failed: {}", printer::printable(reason)),
                };
                printer::note(format_args!("{}/{} {name} {outcome}", run.start.round, plan.runs));
            }
            Self::Silent => {}
        }
    }

    /// Takes the bars off the terminal.
    pub(super) fn clear(&self) {
        if let Self::Bars(bars) = self {
            bars.racers.iter().for_each(ProgressBar::finish_and_clear);
            bars.overall.finish_and_clear();
            // A terminal that is gone needs no clearing.
            let _ = bars.all.clear();
        }
    }
}

impl Bars {
    fn new(plan: &Plan) -> Self {
        let all = MultiProgress::new();
        let width = plan.racers.iter().map(|racer| racer.name.len()).max().unwrap_or(0);
        let template = format!("  {{prefix:{width}}} {{bar:32.cyan/dim}} {{msg}}");
        let bytes = plan.workload.bytes();
        let is_shown = plan.racers.len() <= MAX_BARS;
        let racers = plan.racers.iter().map(|racer| {
            let bar = if is_shown {
                ProgressBar::new(bytes.saturating_mul(plan.runs))
            } else {
                ProgressBar::hidden()
            };
            let bar = bar.with_style(style(&template).progress_chars("━╸─"));
            let bar = bar.with_prefix(printer::printable(&racer.name));
            let bar = if is_shown { all.add(bar) } else { bar };
            bar.set_message(format!("0/{}", plan.runs));
            bar
        });
        let racers: Vec<ProgressBar> = racers.collect();
        let total = plan.runs * plan.racers.len() as u64;
        let overall = ProgressBar::new(total).with_style(style(OVERALL));
        let overall = all.add(overall);
        overall.set_message(format!("about {} left; Ctrl-C ends early", spoken(plan.estimate())));
        overall.enable_steady_tick(Duration::from_millis(500));
        let times = Mutex::new(vec![Vec::new(); racers.len()]);
        Self { all, racers, overall, times, bytes, runs: plan.runs }
    }

    fn finish(&self, plan: &Plan, run: &Run) {
        let mut times = self.times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let times = &mut times[run.start.racer];
        times.push(headline(plan, run));
        let bar = &self.racers[run.start.racer];
        // A run that failed has left its bar short.
        bar.inc(self.bytes.saturating_sub(run.flow.bytes));
        let last = match &run.outcome {
            Ok(()) => spent(plan, run),
            Err(_) => "\x1b[31mfailed\x1b[0m".to_owned(),
        };
        let median = median(times).map(|seconds| printer::duration(Duration::from_secs_f64(seconds)));
        let median = median.unwrap_or_else(|| "-".to_owned());
        bar.set_message(format!("{}/{}  median \x1b[1m{median}\x1b[0m  last {last}", times.len(), self.runs));
        self.overall.inc(1);
        let left = self.overall.length().unwrap_or(0).saturating_sub(self.overall.position());
        let pace = self.overall.elapsed().as_secs_f64() / self.overall.position().max(1) as f64;
        let left = Duration::from_secs_f64(pace * left as f64);
        self.overall.set_message(format!("about {} left; Ctrl-C ends early", spoken(left)));
    }
}

/// The first figure of a run that did not fail.
fn spent(plan: &Plan, run: &Run) -> String {
    printer::duration(Duration::try_from_secs_f64(headline(plan, run)).unwrap_or(Duration::MAX))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A rough duration in words.
pub(super) fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 90.0 {
        format!("{} s", seconds.ceil())
    } else if seconds < 5_400.0 {
        format!("{} minutes", (seconds / 60.0).round())
    } else {
        format!("{:.1} hours", seconds / 3_600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rough() {
        for (seconds, expected) in
            [(0.2, "1 s"), (61.5, "62 s"), (119.0, "2 minutes"), (9_000.0, "2.5 hours")]
        {
            assert_eq!(spoken(Duration::from_secs_f64(seconds)), expected);
        }
    }

    #[test]
    fn templates_are_valid() {
        for template in ["  {prefix:8} {bar:32.cyan/dim} {msg}", OVERALL] {
            ProgressStyle::with_template(template).unwrap();
        }
    }
}

//! How far a sweep is: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posthaste_lab::sweep::Progress;

use crate::printer;

/// Time between lines where there is no terminal.
const LINES: Duration = Duration::from_secs(5);

/// What the bar looks like.
const TEMPLATE: &str = "{prefix:24!} {bar:24} {pos}/{len} {msg}";

/// Shows how far a sweep is, on stderr.
pub(super) struct Display {
    name: String,
    bar: Option<ProgressBar>,
    is_quiet: bool,
    began: Instant,
    told: Instant,
}

impl Display {
    /// For the experiment `name`.
    pub(super) fn new(name: &str, is_quiet: bool) -> Self {
        let name = printer::printable(name);
        let bar = (!is_quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template(TEMPLATE);
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(name.clone());
            bar
        });
        let now = Instant::now();
        Self { name, bar, is_quiet, began: now, told: now }
    }

    /// Takes in how far it is now.
    pub(super) fn update(&mut self, progress: Progress) {
        if let Some(bar) = &self.bar {
            bar.set_length(progress.total as u64);
            bar.set_position(progress.done as u64);
            bar.set_message(message(progress, self.began.elapsed()));
        } else if !self.is_quiet && self.told.elapsed() >= LINES {
            self.told = Instant::now();
            let message = message(progress, self.began.elapsed());
            printer::note(format_args!(
                "{}: {} of {} runs, {message}",
                self.name, progress.done, progress.total
            ));
        }
    }
}

impl Drop for Display {
    /// The table follows in its place.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The time that is left, and what went wrong.
fn message(progress: Progress, elapsed: Duration) -> String {
    let failures = if progress.failed > 0 { format!(", {} failed", progress.failed) } else { String::new() };
    // Runs from the journal took no time and say nothing about those that are left.
    let made = progress.done - progress.reused;
    if made == 0 {
        return format!("just begun{failures}");
    }
    let left = elapsed.as_secs_f64() / made as f64 * (progress.total - progress.done) as f64;
    format!("{} left{failures}", rough(left))
}

/// A time as people say it.
fn rough(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9).round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_counts_what_was_made() {
        let progress = Progress { done: 60, reused: 50, failed: 0, total: 100 };
        assert_eq!(message(progress, Duration::from_secs(10)), "40 s left");
        assert_eq!(
            message(Progress { failed: 2, ..progress }, Duration::from_secs(100)),
            "6 min 40 s left, 2 failed"
        );
        assert_eq!(message(Progress { done: 50, ..progress }, Duration::from_secs(1)), "just begun");
        assert_eq!(rough(7322.0), "2 h 2 min");
    }

    #[test]
    fn the_template_is_valid() {
        ProgressStyle::with_template(TEMPLATE).unwrap();
    }
}

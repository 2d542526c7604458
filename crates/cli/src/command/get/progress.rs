//! Progress on a terminal; nothing anywhere else.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Up to so many transfers have a bar each; of more only the sum is shown.
const MAX_BARS: usize = 8;

/// The bars of all transfers.
pub(super) struct Progress {
    bars: MultiProgress,
    /// Counts bytes of all transfers, where there are too many for a bar each.
    sum: Option<ProgressBar>,
}

impl Progress {
    /// Bars for so many transfers, on stderr. A body that itself goes to the terminal leaves no room for them.
    pub(super) fn new(transfers: usize, terminal_is_taken: bool) -> Self {
        let target =
            if terminal_is_taken { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bars = MultiProgress::with_draw_target(target);
        let sum = (transfers > MAX_BARS).then(|| {
            let bar = bars
                .add(ProgressBar::no_length().with_style(style("{spinner} {bytes} {bytes_per_sec} {msg}")));
            bar.set_message(format!("{transfers} files"));
            bar
        });
        Self { bars, sum }
    }

    /// A bar for a transfer that begins.
    pub(super) fn bar(&self, path: &str, length: Option<u64>) -> Bar {
        if let Some(sum) = &self.sum {
            return Bar { bar: sum.clone(), is_own: false };
        }
        let bar = match length {
            Some(length) => ProgressBar::new(length)
                .with_style(style("{msg:24!} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta}")),
            None => ProgressBar::no_length()
                .with_style(style("{msg:24!} {spinner} {bytes} {bytes_per_sec} {elapsed}")),
        };
        let bar = self.bars.add(bar);
        let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/");
        bar.set_message(crate::printer::printable(name));
        bar.enable_steady_tick(Duration::from_millis(100));
        Bar { bar, is_own: true }
    }

    /// Prints something without spoiling the bars.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.bars.suspend(print);
    }

    /// Takes what does not move any more off the terminal.
    pub(super) fn clear(&self) {
        if let Some(sum) = &self.sum {
            sum.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The progress of one transfer.
pub(super) struct Bar {
    bar: ProgressBar,
    is_own: bool,
}

impl Bar {
    pub(super) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

impl Drop for Bar {
    /// What is complete stays to be read; what is not is cleared, the error speaks for it.
    fn drop(&mut self) {
        if !self.is_own {
        } else if self.bar.length().is_none_or(|length| self.bar.position() >= length) {
            self.bar.finish();
        } else {
            self.bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for length in [None, Some(10)] {
            Progress::new(1, true).bar("/a/b", length).advance(3);
        }
        for template in
            ["{msg:24!} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta}", "{spinner} {bytes} {msg}"]
        {
            ProgressStyle::with_template(template).unwrap();
        }
    }
}

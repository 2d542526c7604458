//! One line about what the path is doing now.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use posthaste_emulator::{DirectionReport, TunnelReport};
use posthaste_units::Rate;

use crate::args::Meter;

/// How often it is shown.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// Shows it, if anywhere.
#[derive(Debug)]
pub(super) struct Display {
    place: Meter,
    last: TunnelReport,
}

impl Display {
    pub(super) fn new(wanted: Meter, is_quiet: bool) -> Self {
        let place = match wanted {
            Meter::Auto if is_quiet || !std::io::stderr().is_terminal() => Meter::None,
            Meter::Auto if std::io::stdout().is_terminal() => Meter::Title,
            Meter::Auto => Meter::Line,
            given => given,
        };
        Self { place, last: TunnelReport::default() }
    }

    /// True if it is worth making reports for.
    pub(super) fn is_shown(&self) -> bool {
        self.place != Meter::None
    }

    /// From now on another path is shown, which has counted this so far.
    pub(super) fn change_path(&mut self, report: TunnelReport) {
        self.last = report;
    }

    pub(super) fn show(&mut self, report: TunnelReport) {
        let line = line(&self.last, &report);
        let text = match self.place {
            Meter::Title => format!("\x1b]2;{line}\x07"),
            _ => format!("\r\x1b[K{line}"),
        };
        self.last = report;
        write(&text);
    }

    pub(super) fn clear(&self) {
        match self.place {
            Meter::Title => write("\x1b]2;\x07"),
            Meter::Line => write("\r\x1b[K"),
            Meter::Auto | Meter::None => {}
        }
    }
}

/// A terminal that is gone takes nothing away from the run.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

fn line(last: &TunnelReport, now: &TunnelReport) -> String {
    format!("down {} | up {}", direction(&last.down, &now.down), direction(&last.up, &now.up))
}

fn direction(last: &DirectionReport, now: &DirectionReport) -> String {
    let bytes = now.path.delivered_bytes.saturating_sub(last.path.delivered_bytes);
    let bits = bytes as f64 * 8.0 / INTERVAL.as_secs_f64();
    let rate = Rate::from_bits_per_second(bits as u64);
    let dropped = dropped(now);
    let fresh = dropped.saturating_sub(self::dropped(last));
    format!("{rate}, queue {}, dropped {dropped} (+{fresh})", now.queue)
}

/// Packets that the path has dropped, for whatever reason.
pub(super) fn dropped(report: &DirectionReport) -> u64 {
    report.path.lost + report.path.overflowed + report.path.managed
}

#[cfg(test)]
mod tests {
    use posthaste_units::ByteCount;

    use super::*;

    #[test]
    fn it_tells_rate_queue_and_drops() {
        let mut now = TunnelReport::default();
        now.down.path.delivered_bytes = 1_250_000;
        now.down.queue = ByteCount::new(64_000);
        (now.up.path.lost, now.up.path.overflowed) = (2, 3);
        let text = line(&TunnelReport::default(), &now);
        assert_eq!(
            text,
            "down 20.0 Mbit/s, queue 64.0 kB, dropped 0 (+0) | up 0 bit/s, queue 0 B, dropped 5 (+5)"
        );
        assert!(line(&now.clone(), &now).contains("dropped 5 (+0)"));
    }

    #[test]
    fn a_path_is_never_compared_with_another() {
        let (mut first, mut second) = (TunnelReport::default(), TunnelReport::default());
        (first.down.path.delivered_bytes, first.down.path.lost) = (9_000_000, 7);
        (second.down.path.delivered_bytes, second.down.path.lost) = (40_000, 2);
        let mut display = Display { place: Meter::None, last: first };
        display.change_path(second.clone());
        second.down.path.delivered_bytes += 1_250_000;
        let text = line(&display.last, &second);
        assert!(text.starts_with("down 20.0 Mbit/s, queue 0 B, dropped 2 (+0)"), "{text}");
        // Whatever is compared, a meter ends no run.
        let text = line(&second, &TunnelReport::default());
        assert!(text.starts_with("down 0 bit/s, queue 0 B, dropped 0 (+0)"), "{text}");
    }
}

//! A path in one line.

use std::fmt;

use posthaste_units::Duration;

use crate::aggregation::Aggregation;
use crate::handover::Handover;
use crate::jitter::Distribution;
use crate::pauses::Pauses;
use crate::queue::Discipline;
use crate::rate::RateModel;
use crate::spec::PathSpec;
use crate::spec::named::per_round_trip;

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rate {
            None => f.write_str("unlimited rate")?,
            Some(rate) => Shown(rate).fmt(f)?,
        }
        if let Some(rate) = &self.up_rate {
            write!(f, " down, {} up", Shown(rate))?;
        }
        write!(f, ", RTT {}", milliseconds(self.rtt))?;
        self.show_jitter(f)?;
        self.show_loss(f)?;
        if self.reordering.probability > 0.0 {
            let late = milliseconds(self.reordering.extra_delay);
            write!(f, ", {} reordered by {late}", percent(self.reordering.probability))?;
        }
        for (probability, what) in [(self.duplication, "duplicated"), (self.corruption, "corrupted")] {
            if probability > 0.0 {
                write!(f, ", {} {what}", percent(probability))?;
            }
        }
        if let Some(outage) = self.outage {
            let (start, length) = (outage.start.as_secs_f64(), outage.length.as_secs_f64());
            write!(f, ", nothing from {start} s on for {length} s")?;
        }
        self.show_radio(f)?;
        self.show_queue(f)
    }
}

impl PathSpec {
    fn show_jitter(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(jitter) = self.jitter else { return Ok(()) };
        let shape = match jitter.distribution {
            Distribution::Normal => "normal",
            Distribution::Pareto => "Pareto",
            Distribution::Wifi => "Wi-Fi",
        };
        write!(f, " (std {}, {shape})", milliseconds(per_round_trip(jitter.deviation)))
    }

    fn show_loss(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up_loss = self.up_loss.unwrap_or(self.loss);
        write!(f, ", loss {}", percent(self.loss))?;
        if percent(up_loss) != percent(self.loss) {
            write!(f, " down, {} up", percent(up_loss))?;
        }
        match (self.burst, self.burst_time) {
            _ if self.loss <= 0.0 && up_loss <= 0.0 => Ok(()),
            (Some(burst), _) => write!(f, " in bursts of {burst}"),
            (None, Some(time)) => write!(f, " in bursts of {}", milliseconds(time)),
            (None, None) => Ok(()),
        }
    }

    fn show_radio(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Aggregation { packets, time }) = self.aggregation {
            write!(f, ", up to {packets} packets or {} at once", milliseconds(time))?;
        }
        if let Some(frames) = self.frames {
            write!(f, ", blocks of {}", milliseconds(frames.interval))?;
            if frames.failure > 0.0 {
                write!(f, ", {} of them {} late", percent(frames.failure), milliseconds(frames.repeat))?;
            }
        }
        if let Some(Handover { interval, delay, gap }) = self.handover {
            let (interval, delay) = (interval.as_secs_f64(), milliseconds(delay * 2));
            write!(
                f,
                ", another route each {interval} s (up to {delay} more, a gap of {})",
                milliseconds(gap)
            )?;
        }
        if !self.batch.is_zero() {
            write!(f, ", taken in each {}", milliseconds(self.batch))?;
        }
        if let Some(Pauses { every, mean, packet }) = self.pauses {
            write!(f, ", a client that pauses for {} each {}", milliseconds(mean), milliseconds(every))?;
            if !packet.is_zero() {
                write!(f, " and takes {} for a packet", milliseconds(packet))?;
            }
        }
        Ok(())
    }

    fn show_queue(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rate) = self.down_rate() else { return Ok(()) };
        write!(f, ", queue {}", short(self.queue.bytes(rate, self.rtt)))?;
        match self.discipline {
            Discipline::DropTail(drop_tail) => {
                f.write_str(" drop-tail")?;
                drop_tail
                    .mark_above
                    .map_or(Ok(()), |threshold| write!(f, " marking above {}", short(threshold)))
            }
            Discipline::CoDel(codel) => f.write_str(if codel.ecn { " CoDel with ECN" } else { " CoDel" }),
        }
    }
}

struct Shown<'a>(&'a RateModel);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RateModel::Constant(rate) => short(*rate).fmt(f),
            RateModel::Normal(normal) => {
                write!(f, "{} (std {})", short(normal.mean), short(normal.deviation))
            }
            RateModel::Opportunities(_) | RateModel::Steps(_) => {
                write!(f, "trace of {}", short(self.0.mean()))
            }
        }
    }
}

/// A rate or a size: `10 Mbit/s`, not `10.0 Mbit/s`.
fn short(quantity: impl fmt::Display) -> String {
    let text = quantity.to_string();
    let Some((number, unit)) = text.split_once(' ') else { return text };
    format!("{} {unit}", trimmed(number))
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

fn milliseconds(span: Duration) -> String {
    format!("{} ms", trimmed(&format!("{:.2}", span.as_millis_f64())))
}

fn percent(probability: f64) -> String {
    format!("{} %", trimmed(&format!("{:.2}", probability * 100.0)))
}

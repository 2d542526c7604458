//! Recorded capacity, from text.
//!
//! Two formats, both repeated for ever, both beginning at the clock's epoch. Blank lines and lines that begin with
//! `#` are skipped.
//! - Mahimahi's: each line is a time in whole milliseconds, not less than the line before it, at which 1500 bytes
//!   can leave. The last line is the trace's length too.
//! - CSV: lines of `seconds,bits_per_second`, the first at zero seconds, each rate holding until the next line's
//!   time; the last one holds as long as the one before it. A first line with these two words is a header.

use std::fmt::Write as _;

use posthaste_units::{ByteCount, Duration, Rate};

use crate::rate::segments::UNITS;

/// Lines at most: a gigabit a second for 100 s in Mahimahi's format, or 32 MB of memory.
pub const MAX_TRACE_LINES: usize = 8_000_000;

/// What can leave at one stamp of a Mahimahi trace.
pub const OPPORTUNITY: ByteCount = ByteCount::new(1500);

/// The CSV format's first line.
const HEADER: &str = "seconds,bits_per_second";

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("trace line {line}: {fault}")]
pub struct TraceError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub fault: String,
}

/// A recorded capacity of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Trace {
    /// Mahimahi's format.
    Opportunities(OpportunityTrace),
    /// CSV.
    Steps(RateTrace),
}

/// Stamps at which 1500 bytes can leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpportunityTrace {
    /// Milliseconds, in order, the last one above zero.
    stamps: Vec<u32>,
}

/// Rates over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateTrace {
    /// When each rate begins; the first is zero. One more than `rates`: the last is the trace's length.
    times: Vec<Duration>,
    rates: Vec<Rate>,
    /// Work of one cycle, in billionths of a byte; above zero.
    work: u128,
}

impl Trace {
    /// Reads either format; a comma in the first line that counts makes it CSV.
    ///
    /// # Errors
    /// Names the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let is_csv = lines(text).next().is_some_and(|(_, line)| line.contains(','));
        if is_csv {
            RateTrace::parse(text).map(Self::Steps)
        } else {
            OpportunityTrace::parse(text).map(Self::Opportunities)
        }
    }
}

/// The lines that count, trimmed, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn error(line: usize, fault: impl Into<String>) -> TraceError {
    TraceError { line, fault: fault.into() }
}

/// At most so much of a faulty line is shown.
fn shown(text: &str) -> String {
    format!("`{}`", text.chars().take(40).collect::<String>())
}

fn check_count(count: usize, line: usize) -> Result<(), TraceError> {
    if count < MAX_TRACE_LINES {
        Ok(())
    } else {
        Err(error(line, format!("more than {MAX_TRACE_LINES} lines")))
    }
}

impl OpportunityTrace {
    /// Reads Mahimahi's format.
    ///
    /// # Errors
    /// Names the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut stamps: Vec<u32> = Vec::new();
        let mut last_line = 1;
        for (number, line) in lines(text) {
            check_count(stamps.len(), number)?;
            let stamp = line.parse().map_err(|_| {
                error(
                    number,
                    format!("{} is not a time in whole milliseconds (up to {})", shown(line), u32::MAX),
                )
            })?;
            if let Some(&before) = stamps.last().filter(|&&before| before > stamp) {
                return Err(error(number, format!("{stamp} ms is earlier than {before} ms before it")));
            }
            stamps.push(stamp);
            last_line = number;
        }
        match stamps.last() {
            None => Err(error(last_line, "no times: one millisecond stamp a line is needed")),
            Some(0) => Err(error(last_line, "the last time is the trace's length, so it must be above zero")),
            Some(_) => Ok(Self { stamps }),
        }
    }

    /// A trace of these stamps, which are in order, the last one above zero.
    pub(crate) fn from_stamps(stamps: Vec<u32>) -> Self {
        debug_assert!(stamps.is_sorted() && stamps.last().is_some_and(|&last| last > 0));
        Self { stamps }
    }

    /// How many stamps a cycle has.
    pub fn count(&self) -> usize {
        self.stamps.len()
    }

    /// How long a cycle is.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(u64::from(self.stamps.last().copied().unwrap_or(1)))
    }

    /// 1500 bytes a stamp, over the length of a cycle.
    pub fn mean_rate(&self) -> Rate {
        Rate::from_transfer(OPPORTUNITY * self.stamps.len() as u64, self.duration())
    }

    /// The trace as [`Self::parse`] reads it.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for stamp in &self.stamps {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{stamp}");
        }
        text
    }

    /// The time of a stamp within its cycle.
    pub(crate) fn stamp(&self, index: usize) -> Duration {
        Duration::from_millis(u64::from(self.stamps[index]))
    }

    /// Index of the first stamp later than `phase`, [`Self::count`] if there is none.
    pub(crate) fn first_after(&self, phase: Duration) -> usize {
        self.stamps.partition_point(|&stamp| Duration::from_millis(u64::from(stamp)) <= phase)
    }
}

impl RateTrace {
    /// Reads the CSV format.
    ///
    /// # Errors
    /// Names the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let (mut times, mut rates): (Vec<Duration>, Vec<Rate>) = (Vec::new(), Vec::new());
        let mut last_line = 1;
        for (number, line) in lines(text).skip_while(|(_, line)| line.replace(' ', "") == HEADER) {
            check_count(rates.len(), number)?;
            let (time, rate) = parse_step(line).map_err(|fault| error(number, fault))?;
            match times.last() {
                None if !time.is_zero() => {
                    return Err(error(number, "the first rate must begin at 0 seconds"));
                }
                Some(&before) if time <= before => {
                    return Err(error(number, format!("{time} is not later than {before} before it")));
                }
                _ => {}
            }
            times.push(time);
            rates.push(rate);
            last_line = number;
        }
        let Some(&last) = times.last() else {
            return Err(error(last_line, format!("no rates: lines of {HEADER} are needed")));
        };
        // A single rate is constant: any length does.
        let before = if times.len() < 2 { None } else { times.get(times.len() - 2) };
        times.push(before.map_or(Duration::from_secs(1), |&before| last + last.saturating_sub(before)));
        let work = work(&times, &rates);
        if work == 0 {
            Err(error(last_line, "at least one rate must be above zero"))
        } else {
            Ok(Self { times, rates, work })
        }
    }

    /// A trace of rates in bits a second, each for so many milliseconds; one is above zero.
    pub(crate) fn from_steps(millis: u64, rates: impl Iterator<Item = u64>) -> Self {
        let rates: Vec<Rate> = rates.map(Rate::from_bits_per_second).collect();
        let times: Vec<Duration> =
            (0..=rates.len() as u64).map(|step| Duration::from_millis(step * millis)).collect();
        let work = work(&times, &rates);
        debug_assert!(work > 0);
        Self { times, rates, work }
    }

    /// How long a cycle is.
    pub fn duration(&self) -> Duration {
        self.times.last().copied().unwrap_or(Duration::MAX)
    }

    /// The mean over a cycle, rounded up to whole bytes a second.
    pub fn mean_rate(&self) -> Rate {
        let rate = self.work.div_ceil(u128::from(self.duration().as_nanos()));
        Rate::from_bytes_per_second(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// The trace as [`Self::parse`] reads it.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (time, rate) in self.times.iter().zip(&self.rates) {
            let (seconds, nanos) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
            let _ = writeln!(text, "{seconds}.{nanos:09},{}", rate.as_bits_per_second());
        }
        text
    }

    /// Work of a cycle, in billionths of a byte.
    pub(crate) fn work(&self) -> u128 {
        self.work
    }

    /// Index of the step that holds at `phase`, tried first from `guess` on.
    pub(crate) fn step_at(&self, phase: Duration, guess: usize) -> usize {
        let holds = |step: usize| {
            matches!((self.times.get(step), self.times.get(step + 1)),
                     (Some(&begin), Some(&end)) if begin <= phase && phase < end)
        };
        if holds(guess) {
            return guess;
        }
        if holds(guess + 1) {
            return guess + 1;
        }
        self.times.partition_point(|&begin| begin <= phase).saturating_sub(1).min(self.rates.len() - 1)
    }

    /// A step's rate and when in the cycle it ends.
    pub(crate) fn step(&self, step: usize) -> (Rate, Duration) {
        (self.rates[step], self.times[step + 1])
    }
}

/// A CSV line.
fn parse_step(line: &str) -> Result<(Duration, Rate), String> {
    let mut fields = line.split(',').map(str::trim);
    let (Some(seconds), Some(bits), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err(format!("{} is not `{HEADER}`", shown(line)));
    };
    let number = |text: &str, most: f64, what: &str| {
        let number = text.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
        number.ok_or_else(|| format!("{} is not {what} from 0 to {most}", shown(text)))
    };
    // A month is exact to the nanosecond in a real; a terabit a second is enough for anybody.
    let seconds = number(seconds, 2_592_000.0, "a time in seconds")?;
    let bits = number(bits, 1e12, "a rate in bits a second")?;
    Ok((Duration::from_secs_f64(seconds), Rate::from_bytes_per_second((bits / 8.0 + 0.5) as u64)))
}

fn work(times: &[Duration], rates: &[Rate]) -> u128 {
    let spans = times.windows(2).map(|pair| u128::from(pair[1].saturating_sub(pair[0]).as_nanos()));
    rates.iter().zip(spans).map(|(rate, span)| u128::from(rate.as_bytes_per_second()) * span).sum()
}

const _: () = assert!(UNITS == 1_000_000_000, "a byte a second does one unit of work each nanosecond");

#[cfg(test)]
mod tests;

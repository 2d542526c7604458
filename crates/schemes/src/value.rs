//! Values of a profile's TOML, read and checked where they stand, so that an error can name the line.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::congestion::cubic::MOST_FLOWS;
use posthaste_units::{ByteCount, Duration, Rate};
use serde::Deserializer;
use serde::de::{Deserialize, Error, Visitor};

/// Windows below this cannot take one datagram.
const LEAST_WINDOW: ByteCount = ByteCount::new(1024);
/// Windows above this are a typing error rather than a wish.
const GREATEST_WINDOW: ByteCount = ByteCount::new(4 << 30);
/// The longest ack delay that makes sense: RFC 9002's first RTT estimate is a third of it.
const GREATEST_ACK_DELAY: Duration = Duration::from_secs(1);
/// Guaranteed rates below this are not worth a promise: a datagram takes a second.
const LEAST_MIN_RATE: Rate = Rate::from_bits_per_second(10_000);
/// Guaranteed rates above this are a typing error rather than a promise: no connection could keep up.
const GREATEST_MIN_RATE: Rate = Rate::from_bits_per_second(100_000_000_000);

/// What a path was a week ago says nothing of it.
const GREATEST_LIFETIME_MINUTES: u64 = 7 * 24 * 60;

/// Refuses a value outside `range`.
fn within<T: PartialOrd + Display, E: Error>(value: T, range: &RangeInclusive<T>) -> Result<T, E> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(E::custom(format_args!("{value} is out of range: from {} to {}", range.start(), range.end())))
    }
}

/// Datagrams of an initial window.
pub(crate) fn initial_datagrams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    within(u64::deserialize(deserializer)?, &(2..=1000)).map(Some)
}

/// A bound on the datagrams that one ack may add.
pub(crate) fn datagram_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    within(u64::deserialize(deserializer)?, &(1..=1_000_000)).map(Some)
}

/// A guaranteed rate: a text such as "1 Mbit/s".
pub(crate) fn min_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
    let rate = Rate::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)?;
    within(rate, &(LEAST_MIN_RATE..=GREATEST_MIN_RATE)).map(Some)
}

/// A rate from [`LEAST_MIN_RATE`] to [`GREATEST_MIN_RATE`]: a text such as "24 Mbit/s".
pub(crate) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
    let rate = Rate::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)?;
    within(rate, &(LEAST_MIN_RATE..=GREATEST_MIN_RATE))
}

/// Datagrams of a flight: 2 to 1,000.
pub(crate) fn datagrams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(u64::deserialize(deserializer)?, &(2..=1000))
}

/// A part of a whole: above 0, at most 1.
pub(crate) fn part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    real_above_zero(deserializer, 1.0, true)
}

/// A multiple: 1 to 1,000.
pub(crate) fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(u64::deserialize(deserializer)?, &(1..=1000))
}

/// Acks without loss that end the wireless mode of a guaranteed rate.
pub(crate) fn clean_acks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(u32::deserialize(deserializer)?, &(1..=1000))
}

/// Packets that may wait for one ack.
pub(crate) fn ack_packets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(u32::deserialize(deserializer)?, &(1..=256))
}

/// Datagrams by which a window moves in a step.
pub(crate) fn step_datagrams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(u64::deserialize(deserializer)?, &(0..=1000))
}

/// Round trips of demand in a receive window: with less than two, a sender in its startup waits for credit.
pub(crate) fn room<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(u64::deserialize(deserializer)?, &(2..=16))
}

/// Bytes that the window updates in one packet may take: the least has room for the longest of each kind.
pub(crate) fn update_field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    within(u64::deserialize(deserializer)?, &(26..=1000)).map(Some)
}

/// The update that may first enlarge a window: 1 to 8.
pub(crate) fn first_growth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(u32::deserialize(deserializer)?, &(1..=8))
}

/// Factors of growth, each 1 to 1,000.
pub(crate) fn factors<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u64; 4], D::Error> {
    let factors = <[u64; 4]>::deserialize(deserializer)?;
    factors.iter().try_for_each(|factor| within(*factor, &(1..=1000)).map(drop))?;
    Ok(factors)
}

/// Parts of a bound in per cent, ascending from 1 to 100.
pub(crate) fn thresholds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u64; 3], D::Error> {
    let thresholds = <[u64; 3]>::deserialize(deserializer)?;
    thresholds.iter().try_for_each(|part| within(*part, &(1..=100)).map(drop))?;
    if thresholds.is_sorted() {
        return Ok(thresholds);
    }
    Err(D::Error::custom("thresholds must ascend: [25, 50, 75]"))
}

/// A real strictly between 0 and 1.
pub(crate) fn fraction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    real_above_zero(deserializer, 1.0, false)
}

/// Flows that one connection stands for: 1 to 64.
pub(crate) fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(u32::deserialize(deserializer)?, &(1..=MOST_FLOWS))
}

/// Loss that is tolerated: 0 to 0.2.
pub(crate) fn tolerated_loss<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(f64::deserialize(deserializer)?, &(0.0..=0.2))
}

/// CUBIC's C: above 0, at most 10.
pub(crate) fn steepness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    real_above_zero(deserializer, 10.0, true)
}

fn real_above_zero<'de, D: Deserializer<'de>>(
    deserializer: D,
    bound: f64,
    includes_bound: bool,
) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    // NaN fails every comparison and is refused with the rest.
    if value > 0.0 && (value < bound || (includes_bound && value <= bound)) {
        return Ok(value);
    }
    let end = if includes_bound { "at most" } else { "below" };
    Err(D::Error::custom(format_args!("{value} is out of range: above 0, {end} {bound}")))
}

/// A receive window: a text with a unit, or an integer of bytes.
pub(crate) fn window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
    let bytes = deserializer.deserialize_any(Bytes)?;
    if (LEAST_WINDOW..=GREATEST_WINDOW).contains(&bytes) {
        return Ok(bytes);
    }
    let (least, greatest) = (show_bytes(LEAST_WINDOW), show_bytes(GREATEST_WINDOW));
    let bytes = show_bytes(bytes);
    Err(D::Error::custom(format_args!("{bytes} is out of range: from {least} to {greatest}")))
}

/// The same where there may be none.
pub(crate) fn some_window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteCount>, D::Error> {
    window(deserializer).map(Some)
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = ByteCount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"64 KiB\" or \"1 MiB\", or a number of bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ByteCount, E> {
        ByteCount::from_str(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<ByteCount, E> {
        u64::try_from(count).map(ByteCount::new).map_err(|_| E::custom("a size is never negative"))
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<ByteCount, E> {
        Ok(ByteCount::new(count))
    }
}

/// Bits of an IPv4 address.
pub(crate) fn ipv4_prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(u8::deserialize(deserializer)?, &(0..=32))
}

/// Bits of an IPv6 address.
pub(crate) fn ipv6_prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(u8::deserialize(deserializer)?, &(0..=128))
}

/// A text such as `"60 min"`: how long what was measured of a path is good for.
pub(crate) fn lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.strip_suffix("min").map(str::trim).and_then(|number| number.parse().ok());
    let Some(minutes) = number else {
        return Err(D::Error::custom(format_args!(
            "`{text}` is not valid here: write whole minutes, such as \"60 min\""
        )));
    };
    within(minutes, &(1..=GREATEST_LIFETIME_MINUTES)).map(|minutes| Duration::from_secs(minutes * 60))
}

/// A text such as `"25 ms"`: whole milliseconds, which is what `max_ack_delay` carries.
pub(crate) fn ack_delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.strip_suffix("ms").map(str::trim).and_then(|number| number.parse().ok());
    let Some(milliseconds) = number else {
        return Err(D::Error::custom(format_args!(
            "`{text}` is not valid here: write whole milliseconds, such as \"25 ms\""
        )));
    };
    within(milliseconds, &(0..=GREATEST_ACK_DELAY.as_millis())).map(Duration::from_millis)
}

/// A text such as `"1/16"`, or `"0"`: a share of at most one, as numerator and denominator.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(u32, u32), D::Error> {
    let text = String::deserialize(deserializer)?;
    let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
    match (numerator.trim().parse(), denominator.trim().parse()) {
        (Ok(numerator), Ok(denominator)) if denominator > 0 && numerator <= denominator => {
            Ok((numerator, denominator))
        }
        _ => Err(D::Error::custom(format_args!(
            "`{text}` is not valid here: write a share of at most one, such as \"1/16\", or \"0\""
        ))),
    }
}

/// Transmissions of one retransmission, the first included.
pub(crate) fn transmissions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(u8::deserialize(deserializer)?, &(1..=4))
}

/// Answers to probes of a client that lacks the server's flight.
pub(crate) fn handshake_answers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(u8::deserialize(deserializer)?, &(0..=4))
}

/// Packets that may be copied whatever has been sent.
pub(crate) fn copied_packets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(u64::deserialize(deserializer)?, &(0..=256))
}

/// A size in the largest binary unit that divides it, readable back as a TOML value.
pub(crate) fn show_bytes(bytes: ByteCount) -> String {
    let count = bytes.get();
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if count >> shift != 0 && count.trailing_zeros() >= shift {
            return format!("{} {unit}", count >> shift);
        }
    }
    format!("{count} B")
}

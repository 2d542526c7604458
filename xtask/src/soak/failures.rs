//! Clients of the edge that did not get what they came for, and which of them an application's restart excuses.

use std::collections::BTreeMap;

use crate::Result;

/// When an application was down: killed, and ready again, in milliseconds since 1970.
pub(super) type Outage = [u64; 2];

/// What clients printed (`crates/proxy/examples/edge_crowd`).
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: u64,
    /// Clients that got what they came for, by version of HTTP.
    pub(super) did: BTreeMap<String, u64>,
    failures: Vec<Failure>,
}

#[derive(Debug, PartialEq, Eq)]
struct Failure {
    version: String,
    conduct: String,
    step: String,
    /// When the request began and failed, in milliseconds since 1970.
    time: [u64; 2],
    why: String,
}

/// How failures divide.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Those that happened while an application was down, by step.
    pub(super) excused: BTreeMap<String, u64>,
    /// All others, as text.
    pub(super) faults: Vec<String>,
}

impl Tally {
    /// Adds what a program has printed.
    ///
    /// # Errors
    /// It did not come to its end.
    pub(super) fn read(&mut self, output: &str) -> Result<()> {
        let mut has_ended = false;
        for line in output.lines() {
            let words: Vec<&str> = line.splitn(7, ' ').collect();
            match words[..] {
                ["failed", version, conduct, step, began, ended, why] => self.failures.push(Failure {
                    version: version.to_owned(),
                    conduct: conduct.to_owned(),
                    step: step.to_owned(),
                    time: [began.parse()?, ended.parse()?],
                    why: why.to_owned(),
                }),
                ["did", version, _, count] => {
                    *self.did.entry(version.to_owned()).or_default() += count.parse::<u64>()?;
                }
                ["requests", count] => {
                    self.requests += count.parse::<u64>()?;
                    has_ended = true;
                }
                _ => return Err(format!("clients said {line:?}").into()),
            }
        }
        if has_ended { Ok(()) } else { Err("the clients have not said how it went".into()) }
    }

    /// Which failures the outages explain.
    pub(super) fn judge(&self, outages: &[Outage]) -> Judged {
        let mut judged = Judged::default();
        for failure in &self.failures {
            if failure.is_excused(outages) {
                *judged.excused.entry(failure.step.clone()).or_default() += 1;
            } else {
                let Failure { version, conduct, step, time: [began, ended], why } = failure;
                let took = ended - began;
                let when = if failure.is_within(outages) { ", an application was down" } else { "" };
                judged.faults.push(format!("{version} {conduct}, {step}, after {took} ms{when}: {why}"));
            }
        }
        judged
    }
}

impl Failure {
    /// True if an application was down meanwhile, and the edge could not help: it asks the other application for what has no
    /// response yet, but sends an upload once, and cannot finish what another has begun. Over HTTP/3 the reset of a response
    /// that had begun may overtake its head; a request that the edge did not get answered has a status instead. It never
    /// may pass wrong bytes.
    fn is_excused(&self, outages: &[Outage]) -> bool {
        let is_reset = self.version == "h3" && self.why.contains("server reset the response");
        let is_beyond_help = is_reset || matches!(self.step.as_str(), "Body" | "Upload" | "Tunnel");
        let is_wrong = self.why.contains("WRONG") || self.why.contains("HANGS");
        is_beyond_help && self.is_within(outages) && !is_wrong
    }

    /// An application was down at some time between the request and its failure.
    fn is_within(&self, outages: &[Outage]) -> bool {
        let [began, ended] = self.time;
        outages.iter().any(|[killed, ready]| began <= *ready && *killed <= ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_excuses_what_it_cut_off_and_nothing_else() {
        let mut tally = Tally::default();
        let lines = [
            "failed h2 Reads Body 100 200 broke off",
            "failed h3 Uploads Upload 290 310 status 502",
            "failed h1 Reads Head 210 220 status 502",
            "failed h1 Reads Body 301 400 broke off",
            "failed h1 Reads Body 100 199 broke off",
            "failed h3 Talks Tunnel 210 220 WRONG byte at 7",
            "failed h3 Reads Head 210 220 the server reset the response (H3_INTERNAL_ERROR)",
            "did h2 Reads 7",
            "did h2 Talks 2",
            "requests 30",
        ];
        tally.read(&lines.join("\n")).expect("all lines");
        assert_eq!((tally.requests, tally.did["h2"]), (30, 9));
        let judged = tally.judge(&[[200, 300]]);
        let excused = ["Body", "Head", "Upload"].map(|step| (step.to_owned(), 1));
        assert_eq!(judged.excused, BTreeMap::from(excused));
        let faults = [
            "h1 Reads, Head, after 10 ms, an application was down: status 502",
            "h1 Reads, Body, after 99 ms: broke off",
            "h1 Reads, Body, after 99 ms: broke off",
            "h3 Talks, Tunnel, after 10 ms, an application was down: WRONG byte at 7",
        ];
        assert_eq!(judged.faults, faults);
        assert_eq!(tally.judge(&[]).faults.len(), 7);
        assert!(tally.read("did h1 Reads 1").is_err(), "no end");
    }
}

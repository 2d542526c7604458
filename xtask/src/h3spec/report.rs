//! What h3spec prints, as results of cases.

use crate::Result;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The server closed the connection with the right error.
    Passed,
    /// It did not.
    Failed,
    /// h3spec could not do it with this server; it counts such a case as passed, we do not.
    Skipped,
}

impl Verdict {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "not possible",
        }
    }
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    /// What the server must do, with the section that says so.
    pub(super) name: String,
    pub(super) verdict: Verdict,
    /// Why it failed, in h3spec's words.
    pub(super) reason: String,
}

impl Case {
    /// The test itself came to grief: its client stood still from the beginning of the handshake, could not send, or
    /// ended its own control stream before it had read the answer (which the server must punish with the code that is
    /// then seen instead, RFC 9114 section 6.2.1). That happens on a busy machine, whoever the server is, and says
    /// nothing about it unless it happens again.
    pub(super) fn is_inconclusive(&self) -> bool {
        self.verdict == Verdict::Failed
            && ["ConnectionIsTimeout", "IOException", "H3ClosedCriticalStream"]
                .iter()
                .any(|fault| self.reason.contains(fault))
    }
}

/// All cases of a run, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) cases: Vec<Case>,
}

impl Report {
    /// Reads the output of a run.
    ///
    /// # Errors
    /// Its summary is missing or does not fit the cases.
    pub(super) fn parse(output: &str) -> Result<Self> {
        let mut cases = Vec::new();
        let mut is_skipped = false;
        for line in output.lines() {
            if line == "Failures:" || line.starts_with("Finished in ") {
                break;
            }
            // A warning precedes the case that it is about.
            is_skipped |= line.contains("Skipping this test");
            let Some(name) = line.strip_prefix("  ").filter(|name| name.contains("MUST")) else { continue };
            let (name, number) =
                name.rsplit_once(" FAILED [").map_or((name, None), |(name, number)| (name, Some(number)));
            let verdict = match (number, std::mem::take(&mut is_skipped)) {
                (Some(_), _) => Verdict::Failed,
                (None, true) => Verdict::Skipped,
                (None, false) => Verdict::Passed,
            };
            let number = number.and_then(|number| number.trim_end().strip_suffix(']'));
            let reason = number.map(|number| reason(output, number)).unwrap_or_default();
            cases.push(Case { name: name.trim().to_owned(), verdict, reason });
        }
        let report = Self { cases };
        let summary = output.lines().find_map(summary).ok_or("h3spec printed no summary")?;
        let seen = (report.cases.len(), report.count(Verdict::Failed));
        if summary != seen {
            return Err(format!("h3spec counts {summary:?} cases and failures, its lines {seen:?}").into());
        }
        Ok(report)
    }

    /// How many cases ended so.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }
}

/// What stands below the title of the failure with this number.
fn reason(output: &str, number: &str) -> String {
    let title = format!("  {number}) ");
    let below = output.lines().skip_while(|line| !line.starts_with(&title)).skip(1);
    let lines: Vec<&str> = below.map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// `45 examples, 0 failures`.
fn summary(line: &str) -> Option<(usize, usize)> {
    let (examples, failures) = line.split_once(" example")?;
    let (_, failures) = failures.split_once(", ")?;
    let (failures, _) = failures.split_once(" failure")?;
    Some((examples.parse().ok()?, failures.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
QUIC servers
  MUST send A if a frame is wrong [Transport 12.4] FAILED [1]
Warning: 0-RTT is not possible. Skipping this test. Use \"h3spec -s 0-RTT\" next time.
  MUST send B if CRYPTO in 0-RTT is received [TLS 8.3]
HTTP/3 servers
  MUST send C if DATA is received before HEADERS [HTTP/3 4.1]

Failures:

  TransportError.hs:64:13:
  1) QUIC servers MUST send A if a frame is wrong [Transport 12.4]
       did not get expected exception: QUICException

Finished in 4.2034 seconds
3 examples, 1 failure
";

    #[test]
    fn cases_are_read_with_their_ends() {
        let report = Report::parse(OUTPUT).unwrap();
        let verdicts: Vec<Verdict> = report.cases.iter().map(|case| case.verdict).collect();
        assert_eq!(verdicts, [Verdict::Failed, Verdict::Skipped, Verdict::Passed]);
        assert_eq!(report.cases[0].name, "MUST send A if a frame is wrong [Transport 12.4]");
    }

    #[test]
    fn only_faults_of_the_test_itself_are_inconclusive() {
        let report = Report::parse(OUTPUT).unwrap();
        assert_eq!(report.cases[0].reason, "did not get expected exception: QUICException");
        assert!(!report.cases.iter().any(Case::is_inconclusive));
        let output = OUTPUT
            .replace("did not get expected exception: QUICException", "QUICException (ConnectionIsTimeout)");
        let report = Report::parse(&output).unwrap();
        let inconclusive: Vec<bool> = report.cases.iter().map(Case::is_inconclusive).collect();
        assert_eq!(inconclusive, [true, false, false]);
    }

    #[test]
    fn a_run_that_was_cut_off_or_does_not_add_up_is_no_report() {
        let (cut, _) = OUTPUT.split_once("Finished").unwrap();
        assert!(Report::parse(cut).is_err());
        assert!(Report::parse(&OUTPUT.replace("3 examples", "4 examples")).is_err());
        assert!(Report::parse(&OUTPUT.replace("1 failure", "0 failures")).is_err());
    }
}

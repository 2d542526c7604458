//! The figures as tables.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::meeting::Conditions;
use super::standing::Standing;
use crate::Result;
use crate::bench::median;

/// One row a cell.
pub(super) fn table(standings: &[Standing]) -> String {
    let mut text = String::from(
        "| profile | beside | rate, Mbit/s | queue, BDP | profile, Mbit/s | a kernel flow, Mbit/s | beside CUBIC instead \
         | share | Jain | harm | runs | lateness, p99 |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for standing in standings {
        let Standing { cell, contender, kernel, kernel_alone, share, jain, harm, runs, lateness } = standing;
        let _ = writeln!(
            text,
            "| {} | {} x {} | {} | {} | {:.2} | {:.2} | {:.2} | {share:.2} | {jain:.3} | {:+.0} % | {runs} | {:.2} ms |",
            cell.contender,
            cell.flows,
            cell.rival.name(),
            cell.megabits,
            cell.buffer,
            contender / 1e6,
            kernel / 1e6,
            kernel_alone / 1e6,
            harm * 100.0,
            lateness * 1e3,
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// One row for each profile, controller and number of flows.
fn overview(standings: &[Standing]) -> String {
    let mut text = String::from(
        "| profile | beside | share, median (least to greatest) | Jain, least | harm, median (greatest) | cells |\n\
         |---|---|---|---|---|---|\n",
    );
    let groups: BTreeSet<_> = standings
        .iter()
        .map(|standing| (standing.cell.contender.clone(), standing.cell.rival, standing.cell.flows))
        .collect();
    for (contender, rival, flows) in groups {
        let members: Vec<&Standing> = standings
            .iter()
            .filter(|standing| {
                let cell = &standing.cell;
                cell.contender == contender && cell.rival == rival && cell.flows == flows
            })
            .collect();
        let figures = |figure: fn(&Standing) -> f64| members.iter().map(move |standing| figure(standing));
        let (share, harm) = (figures(|standing| standing.share), figures(|standing| standing.harm));
        let _ = writeln!(
            text,
            "| {contender} | {flows} x {} | {:.2} ({:.2} to {:.2}) | {:.3} | {:+.0} % ({:+.0} %) | {} |",
            rival.name(),
            median(share.clone()),
            share.clone().fold(f64::INFINITY, f64::min),
            share.fold(0.0, f64::max),
            figures(|standing| standing.jain).fold(f64::INFINITY, f64::min),
            median(harm.clone()) * 100.0,
            harm.fold(f64::NEG_INFINITY, f64::max) * 100.0,
            members.len(),
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// The whole page.
pub(super) fn page(standings: &[Standing], conditions: &Conditions, command: &str) -> Result<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let version = kernel.split('-').next().unwrap_or_default().trim();
    let date = String::from_utf8(std::process::Command::new("date").args(["-u", "+%F"]).output()?.stdout)?;
    let Conditions { rtt, warm_up, seconds } = conditions;
    let (overview, table) = (overview(standings), table(standings));
    Ok(format!(
        "# Posthaste beside the kernel's TCP\n\
         <!-- Written by `{command}`; do not edit. -->\n\
         One download by `posthaste get` from `posthaste serve` shares a bottleneck (`posthaste emulate`, drop-tail, {rtt} ms \
         there and back)\nwith downloads by the kernel's TCP (Linux {version}). All begin at once; {seconds} s are counted \
         after {warm_up} s, as programs read them. {date}\n\
         - **share**: the profile's part of all goodput, as a multiple of its fair part: 1 is fair, above it takes more.\n\
         - **Jain**: the index over all flows; 1 if all are equal.\n\
         - **harm**: what a kernel flow loses, as part of what it has beside one more kernel CUBIC flow in the profile's \
         place; below zero it gains.\n\
         - **lateness**: of the emulator's packets, in the worst run of the cell or its baseline. Runs beyond 1 ms, or with \
         packets dropped outside the\n  model, are void and made again.\n\n\
         Published as found: no run that was valid is left out.\n\n\
         ## In short\n{overview}\n\n## Cell by cell\n{table}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::cells::{Cell, Contender, Rival};
    use super::*;

    #[test]
    fn the_page_has_a_row_for_each_cell_and_each_group() {
        let standing = |megabits, share| Standing {
            cell: Cell {
                contender: Contender::Profile("standard".to_owned()),
                rival: Rival::Bbr,
                flows: 4,
                megabits,
                buffer: 0.25,
            },
            runs: 2,
            contender: 2e6,
            kernel: 1.5e6,
            kernel_alone: 1.25e6,
            share,
            jain: 0.9,
            harm: -0.2,
            lateness: 2e-4,
        };
        let conditions = Conditions { rtt: 40.0, warm_up: 5.0, seconds: 20.0 };
        let page = page(&[standing(10.0, 0.5), standing(100.0, 1.5)], &conditions, "the command").unwrap();
        assert!(page.contains("Written by `the command`"), "{page}");
        let row =
            "| standard | 4 x bbr | 10 | 0.25 | 2.00 | 1.50 | 1.25 | 0.50 | 0.900 | -20 % | 2 | 0.20 ms |";
        assert!(page.contains(row), "{page}");
        let group = "| standard | 4 x bbr | 1.00 (0.50 to 1.50) | 0.900 | -20 % (-20 %) | 2 |";
        assert!(page.contains(group), "{page}");
    }
}

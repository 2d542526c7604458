//! Every policy that a profile can name: a line for each.

use posthaste_policy::Seam;

use crate::entry::Entry;
use crate::{ack, congestion, credit, group, repair, silence, slow_start, start};

/// The policies, by seam; within a seam in the order in which messages list them.
pub const ENTRIES: &[Entry] = &[
    start::initial::ENTRY,
    start::careful::ENTRY,
    start::history::ENTRY,
    start::measured::ENTRY,
    slow_start::classic::ENTRY,
    slow_start::hybrid::ENTRY,
    slow_start::hystart_pp::ENTRY,
    congestion::newreno::ENTRY,
    congestion::cubic::ENTRY,
    congestion::bbr1::ENTRY,
    congestion::bbr3::ENTRY,
    congestion::guaranteed::ENTRY,
    congestion::mobile::ENTRY,
    silence::collapse::ENTRY,
    silence::freeze::ENTRY,
    credit::fixed::ENTRY,
    credit::improved::ENTRY,
    credit::autotune::ENTRY,
    credit::demand::ENTRY,
    credit::fast::ENTRY,
    credit::on_ack::ENTRY,
    ack::standard::ENTRY,
    ack::frequency::ENTRY,
    repair::none::ENTRY,
    repair::tail::ENTRY,
    group::plain::ENTRY,
    group::coordinated::ENTRY,
    group::ensemble::ENTRY,
    group::joint::ENTRY,
];

/// The policies of a seam.
pub fn of(seam: Seam) -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter(move |entry| entry.seams.contains(&seam))
}

/// The policy of a seam with this name.
pub fn find(seam: Seam, name: &str) -> Option<&'static Entry> {
    of(seam).find(|entry| entry.name() == name)
}

/// The names of a seam's policies, for messages.
pub(crate) fn names(seam: Seam) -> String {
    of(seam).map(|entry| format!("`{}`", entry.name())).collect::<Vec<_>>().join(", ")
}

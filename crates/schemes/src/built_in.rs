//! The profiles that come with Posthaste: those that somebody might deploy, whose texts are the files in `profiles/`, and
//! forms for comparison (as published, baselines), whose texts are the files in `profiles/comparison/`.

/// The default profile.
pub(crate) const DEFAULT: &str = "cubic";

/// Names and texts.
type Texts = &'static [(&'static str, &'static str)];

/// The built-in profiles, the default first.
const BUILT_IN: Texts = &[
    (DEFAULT, include_str!("../profiles/cubic.toml")),
    ("bbr", include_str!("../profiles/bbr.toml")),
    ("cubic-2flows", include_str!("../profiles/cubic-2flows.toml")),
    ("cubic-few-acks", include_str!("../profiles/cubic-few-acks.toml")),
    ("cubic-freeze", include_str!("../profiles/cubic-freeze.toml")),
    ("cubic-iw32", include_str!("../profiles/cubic-iw32.toml")),
    ("fast-autotune", include_str!("../profiles/fast-autotune.toml")),
    ("history", include_str!("../profiles/history.toml")),
    ("mobile", include_str!("../profiles/mobile.toml")),
    ("modquic-bbr", include_str!("../profiles/modquic-bbr.toml")),
    ("modquic-cubic", include_str!("../profiles/modquic-cubic.toml")),
    ("mquic-bbr", include_str!("../profiles/mquic-bbr.toml")),
    ("mquic-cubic", include_str!("../profiles/mquic-cubic.toml")),
    ("mquic-newreno", include_str!("../profiles/mquic-newreno.toml")),
    ("quicming", include_str!("../profiles/quicming.toml")),
    ("standard", include_str!("../profiles/standard.toml")),
];

/// Forms for comparison.
const COMPARISONS: Texts = &[
    ("bbr-draft", include_str!("../profiles/comparison/bbr-draft.toml")),
    ("bbr1", include_str!("../profiles/comparison/bbr1.toml")),
    ("cubic-at-once", include_str!("../profiles/comparison/cubic-at-once.toml")),
    ("cubic-classic", include_str!("../profiles/comparison/cubic-classic.toml")),
    ("cubic-fixed", include_str!("../profiles/comparison/cubic-fixed.toml")),
    ("cubic-freeze-paper", include_str!("../profiles/comparison/cubic-freeze-paper.toml")),
    ("cubic-hybrid", include_str!("../profiles/comparison/cubic-hybrid.toml")),
    ("fast-autotune-paper", include_str!("../profiles/comparison/fast-autotune-paper.toml")),
    ("gquic-2017", include_str!("../profiles/comparison/gquic-2017.toml")),
    ("gquic-2017-bbr", include_str!("../profiles/comparison/gquic-2017-bbr.toml")),
    ("gquic-2017-reno", include_str!("../profiles/comparison/gquic-2017-reno.toml")),
    ("history-paper", include_str!("../profiles/comparison/history-paper.toml")),
    ("modquic-bbr-paper", include_str!("../profiles/comparison/modquic-bbr-paper.toml")),
    ("modquic-cubic-paper", include_str!("../profiles/comparison/modquic-cubic-paper.toml")),
    ("mquic-bbr-paper", include_str!("../profiles/comparison/mquic-bbr-paper.toml")),
    ("mquic-bbr-plain", include_str!("../profiles/comparison/mquic-bbr-plain.toml")),
    ("mquic-cubic-paper", include_str!("../profiles/comparison/mquic-cubic-paper.toml")),
    ("mquic-cubic-plain", include_str!("../profiles/comparison/mquic-cubic-plain.toml")),
    ("mquic-cubic-windows", include_str!("../profiles/comparison/mquic-cubic-windows.toml")),
    ("mquic-newreno-paper", include_str!("../profiles/comparison/mquic-newreno-paper.toml")),
    ("mquic-newreno-plain", include_str!("../profiles/comparison/mquic-newreno-plain.toml")),
    ("mquic-newreno-windows", include_str!("../profiles/comparison/mquic-newreno-windows.toml")),
    ("quicming-paper", include_str!("../profiles/comparison/quicming-paper.toml")),
    ("static", include_str!("../profiles/comparison/static.toml")),
    ("static-improved", include_str!("../profiles/comparison/static-improved.toml")),
];

/// The names of `texts`, in the same order.
const fn names_of<const LEN: usize>(texts: Texts) -> [&'static str; LEN] {
    let mut names = [""; LEN];
    let mut index = 0;
    while index < LEN {
        names[index] = texts[index].0;
        index += 1;
    }
    names
}

const NAMES: [&str; BUILT_IN.len()] = names_of(BUILT_IN);
const COMPARISON_NAMES: [&str; COMPARISONS.len()] = names_of(COMPARISONS);

/// The names of the built-in profiles, the default first: those that somebody might deploy.
pub const fn names() -> &'static [&'static str] {
    &NAMES
}

/// The names of profiles that exist for comparison: schemes as published, and baselines. They can be named wherever a
/// profile can, but no list and no `all` has them.
pub const fn comparison_names() -> &'static [&'static str] {
    &COMPARISON_NAMES
}

/// The text of the profile with this name, built-in or for comparison.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().chain(COMPARISONS).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

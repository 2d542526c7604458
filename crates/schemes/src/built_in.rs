//! The built-in profiles; the texts are the files in `profiles/`.

/// The default profile.
pub(crate) const DEFAULT: &str = "cubic";

/// The built-in profiles, the default first.
pub(crate) const BUILT_IN: [(&str, &str); 37] = [
    (DEFAULT, include_str!("../../../profiles/cubic.toml")),
    ("bbr", include_str!("../../../profiles/bbr.toml")),
    ("bbr-draft", include_str!("../../../profiles/bbr-draft.toml")),
    ("bbr1", include_str!("../../../profiles/bbr1.toml")),
    ("cubic-2flows", include_str!("../../../profiles/cubic-2flows.toml")),
    ("cubic-at-once", include_str!("../../../profiles/cubic-at-once.toml")),
    ("cubic-classic", include_str!("../../../profiles/cubic-classic.toml")),
    ("cubic-few-acks", include_str!("../../../profiles/cubic-few-acks.toml")),
    ("cubic-fixed", include_str!("../../../profiles/cubic-fixed.toml")),
    ("cubic-freeze", include_str!("../../../profiles/cubic-freeze.toml")),
    ("cubic-freeze-paper", include_str!("../../../profiles/cubic-freeze-paper.toml")),
    ("cubic-hybrid", include_str!("../../../profiles/cubic-hybrid.toml")),
    ("cubic-iw32", include_str!("../../../profiles/cubic-iw32.toml")),
    ("fast-autotune", include_str!("../../../profiles/fast-autotune.toml")),
    ("fast-autotune-paper", include_str!("../../../profiles/fast-autotune-paper.toml")),
    ("history", include_str!("../../../profiles/history.toml")),
    ("history-paper", include_str!("../../../profiles/history-paper.toml")),
    ("modquic-bbr", include_str!("../../../profiles/modquic-bbr.toml")),
    ("modquic-bbr-paper", include_str!("../../../profiles/modquic-bbr-paper.toml")),
    ("modquic-cubic", include_str!("../../../profiles/modquic-cubic.toml")),
    ("modquic-cubic-paper", include_str!("../../../profiles/modquic-cubic-paper.toml")),
    ("mquic-bbr", include_str!("../../../profiles/mquic-bbr.toml")),
    ("mquic-bbr-paper", include_str!("../../../profiles/mquic-bbr-paper.toml")),
    ("mquic-bbr-plain", include_str!("../../../profiles/mquic-bbr-plain.toml")),
    ("mquic-cubic", include_str!("../../../profiles/mquic-cubic.toml")),
    ("mquic-cubic-paper", include_str!("../../../profiles/mquic-cubic-paper.toml")),
    ("mquic-cubic-plain", include_str!("../../../profiles/mquic-cubic-plain.toml")),
    ("mquic-cubic-windows", include_str!("../../../profiles/mquic-cubic-windows.toml")),
    ("mquic-newreno", include_str!("../../../profiles/mquic-newreno.toml")),
    ("mquic-newreno-paper", include_str!("../../../profiles/mquic-newreno-paper.toml")),
    ("mquic-newreno-plain", include_str!("../../../profiles/mquic-newreno-plain.toml")),
    ("mquic-newreno-windows", include_str!("../../../profiles/mquic-newreno-windows.toml")),
    ("quicming", include_str!("../../../profiles/quicming.toml")),
    ("quicming-paper", include_str!("../../../profiles/quicming-paper.toml")),
    ("standard", include_str!("../../../profiles/standard.toml")),
    ("static", include_str!("../../../profiles/static.toml")),
    ("static-improved", include_str!("../../../profiles/static-improved.toml")),
];

/// Their names, in the same order.
const NAMES: [&str; BUILT_IN.len()] = {
    let mut names = [""; BUILT_IN.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = BUILT_IN[index].0;
        index += 1;
    }
    names
};

/// The names of the built-in profiles, the default first.
pub const fn names() -> &'static [&'static str] {
    &NAMES
}

/// The text of the built-in profile with this name.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    BUILT_IN.into_iter().find(|(known, _)| *known == name).map(|(_, text)| text)
}

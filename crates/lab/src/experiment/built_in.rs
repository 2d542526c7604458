//! The experiments and published figures that come with Posthaste.

/// Name and text of each experiment, in the order in which they are listed.
pub(super) const EXPERIMENTS: [(&str, &str); 34] = [
    ("smoke", include_str!("../../../../experiments/smoke.toml")),
    ("hs-simple", include_str!("../../../../experiments/hs-simple.toml")),
    ("hs-calibrated", include_str!("../../../../experiments/hs-calibrated.toml")),
    ("hs-calibrated-iw32", include_str!("../../../../experiments/hs-calibrated-iw32.toml")),
    ("hs-dumbbell", include_str!("../../../../experiments/hs-dumbbell.toml")),
    ("hs-flows", include_str!("../../../../experiments/hs-flows.toml")),
    ("hs-loss", include_str!("../../../../experiments/hs-loss.toml")),
    ("hs-stale", include_str!("../../../../experiments/hs-stale.toml")),
    ("hs-poisoned", include_str!("../../../../experiments/hs-poisoned.toml")),
    ("cg-baseline", include_str!("../../../../experiments/cg-baseline.toml")),
    ("cg-gain", include_str!("../../../../experiments/cg-gain.toml")),
    ("cg-gain-plain", include_str!("../../../../experiments/cg-gain-plain.toml")),
    ("cg-radio", include_str!("../../../../experiments/cg-radio.toml")),
    ("cg-sync", include_str!("../../../../experiments/cg-sync.toml")),
    ("cg-count", include_str!("../../../../experiments/cg-count.toml")),
    ("cg-share", include_str!("../../../../experiments/cg-share.toml")),
    ("cg-page", include_str!("../../../../experiments/cg-page.toml")),
    ("gr-page", include_str!("../../../../experiments/gr-page.toml")),
    ("gr-broken-promise", include_str!("../../../../experiments/gr-broken-promise.toml")),
    ("freeze", include_str!("../../../../experiments/freeze.toml")),
    ("freeze-shared", include_str!("../../../../experiments/freeze-shared.toml")),
    ("wa-packets", include_str!("../../../../experiments/wa-packets.toml")),
    ("wa-loss", include_str!("../../../../experiments/wa-loss.toml")),
    ("wa-rate", include_str!("../../../../experiments/wa-rate.toml")),
    ("wa-onehop", include_str!("../../../../experiments/wa-onehop.toml")),
    ("wa-cc-packets", include_str!("../../../../experiments/wa-cc-packets.toml")),
    ("wa-cc-rate", include_str!("../../../../experiments/wa-cc-rate.toml")),
    ("wa-mobile", include_str!("../../../../experiments/wa-mobile.toml")),
    ("bbr-loss", include_str!("../../../../experiments/bbr-loss.toml")),
    ("bbr-share", include_str!("../../../../experiments/bbr-share.toml")),
    ("wa-updates", include_str!("../../../../experiments/wa-updates.toml")),
    ("fa-small", include_str!("../../../../experiments/fa-small.toml")),
    ("fa-large", include_str!("../../../../experiments/fa-large.toml")),
    ("fa-size", include_str!("../../../../experiments/fa-size.toml")),
];

/// Name and text of each file of published figures.
pub(super) const REFERENCES: [(&str, &str); 5] = [
    ("coordinated_group.csv", include_str!("../../../../reference/coordinated_group.csv")),
    ("fast_autotune.csv", include_str!("../../../../reference/fast_autotune.csv")),
    ("guaranteed_rate.csv", include_str!("../../../../reference/guaranteed_rate.csv")),
    ("history_start.csv", include_str!("../../../../reference/history_start.csv")),
    ("window_on_ack.csv", include_str!("../../../../reference/window_on_ack.csv")),
];

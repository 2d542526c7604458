//! The experiments and published figures that come with Posthaste.

/// Name and text of each experiment, in the order in which they are listed.
pub(super) const EXPERIMENTS: [(&str, &str); 3] = [
    ("smoke", include_str!("../../../../experiments/smoke.toml")),
    ("hs-simple", include_str!("../../../../experiments/hs-simple.toml")),
    ("hs-dumbbell", include_str!("../../../../experiments/hs-dumbbell.toml")),
];

/// Name and text of each file of published figures.
pub(super) const REFERENCES: [(&str, &str); 5] = [
    ("coordinated_group.csv", include_str!("../../../../reference/coordinated_group.csv")),
    ("fast_autotune.csv", include_str!("../../../../reference/fast_autotune.csv")),
    ("guaranteed_rate.csv", include_str!("../../../../reference/guaranteed_rate.csv")),
    ("history_start.csv", include_str!("../../../../reference/history_start.csv")),
    ("window_on_ack.csv", include_str!("../../../../reference/window_on_ack.csv")),
];

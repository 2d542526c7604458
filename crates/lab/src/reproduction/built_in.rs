//! The rule sets that come with Posthaste.

/// Name and text of each, in the order of the schemes.
pub(super) const RULE_SETS: [(&str, &str); 6] = [
    ("history_start", include_str!("../../experiments/reproduction/history_start.toml")),
    ("guaranteed_rate", include_str!("../../experiments/reproduction/guaranteed_rate.toml")),
    ("guaranteed_rate_times", include_str!("../../experiments/reproduction/guaranteed_rate_times.toml")),
    ("window_on_ack", include_str!("../../experiments/reproduction/window_on_ack.toml")),
    ("coordinated_group", include_str!("../../experiments/reproduction/coordinated_group.toml")),
    ("fast_autotune", include_str!("../../experiments/reproduction/fast_autotune.toml")),
];

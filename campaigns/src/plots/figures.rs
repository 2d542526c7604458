//! What is drawn: which runs of which experiments.

/// What a figure shows over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Bytes in flight.
    InFlight,
    /// What arrives at the receiver.
    Delivery,
}

impl Quantity {
    /// The lab's name for it.
    pub(super) const fn gauge(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Delivery => "delivery",
        }
    }

    /// The axis.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::InFlight => "in flight, kB",
            Self::Delivery => "delivered, Mbit/s",
        }
    }

    /// The axis's unit in the lab's.
    pub(super) const fn unit(self) -> f64 {
        match self {
            Self::InFlight => 1e3,
            Self::Delivery => 1e6,
        }
    }
}

/// A file in `docs/schemes`, beside the page of the same name.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) quantity: Quantity,
    /// Side by side.
    pub(super) panels: &'static [Panel],
}

/// A pair of axes.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) experiment: &'static str,
    /// The cell, but for its stack.
    pub(super) cells: &'static str,
    /// Seconds from the first flow's start on.
    pub(super) seconds: f64,
    /// Seconds that a point is the mean of.
    pub(super) step: f64,
    /// The experiment's stacks, and what they are called in the picture.
    pub(super) curves: &'static [(&'static str, &'static str)],
}

const HISTORY: &[(&str, &str)] =
    &[("cubic", "cubic"), ("history", "history"), ("history-paper", "history-paper")];
const QUICMING: &[(&str, &str)] = &[
    ("cubic", "cubic"),
    ("quicming@min_rate=5mbit", "quicming"),
    ("quicming-paper@min_rate=5mbit", "quicming-paper"),
];
const FREEZE: &[(&str, &str)] =
    &[("cubic", "cubic"), ("cubic-freeze", "cubic-freeze"), ("cubic-freeze-paper", "cubic-freeze-paper")];
const GROUPS: &[(&str, &str)] = &[
    ("cubic", "cubic, one connection"),
    ("mquic-cubic@3", "mquic-cubic, three"),
    ("mquic-cubic-paper@3", "mquic-cubic-paper, three"),
];
const AUTOTUNE: &[(&str, &str)] =
    &[("autotune", "autotune"), ("fast-safe", "fast-autotune"), ("fast", "fast-autotune-paper")];

/// All of them.
pub(super) const FIGURES: [Figure; 5] = [
    Figure {
        name: "history",
        quantity: Quantity::InFlight,
        panels: &[
            Panel {
                title: "10 MB, the path as it was",
                experiment: "harm-cut",
                cells: "capacity=as it was,object=10MB",
                seconds: 1.2,
                step: 0.02,
                curves: HISTORY,
            },
            Panel {
                title: "10 MB, a fifth of the capacity",
                experiment: "harm-cut",
                cells: "capacity=1/5,object=10MB",
                seconds: 1.2,
                step: 0.02,
                curves: HISTORY,
            },
        ],
    },
    Figure {
        name: "guaranteed-rate",
        quantity: Quantity::Delivery,
        panels: &[
            Panel {
                title: "5 Mbit/s promised, 10 there, 2 % loss",
                experiment: "gr-broken-promise",
                cells: "rate=10mbit,radio=2%",
                seconds: 40.0,
                step: 1.0,
                curves: QUICMING,
            },
            Panel {
                title: "5 Mbit/s promised, 3 there, no loss",
                experiment: "gr-broken-promise",
                cells: "rate=3mbit,radio=0%",
                seconds: 40.0,
                step: 1.0,
                curves: QUICMING,
            },
        ],
    },
    Figure {
        name: "freeze",
        quantity: Quantity::Delivery,
        panels: &[
            Panel {
                title: "outage of 2 s, 200 ms",
                experiment: "freeze",
                cells: "outage=2s,after=rtt 200ms",
                seconds: 9.0,
                step: 0.2,
                curves: FREEZE,
            },
            Panel {
                title: "outage of 2 s, 60 ms",
                experiment: "freeze",
                cells: "outage=2s,after=same",
                seconds: 9.0,
                step: 0.2,
                curves: FREEZE,
            },
        ],
    },
    Figure {
        name: "groups",
        quantity: Quantity::Delivery,
        panels: &[
            Panel {
                title: "beside one cubic, no loss",
                experiment: "cg-share",
                cells: "loss=0%",
                seconds: 40.0,
                step: 1.0,
                curves: GROUPS,
            },
            Panel {
                title: "beside one cubic, 0.1 % loss",
                experiment: "cg-share",
                cells: "loss=0.1%",
                seconds: 40.0,
                step: 1.0,
                curves: GROUPS,
            },
        ],
    },
    Figure {
        name: "fast-autotune",
        quantity: Quantity::Delivery,
        panels: &[
            Panel {
                title: "20 MB, first flight of 200",
                experiment: "fa-large",
                cells: "object=20MB,start=IW200",
                seconds: 5.0,
                step: 0.17,
                curves: AUTOTUNE,
            },
            Panel {
                title: "20 MB, first flight of 10",
                experiment: "fa-large",
                cells: "object=20MB,start=IW10",
                seconds: 5.0,
                step: 0.17,
                curves: AUTOTUNE,
            },
        ],
    },
];

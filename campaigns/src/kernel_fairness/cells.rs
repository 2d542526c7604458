//! The grid: who meets whom over which bottleneck.

use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A controller of the kernel's TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rival {
    /// CUBIC
    Cubic,
    /// BBR, version 1
    Bbr,
}

impl Rival {
    /// The kernel's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// What a client asks for it by.
    pub(super) fn to_byte(self) -> u8 {
        self.name().as_bytes()[0]
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Cubic, Self::Bbr].into_iter().find(|rival| rival.to_byte() == byte)
    }
}

/// Who meets the kernel's flows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Contender {
    /// Posthaste with this profile at both ends.
    Profile(String),
    /// One more flow of the kernel: what harm is measured against.
    Kernel(Rival),
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name.strip_prefix("kernel:") {
            Some(controller) => Self::Kernel(Rival::from_str(controller, false)?),
            None => Self::Profile(name.to_owned()),
        })
    }
}

impl TryFrom<String> for Contender {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<Contender> for String {
    fn from(contender: Contender) -> Self {
        contender.to_string()
    }
}

impl std::fmt::Display for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Profile(name) => f.write_str(name),
            Self::Kernel(rival) => write!(f, "kernel:{}", rival.name()),
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) contender: Contender,
    pub(super) rival: Rival,
    /// Flows of the kernel, beside the contender.
    pub(super) flows: usize,
    /// Of the bottleneck.
    pub(super) megabits: f64,
    /// Its queue, in bandwidth-delay products.
    pub(super) buffer: f64,
}

impl Cell {
    /// The same with one more kernel CUBIC flow in the contender's place.
    pub(super) fn baseline(&self) -> Self {
        Self { contender: Contender::Kernel(Rival::Cubic), ..self.clone() }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { contender, rival, flows, megabits, buffer } = self;
        write!(f, "{contender}, {flows} x {}, {megabits} Mbit/s, {buffer} BDP", rival.name())
    }
}

/// The grid's axes.
#[derive(Debug)]
pub(super) struct Axes<'a> {
    pub(super) profiles: &'a [String],
    pub(super) rivals: &'a [Rival],
    pub(super) flows: &'a [usize],
    pub(super) megabits: &'a [f64],
    pub(super) buffers: &'a [f64],
}

/// All cells, each bottleneck's baseline first.
pub(super) fn grid(axes: &Axes<'_>) -> Vec<Cell> {
    let profiles = axes.profiles.iter().cloned().map(Contender::Profile);
    let contenders: Vec<_> = std::iter::once(Contender::Kernel(Rival::Cubic)).chain(profiles).collect();
    let mut cells = Vec::new();
    for &megabits in axes.megabits {
        for &buffer in axes.buffers {
            for &rival in axes.rivals {
                for &flows in axes.flows {
                    let cell = |contender: &Contender| Cell {
                        contender: contender.clone(),
                        rival,
                        flows,
                        megabits,
                        buffer,
                    };
                    cells.extend(contenders.iter().map(cell));
                }
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_a_baseline_for_every_bottleneck() {
        let profiles = ["standard".to_owned(), "cubic".to_owned()];
        let cells = grid(&Axes {
            profiles: &profiles,
            rivals: &[Rival::Cubic, Rival::Bbr],
            flows: &[1, 2, 4],
            megabits: &[10.0, 100.0],
            buffers: &[0.25],
        });
        assert_eq!(cells.len(), 3 * 2 * 3 * 2);
        assert!(cells.iter().all(|cell| cells.contains(&cell.baseline())));
        assert_eq!(cells[1].to_string(), "standard, 1 x cubic, 10 Mbit/s, 0.25 BDP");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for contender in [Contender::Profile("standard".to_owned()), Contender::Kernel(Rival::Bbr)] {
            assert_eq!(contender.to_string().parse(), Ok(contender));
        }
        assert!("kernel:vegas".parse::<Contender>().is_err());
        for rival in [Rival::Cubic, Rival::Bbr] {
            assert_eq!(Rival::from_byte(rival.to_byte()), Some(rival));
        }
    }
}

//! From a description of a workload to the application that runs it.

use posthaste_units::{Rng, Time};

use super::{App, Bulk};
use crate::peers::Stack;
use crate::spec::WorkloadSpec;

/// A workload that cannot be as described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WorkloadError(pub String);

/// The client side of a workload on `hosts` ([`WorkloadSpec::connections`] of them), begun at `start_at`.
///
/// # Errors
/// If the workload cannot be as described.
pub fn client(
    spec: &WorkloadSpec,
    hosts: &[usize],
    start_at: Time,
    _rng: Rng,
) -> Result<Box<dyn App>, WorkloadError> {
    match (spec, hosts) {
        (WorkloadSpec::Bulk { object, .. }, [host]) => Ok(Box::new(Bulk::new(*host, object.get(), start_at))),
        _ => Err(WorkloadError("not there yet".to_owned())),
    }
}

impl WorkloadSpec {
    /// Connections that the workload needs on `stack`.
    pub fn connections(&self, _stack: &Stack) -> usize {
        1
    }

    /// Body bytes in all; `None` if it never ends.
    pub fn body_bytes(&self) -> Option<u64> {
        match self {
            Self::Bulk { object, .. } => Some(object.get()),
            _ => None,
        }
    }

    /// The least number of request round trips in a row.
    pub fn request_rounds(&self) -> u64 {
        1
    }
}

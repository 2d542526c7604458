//! How the window grows until the path's capacity is found.

pub mod classic;
pub(crate) mod delay;
pub mod hybrid;
pub mod hystart_pp;

use crate::PolicyText;

/// What stands in this seam's place where the controller has a startup of its own.
pub const OWN: PolicyText = PolicyText {
    name: "own",
    claims: "the controller finds the capacity by its own startup",
    source: "the controller's",
    use_when: "the controller has a model of the path (bbr1, bbr3)",
    breaks_when: "as the controller does",
};

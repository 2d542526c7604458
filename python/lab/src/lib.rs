//! The lab of Posthaste as a Python module: a thin layer. What Python's users see is in `python/posthaste_lab`.

mod catalogue;
mod errors;
mod identity;
mod journal;
mod json;
mod run;
mod sweep;
mod value;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::catalogue::{describe_experiment, describe_path, describe_profile, experiments, stacks};
    #[pymodule_export]
    use super::identity::build;
    #[pymodule_export]
    use super::journal::Journal;
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::sweep::{Report, Sweep};
    #[pymodule_export]
    use super::value::to_toml;
    #[pymodule_export]
    use super::work::after_fork;
}

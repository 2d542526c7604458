//! What a silent peer means.

pub mod collapse;

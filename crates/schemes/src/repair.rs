//! Policies of the seam `repair`: what is sent again before anyone has said that it was lost.

pub mod none;

//! How fast: every decision about speed as a replaceable policy.

//! The emulated path in real time: a userspace UDP relay.

//! One emulated direction of a link: delay, loss, reordering, in integer time.

//! Posthaste's transport on tokio and UDP sockets.

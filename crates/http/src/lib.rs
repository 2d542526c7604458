//! HTTP/3 server and client on the Posthaste endpoint.

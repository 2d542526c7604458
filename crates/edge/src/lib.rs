//! What an HTTP edge serves, and from where.
//!
//! A [`Config`] is what a file in TOML or the command line says. [`Edge`] is what was built of it: a tower service that
//! chooses the site by the request's authority and the answer by its path. [`Resolver`] chooses the certificate by the
//! name that the client asks for (SNI). [`Edge::reload`] builds everything of a new configuration next to the running
//! one and swaps it at once: a request keeps what it began with, the next one on the same connection has the new
//! configuration, and nothing about sockets or connections happens.
//!
//! Nothing here listens: servers of any HTTP version take the service and the resolver.

mod acme;
mod actions;
mod body_limit;
mod certificates;
mod config;
mod early_data;
mod edge;
mod hints;
mod hosts;
mod metrics;
mod records;
mod request_id;
mod routes;
mod running;
mod tls;

pub use acme::{ACME_TLS, AcmeError, AcmeSite, Attended, Authority, Challenge, Challenges};
pub use certificates::{CertificateState, Resolver, Watched, names_and_validity};
pub use config::{
    AcmeConfig, CertificateFiles, Config, ConfigError, EarlyDataUse, FieldRules, HealthConfig, Limits,
    QueryInLog, RequestIdConfig, RouteConfig, Settings, SiteConfig, Span, Targets, Timeouts, TlsVersion,
    Workers,
};
pub use edge::Edge;
pub use metrics::{
    About, CertificateStatus, ConnectionStatus, DiscoveryStatus, Http3Status, LiveConnections, MEDIA_TYPE,
    MedianTimes, Metrics, ReloadStatus, RequestsStatus, SiteStatus, Status, TimesStatus, UpstreamStatus,
};
pub use posthaste_service::Coding;
pub use records::{Discovery, TcpSide};
pub use running::Trust;
pub use tls::server_over_tcp;

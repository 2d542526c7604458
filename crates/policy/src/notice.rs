//! What policies have to say to people.

/// What a policy has to say to whoever runs the endpoint: it ends up in logs and traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The policy's name.
    pub policy: &'static str,
    /// What has happened, in a sentence.
    pub text: String,
}

//! Builds a profile from one factory for each seam.

use std::sync::Arc;

use posthaste_units::ByteCount;

use super::Profile;
use crate::slow_start::Classic;
use crate::{
    AckFactory, CongestionFactory, CreditFactory, GroupFactory, RepairFactory, Seam, SilenceFactory,
    SlowStartFactory, StartFactory, group, repair,
};

/// Why factories do not make a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A seam that every profile must fill has no policy.
    #[error("profile `{name}` has no policy for the seam `{}`", .seam.name())]
    Missing {
        /// The profile's name.
        name: String,
        /// The seam.
        seam: Seam,
    },
    /// The receive windows contradict each other.
    #[error("profile `{name}`: {message}")]
    Windows {
        /// The profile's name.
        name: String,
        /// What is wrong, and what would be right.
        message: String,
    },
}

/// Builds a [`Profile`]; made by [`Profile::builder`] and [`Profile::to_builder`].
///
/// Setters take factories by value: closures, functions or types that implement the seam's factory trait. A factory that
/// panics as a connection begins ends that connection with `INTERNAL_ERROR` (at a client, `connect` fails); one that
/// panics later, for a stream or another path, ends its endpoint with all connections, not the process. Slow start
/// (default [`Classic`]), repair (default none) and group (default none) may be left out.
///
/// ```
/// use posthaste_policy::sample::{CreditMoment, WindowView};
/// use posthaste_policy::{Credit, Profile};
/// use posthaste_units::ByteCount;
///
/// /// One window, renewed whenever something of it has been read.
/// #[derive(Debug)]
/// struct Eager;
///
/// impl Credit for Eager {
///     fn initial_window(&self) -> ByteCount {
///         self.window()
///     }
///     fn grant(&mut self, _moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
///         let advance = view.consumed + self.window() - view.advertised;
///         (!advance.is_zero()).then_some(advance)
///     }
///     fn window(&self) -> ByteCount {
///         ByteCount::new(1 << 20)
///     }
/// }
///
/// let error = Profile::builder("mine").stream_credit(|| Eager).build().unwrap_err();
/// assert_eq!(error.to_string(), "profile `mine` has no policy for the seam `start`");
/// ```
#[derive(Clone)]
#[must_use]
pub struct ProfileBuilder {
    name: Arc<str>,
    description: Arc<str>,
    start: Option<Arc<dyn StartFactory>>,
    slow_start: Arc<dyn SlowStartFactory>,
    congestion: Option<Arc<dyn CongestionFactory>>,
    silence: Option<Arc<dyn SilenceFactory>>,
    stream_credit: Option<Arc<dyn CreditFactory>>,
    connection_credit: Option<Arc<dyn CreditFactory>>,
    ack: Option<Arc<dyn AckFactory>>,
    repair: Arc<dyn RepairFactory>,
    group: Arc<dyn GroupFactory>,
}

impl ProfileBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            description: "".into(),
            start: None,
            slow_start: Arc::new(Classic),
            congestion: None,
            silence: None,
            stream_credit: None,
            connection_credit: None,
            ack: None,
            repair: Arc::new(repair::Nothing),
            group: Arc::new(group::Plain),
        }
    }

    pub(super) fn from_profile(profile: &Profile, name: &str) -> Self {
        let profile = profile.clone();
        Self {
            name: name.into(),
            description: profile.description,
            start: Some(profile.start),
            slow_start: profile.slow_start,
            congestion: Some(profile.congestion),
            silence: Some(profile.silence),
            stream_credit: Some(profile.stream_credit),
            connection_credit: Some(profile.connection_credit),
            ack: Some(profile.ack),
            repair: profile.repair,
            group: profile.group,
        }
    }

    /// What the profile is for, in a sentence.
    pub fn description(mut self, description: &str) -> Self {
        self.description = description.into();
        self
    }

    /// What new paths may send first.
    pub fn start(mut self, factory: impl StartFactory + 'static) -> Self {
        self.start = Some(Arc::new(factory));
        self
    }

    /// How windows grow until the capacity is found.
    pub fn slow_start(mut self, factory: impl SlowStartFactory + 'static) -> Self {
        self.slow_start = Arc::new(factory);
        self
    }

    /// Congestion control.
    pub fn congestion(mut self, factory: impl CongestionFactory) -> Self {
        self.congestion = Some(Arc::new(factory));
        self
    }

    /// What a silent peer means.
    pub fn silence(mut self, factory: impl SilenceFactory + 'static) -> Self {
        self.silence = Some(Arc::new(factory));
        self
    }

    /// The credit of each stream.
    pub fn stream_credit(mut self, factory: impl CreditFactory + 'static) -> Self {
        self.stream_credit = Some(Arc::new(factory));
        self
    }

    /// The credit of the connection: at least 1.5 times the stream's, or two streams that share it stall each other.
    pub fn connection_credit(mut self, factory: impl CreditFactory + 'static) -> Self {
        self.connection_credit = Some(Arc::new(factory));
        self
    }

    /// The credit of each stream and of the connection.
    pub fn credit(
        self,
        stream: impl CreditFactory + 'static,
        connection: impl CreditFactory + 'static,
    ) -> Self {
        self.stream_credit(stream).connection_credit(connection)
    }

    /// When to acknowledge.
    pub fn ack(mut self, factory: impl AckFactory + 'static) -> Self {
        self.ack = Some(Arc::new(factory));
        self
    }

    /// What is sent again before it is known to be lost.
    pub fn repair(mut self, factory: impl RepairFactory + 'static) -> Self {
        self.repair = Arc::new(factory);
        self
    }

    /// What several connections of one client have in common.
    pub fn group(mut self, factory: impl GroupFactory + 'static) -> Self {
        self.group = Arc::new(factory);
        self
    }

    /// The profile.
    ///
    /// # Errors
    /// [`BuildError::Missing`] if start, congestion control, silence, credit or acks have no policy;
    /// [`BuildError::Windows`] if the bounds of the credit policies, where they are known, contradict each other.
    pub fn build(self) -> Result<Profile, BuildError> {
        let missing = |seam| BuildError::Missing { name: self.name.to_string(), seam };
        let start = self.start.ok_or_else(|| missing(Seam::Start))?;
        let congestion = self.congestion.ok_or_else(|| missing(Seam::Congestion))?;
        let silence = self.silence.ok_or_else(|| missing(Seam::Silence))?;
        let stream_credit = self.stream_credit.ok_or_else(|| missing(Seam::StreamCredit))?;
        let connection_credit = self.connection_credit.ok_or_else(|| missing(Seam::ConnectionCredit))?;
        check_windows(stream_credit.bounds(), connection_credit.bounds())
            .map_err(|message| BuildError::Windows { name: self.name.to_string(), message })?;
        Ok(Profile {
            start,
            slow_start: self.slow_start,
            congestion,
            silence,
            stream_credit,
            connection_credit,
            ack: self.ack.ok_or_else(|| missing(Seam::Ack))?,
            repair: self.repair,
            group: self.group,
            name: self.name.clone(),
            description: self.description,
        })
    }
}

/// The first and the greatest window of a credit policy, where they are known.
type Bounds = Option<(ByteCount, ByteCount)>;

/// Refuses windows that contradict each other.
fn check_windows(stream: Bounds, connection: Bounds) -> Result<(), String> {
    for (key, bounds) in [("credit.stream", stream), ("credit.connection", connection)] {
        if bounds.is_some_and(|(initial, maximum)| initial > maximum) {
            return Err(format!("{key}: `initial` is above `maximum`"));
        }
    }
    let (Some(stream), Some(connection)) = (stream, connection) else { return Ok(()) };
    if connection.0 < stream.0 || connection.1 < stream.1 {
        return Err("credit.connection is smaller than credit.stream: no stream could use its window; \
                    give the connection at least 1.5 times the stream's"
            .to_owned());
    }
    Ok(())
}

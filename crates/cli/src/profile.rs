//! Profiles by name or from a file.

use std::path::Path;
#[cfg(feature = "qlog")]
use std::sync::Arc;

#[cfg(feature = "qlog")]
use posthaste_endpoint::QlogDirectory;
use posthaste_endpoint::TransportConfig;
use posthaste_policy::Profile;
use posthaste_schemes::{Definition, ProfileError};
#[cfg(feature = "files")]
use posthaste_units::Rate;

use crate::exit::Failure;
use crate::printer;

pub(crate) use posthaste_schemes::is_file;

/// The profile `name`, ready for use.
pub(crate) fn complete(name: &str) -> Result<Profile, Failure> {
    find(name)?.build().map_err(Failure::usage)
}

/// The profile `name` that grants clients the guaranteed rates that they state, up to `most`.
#[cfg(feature = "files")]
pub(crate) fn granting(name: &str, most: Rate) -> Result<Profile, Failure> {
    let rate = format!("{} bit/s", most.as_bits_per_second());
    let granting = find(name)?.with("max_stated_rate", &rate).map_err(|_| {
        Failure::usage(format!("--guaranteed-rate-max: the profile {name} takes no guaranteed rate"))
            .hint("choose one that does: --profile quicming")
    })?;
    granting.build().map_err(Failure::usage)
}

/// Prints which MUSTs `profile` breaks.
pub(crate) fn warn(profile: &Profile) {
    for policy in profile.describe().policies {
        for must in policy.breaks {
            let (seam, name) = (policy.seam.name(), policy.text.name);
            printer::note(format_args!("warning: {seam} {name} breaks {must}"));
        }
    }
}

/// The built-in profile `name`, or the one in the file `name`, with parameters; it may lack some.
pub(crate) fn find(name: &str) -> Result<Definition, Failure> {
    Definition::find(name).map_err(|error| {
        let is_unknown = matches!(error, ProfileError::Unknown { .. });
        let failure = Failure::usage(error);
        if is_unknown { failure.hint("`posthaste profiles` describes each") } else { failure }
    })
}

/// Transport settings from the command line.
pub(crate) fn transport(
    profile: Profile,
    qlog: Option<&Path>,
    max_datagram_size: Option<u16>,
) -> Result<TransportConfig, Failure> {
    let mut transport = TransportConfig::new(profile);
    if let Some(size) = max_datagram_size {
        transport.max_datagram_size = size.into();
    }
    if let Some(directory) = qlog {
        trace_into(directory, &mut transport)?;
    }
    Ok(transport)
}

#[cfg(feature = "qlog")]
fn trace_into(directory: &Path, transport: &mut TransportConfig) -> Result<(), Failure> {
    make_trace_folder(directory)?;
    transport.qlog = Some(Arc::new(QlogDirectory::new(directory)));
    Ok(())
}

/// A server's traces, which hold up nobody whatever the file system does. What this returns waits for the last of them when
/// it is dropped.
#[cfg(feature = "qlog")]
pub(crate) fn trace_server(
    directory: &Path,
    transport: &mut TransportConfig,
) -> Result<impl Sized + use<>, Failure> {
    make_trace_folder(directory)?;
    let no_thread = |error| Failure::runtime(format!("cannot start a thread for traces: {error}"));
    let traces = Arc::new(QlogDirectory::in_background(directory).map_err(no_thread)?);
    transport.qlog = Some(Arc::clone(&traces) as _);
    Ok(traces)
}

#[cfg(not(feature = "qlog"))]
fn trace_into(_: &Path, _: &mut TransportConfig) -> Result<(), Failure> {
    Err(crate::exit::not_built("qlog traces"))
}

#[cfg(not(feature = "qlog"))]
pub(crate) fn trace_server(directory: &Path, transport: &mut TransportConfig) -> Result<(), Failure> {
    trace_into(directory, transport)
}

/// Updates keys after half of so many packets.
pub(crate) fn limit_keys(transport: &mut TransportConfig, packets: Option<u64>) {
    if let Some(packets) = packets {
        transport.key_limits.sealed = packets;
    }
}

/// Makes the folder of `--qlog` and sees whether it can be written to.
pub(crate) fn make_trace_folder(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).and_then(|()| check_writable(directory)).map_err(|error| {
        Failure::usage(format!("cannot write traces into {}: {error}", directory.display()))
            .hint("choose a writable directory with --qlog DIR")
    })
}

/// A trace that cannot be written would only be logged, one connection after the other.
fn check_writable(directory: &Path) -> std::io::Result<()> {
    let probe = directory.join(format!(".posthaste-{}", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(&probe)
}

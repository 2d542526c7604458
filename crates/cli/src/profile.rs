//! Profiles by name or from a file.

use std::path::Path;
use std::sync::Arc;

use posthaste_endpoint::{QlogDirectory, TransportConfig};
use posthaste_policy::Profile;
use posthaste_policy::profile::selection::{self, DEFAULT_MIN_RATE};
use posthaste_units::Rate;

use crate::exit::Failure;
use crate::printer;

/// What ends in `.toml` or has a slash is a file, everything else a name.
pub(crate) fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
        || name.contains(std::path::is_separator)
}

/// The profile `name` ([`find`]), complete: with the rate of `--min-rate` if there is one.
pub(crate) fn complete(name: &str, min_rate: Option<Rate>) -> Result<Profile, Failure> {
    let profile = find(name)?;
    let profile = match min_rate {
        Some(rate) => profile.with_min_rate(rate).map_err(Failure::usage)?,
        None => profile,
    };
    profile.check_complete().map_err(Failure::usage)?;
    Ok(profile)
}

/// `names` with `all` and `all-server` replaced by what they stand for. Profiles with a guaranteed part come in with
/// [`DEFAULT_MIN_RATE`], unless `min_rate` says what they will get.
pub(crate) fn expand(names: &[String], min_rate: Option<Rate>) -> Vec<String> {
    selection::expand(names, min_rate.is_none().then_some(DEFAULT_MIN_RATE))
}

/// Tells whoever serves with `profile` which MUSTs it breaks.
pub(crate) fn warn(profile: &Profile) {
    for policy in profile.describe().policies {
        for must in policy.breaks {
            let (seam, name) = (policy.seam.name(), policy.text.name);
            printer::note(format_args!("warning: {seam} {name} breaks {must}"));
        }
    }
}

/// The built-in profile `name`, or the one in the file `name`.
pub(crate) fn find(name: &str) -> Result<Profile, Failure> {
    let path = Path::new(name);
    if !is_file(name) {
        return Profile::named(name)
            .map_err(|error| Failure::usage(error).hint("`posthaste profiles` says what each is for"));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the profile {}: {error}", path.display())))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Profile::from_toml(&stem, &text).map_err(Failure::usage)
}

/// Transport settings from the command line.
pub(crate) fn transport(
    profile: Profile,
    qlog: Option<&Path>,
    max_datagram_size: Option<u16>,
) -> Result<TransportConfig, Failure> {
    let mut transport = TransportConfig { profile, ..TransportConfig::default() };
    if let Some(size) = max_datagram_size {
        transport.max_datagram_size = size.into();
    }
    if let Some(directory) = qlog {
        make_trace_folder(directory)?;
        transport.qlog = Some(Arc::new(QlogDirectory::new(directory)));
    }
    Ok(transport)
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
            .hint("choose a folder that you may write to with --qlog DIR")
    })
}

/// A trace that cannot be written would only be logged, one connection after the other.
fn check_writable(directory: &Path) -> std::io::Result<()> {
    let probe = directory.join(format!(".posthaste-{}", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(&probe)
}

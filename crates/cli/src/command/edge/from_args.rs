//! The configuration that the command line's options say.

use std::ffi::OsString;
use std::path::PathBuf;

use posthaste_edge::{AcmeConfig, CertificateFiles, Coding, Config, SiteConfig};
use toml::Spanned;

use crate::args::Edge;

/// One site with one answer.
pub(super) fn config(args: &Edge) -> Config {
    let value = |text: &Option<String>| text.clone().map(somewhere);
    let certificate = match (&args.cert, &args.key) {
        (Some(chain), Some(key)) => {
            Some(somewhere(CertificateFiles { chain: chain.clone(), key: key.clone() }))
        }
        _ => None,
    };
    let site = SiteConfig {
        certificate,
        to: args.to.clone().map(|url| somewhere(url.into())),
        beside: value(&args.neighbour),
        files: value(&args.files),
        ca: args.ca.clone().map(somewhere),
        compress: compress(&args.compress),
        precompressed: args.precompressed,
        ..SiteConfig::default()
    };
    let mut config = Config::default();
    config.edge.listen = args.listen;
    config.edge.redirect = args.redirect;
    config.edge.admin = args.admin.map(somewhere);
    config.edge.admin_public = args.admin_public;
    config.edge.profile = somewhere(args.profile.clone());
    config.edge.workers = args.workers;
    config.edge.state = args.state.clone().map(somewhere);
    config.edge.tls_min = args.tls_min;
    config.edge.grace = args.grace.into();
    // Without files there is an authority: the arguments have one or the other.
    let usual = || usual_state(is_root(), |name| std::env::var_os(name));
    let state = args.acme.clone().or_else(|| args.cert.is_none().then(usual));
    config.edge.acme = state.map(|state| {
        let mut acme = AcmeConfig { ca: args.acme_ca.clone(), ..AcmeConfig::lets_encrypt(state) };
        if let Some(directory) = &args.acme_directory {
            acme.directory.clone_from(directory);
        }
        somewhere(acme)
    });
    config.sites.insert(args.domain.clone(), site);
    config
}

/// Where certificates are kept if nobody says where: the service manager's place, that of the system, or the user's (XDG Base
/// Directory Specification).
fn usual_state(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(given) = path("STATE_DIRECTORY") {
        return given;
    }
    let of_user = || path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")));
    let usual = if is_root { None } else { of_user() };
    usual.unwrap_or_else(|| "/var/lib".into()).join("posthaste")
}

#[cfg(target_os = "linux")]
fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[cfg(not(target_os = "linux"))]
fn is_root() -> bool {
    false
}

/// What a file has to say of it: nothing if it is as without a word.
fn compress(codings: &[String]) -> Option<Vec<Spanned<String>>> {
    match codings {
        [off] if off == "off" => Some(Vec::new()),
        all if all.iter().eq(Coding::ALL.map(Coding::name).iter()) => None,
        some => Some(some.iter().cloned().map(somewhere).collect()),
    }
}

/// A value without a place in a file.
fn somewhere<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn certificates_have_a_usual_place() {
        let state = |is_root, all: &[(&str, &str)]| {
            let value = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            usual_state(is_root, |name| value(name).map(Into::into))
        };
        let home = ("HOME", "/home/a");
        assert_eq!(state(false, &[home]), Path::new("/home/a/.local/state/posthaste"));
        assert_eq!(state(false, &[home, ("XDG_STATE_HOME", "/s")]), Path::new("/s/posthaste"));
        assert_eq!(
            state(false, &[home, ("XDG_STATE_HOME", "")]),
            Path::new("/home/a/.local/state/posthaste")
        );
        assert_eq!(state(true, &[home]), Path::new("/var/lib/posthaste"), "by sudo");
        assert_eq!(state(false, &[]), Path::new("/var/lib/posthaste"));
        assert_eq!(state(true, &[("STATE_DIRECTORY", "/d"), home]), Path::new("/d"));
    }
}

//! That a server does not serve its own secrets.

use std::path::{Component, Path, PathBuf};

use crate::args::Serve;
use crate::exit::Failure;

/// Refuses places of secrets that clients could read: `root` is the directory that is served, resolved.
pub(super) fn refuse(root: &Path, args: &Serve, state: Option<&Path>) -> Result<(), Failure> {
    let places = [
        (state, "the state directory", "--state DIR"),
        (args.qlog.as_deref(), "the directory for traces", "--qlog DIR"),
        (args.key.as_deref(), "the private key", "--key FILE"),
    ];
    for (place, what, option) in places {
        if let Some(place) = place
            && is_served(root, place, args.hidden)
        {
            let (place, root) = (place.display(), root.display());
            return Err(Failure::usage(format!("{what} {place} would be served: it is inside {root}"))
                .hint(format!("choose a place outside of it with {option}, or serve another directory")));
        }
    }
    Ok(())
}

/// True if a request can lead to `place`; `root` is the directory that is served, resolved.
pub(super) fn is_served(root: &Path, place: &Path, hidden: bool) -> bool {
    let place = resolve(place);
    let Ok(inside) = place.strip_prefix(root) else { return false };
    let is_hidden = |component: Component<'_>| component.as_os_str().as_encoded_bytes().starts_with(b".");
    hidden || !inside.components().any(is_hidden)
}

/// The real path of what exists of it, and the rest as it is: the directory may be made later.
fn resolve(place: &Path) -> PathBuf {
    let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    for there in place.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), place.strip_prefix(there)) {
            return real.join(rest);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_lead_to_is_served() {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap().join("www");
        std::fs::create_dir(&root).unwrap();
        let is_served = |place: &str, hidden| is_served(&root, &root.join(place), hidden);
        assert!(is_served("", false));
        assert!(is_served("state/not/there/yet", false));
        assert!(!is_served("../state", false));
        assert!(!is_served("../www-2", false));
        assert!(!is_served(".local/state", false));
        assert!(!is_served("a/.state", false));
        assert!(is_served(".local/state", true));
        assert!(!is_served("../.state", true));
    }

    #[cfg(unix)]
    #[test]
    fn links_hide_nothing() {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap().join("www");
        std::fs::create_dir(&root).unwrap();
        let link = guard.path().join("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        assert!(is_served(&root, &link.join("state"), false));
    }
}

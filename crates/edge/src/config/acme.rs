//! `[edge.acme]`: certificates from an authority that speaks ACME.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CertificateFiles;

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// `[edge.acme]`: sites without a `certificate` get theirs from this authority (RFC 8555).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AcmeConfig {
    /// Where the account's key and the certificates are kept.
    pub state: PathBuf,
    /// The authority's directory. Default: Let's Encrypt's.
    #[serde(default = "lets_encrypt")]
    pub directory: String,
    /// Whom the authority may tell of trouble, as URLs such as `mailto:me@example.org`. Default nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contact: Vec<String>,
    /// Certificates in PEM to trust in the authority's own server, instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

fn lets_encrypt() -> String {
    LETS_ENCRYPT.to_owned()
}

impl AcmeConfig {
    /// Let's Encrypt, with what it gives kept in `state`.
    pub fn lets_encrypt(state: PathBuf) -> Self {
        Self { state, directory: lets_encrypt(), contact: Vec::new(), ca: None }
    }

    /// True if the authority certifies public names only.
    pub(crate) fn is_public(&self) -> bool {
        self.directory == LETS_ENCRYPT
    }

    /// Where what comes from this authority is kept: another one gets an account and certificates of its own.
    pub(crate) fn folder(&self) -> PathBuf {
        let name = self.directory.split_once("://").map_or(self.directory.as_str(), |(_, rest)| rest);
        self.state.join(plain(name))
    }

    /// The file of a site's certificate: one for chain and key, so that they always belong together.
    pub(crate) fn files(&self, site: &str) -> CertificateFiles {
        let file = self.folder().join(plain(&format!("{site}.pem")));
        CertificateFiles { chain: file.clone(), key: file }
    }
}

/// As the name of a folder.
fn plain(name: &str) -> PathBuf {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() || matches!(character, '.' | '-') { character } else { '_' }
    };
    // Never one that means another folder.
    Path::new("_").with_file_name(name.trim_start_matches('.').chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_and_sites_have_folders_of_their_own() {
        let acme = AcmeConfig::lets_encrypt("/var/lib/x".into());
        let files = acme.files("example.org");
        let file = "/var/lib/x/acme-v02.api.letsencrypt.org_directory/example.org.pem";
        assert_eq!((files.chain.as_path(), files.key.as_path()), (Path::new(file), Path::new(file)));
        assert_eq!(plain("../../etc"), Path::new("_.._etc"));
        assert_eq!(plain("127.0.0.1:14000/dir"), Path::new("127.0.0.1_14000_dir"));
    }
}

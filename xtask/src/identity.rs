//! A certificate authority and a certificate for localhost, fresh at each run.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData as _,
};
use sha2::{Digest as _, Sha256};

use crate::Result;

/// Below the enterprise number for examples (RFC 5612).
const UNKNOWN_EXTENSION: [u64; 8] = [1, 3, 6, 1, 4, 1, 32473, 1];

/// DER's header of an octet string of 256 to 65,535 bytes (ITU-T X.690 sections 8.1.3.5 and 8.7), and the bytes.
fn octet_string(bytes: &[u8]) -> Result<Vec<u8>> {
    let length = u16::try_from(bytes.len())?.to_be_bytes();
    Ok([&[0x04, 0x82], length.as_slice(), bytes].concat())
}

/// PEM files, and what pins the key.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The root that clients trust.
    pub(crate) ca: PathBuf,
    /// The server's chain, for `localhost`, 127.0.0.1 and `::1`.
    pub(crate) cert: PathBuf,
    /// The server's key.
    pub(crate) key: PathBuf,
    /// Base64 of the SHA-256 of the server's `SubjectPublicKeyInfo`, as Chromium wants it.
    pub(crate) spki: String,
}

impl Identity {
    /// Makes all in `directory`.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        Self::create_with(directory, None)
    }

    /// One whose certificate does not fit into what a server may answer the repeated first flight of a client with.
    pub(crate) fn create_large(directory: &Path) -> Result<Self> {
        // Digests, which no compression of certificates shortens. Some peers take no handshake of more than 16 KiB.
        let digests: Vec<u8> = (0..344u32).flat_map(|index| Sha256::digest(index.to_be_bytes())).collect();
        std::fs::create_dir_all(directory)?;
        Self::create_with(directory, Some(octet_string(&digests)?))
    }

    /// With an extension in the server's certificate that nobody knows.
    fn create_with(directory: &Path, extension: Option<Vec<u8>>) -> Result<Self> {
        let mut authority = CertificateParams::new(Vec::<String>::new())?;
        authority.distinguished_name.push(DnType::CommonName, "Posthaste interop, valid for this run only");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let mut server =
            CertificateParams::new(["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec())?;
        server.distinguished_name.push(DnType::CommonName, "localhost");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        server.custom_extensions = extension
            .map(|content| CustomExtension::from_oid_content(&UNKNOWN_EXTENSION, content))
            .into_iter()
            .collect();
        let server_key = KeyPair::generate()?;
        let server_certificate = server.signed_by(&server_key, &issuer)?;

        let write = |name: &str, content: String| -> Result<PathBuf> {
            let path = directory.join(name);
            std::fs::write(&path, content)?;
            Ok(path)
        };
        Ok(Self {
            ca: write("ca.pem", authority_certificate.pem())?,
            cert: write("cert.pem", server_certificate.pem())?,
            key: write("key.pem", server_key.serialize_pem())?,
            spki: base64(&Sha256::digest(server_key.subject_public_key_info())),
        })
    }
}

/// Standard Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let padded = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for position in 0..4 {
            let symbol = ALPHABET[(bits >> (18 - 6 * position)) as usize & 63];
            text.push(if position <= group.len() { char::from(symbol) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_matches_the_vectors_of_rfc_4648() {
        let vectors =
            [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xfe]), "//4=");
    }
}

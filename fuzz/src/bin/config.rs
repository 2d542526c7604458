//! The text of an edge's configuration file: no panic; an error that names a line of the file; or a configuration that says
//! the same when it is written (`--print-config`) and read again, and builds or fails as the written one does. No file is
//! read but a certificate of the target's own.

#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use posthaste_edge::{CertificateFiles, Config, ConfigError, Edge};

/// What errors call the file.
const FILE: &str = "edge.toml";

fuzz_target!(|text: &str| {
    let config = match Config::parse(Path::new(FILE), text.to_owned()) {
        Ok(config) => config,
        Err(error) => return check_place(&error, text),
    };
    let written = config.to_toml();
    let again = Config::parse(Path::new(FILE), written.clone())
        .unwrap_or_else(|error| panic!("{error}\nin what was written:\n{written}"));
    assert_eq!(said(&again), said(&config), "{written}");
    assert_eq!(again.to_toml(), written);
    let (built, rebuilt) = (build(config), build(again));
    assert_eq!(built.is_ok(), rebuilt.is_ok(), "{built:?}\n{rebuilt:?}\n{written}");
    if let Err(error) = built {
        assert!(error.message().starts_with(FILE), "{error}");
    }
});

/// All that a configuration says, without the places where it says so.
fn said(config: &Config) -> String {
    let whole = format!("{:?} {:?}", config.edge, config.sites);
    let pieces =
        whole.split("span: ").map(|piece| piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    pieces.collect()
}

/// An error of the parser's has line and column of the text.
fn check_place(error: &ConfigError, text: &str) {
    let rest = error.message().strip_prefix(FILE).and_then(|rest| rest.strip_prefix(':'));
    let mut parts = rest.unwrap_or_else(|| panic!("{error}")).splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
    let (line, column) = (number().expect("a line"), number().expect("a column"));
    assert!((1..=text.matches('\n').count() + 1).contains(&line) && column > 0, "{error}");
}

/// As `edge check` does it, but with files that exist.
fn build(mut config: Config) -> Result<(), ConfigError> {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        std::fs::write(folder.path().join("chain"), made.cert.pem()).expect("its file");
        std::fs::write(folder.path().join("key"), made.signing_key.serialize_pem()).expect("its file");
        folder
    });
    let path = |name| folder.path().join(name);
    if let Some(acme) = config.edge.acme.take() {
        let mut inner = acme.into_inner();
        inner.state = path("acme");
        config.edge.acme = Some(toml::Spanned::new(0..0, inner));
    }
    for site in config.sites.values_mut() {
        if let Some(certificate) = site.certificate.take() {
            let own = CertificateFiles { chain: path("chain"), key: path("key") };
            site.certificate = Some(toml::Spanned::new(certificate.span(), own));
        }
    }
    let nobody = |_: Option<&Path>| Err("nobody is trusted".to_owned());
    Edge::new(&config, &nobody).map(drop)
}

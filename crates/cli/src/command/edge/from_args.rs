//! The configuration that the command line's options say.

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
    config.edge.acme = args.acme.clone().map(|state| {
        let mut acme = AcmeConfig { ca: args.acme_ca.clone(), ..AcmeConfig::lets_encrypt(state) };
        if let Some(directory) = &args.acme_directory {
            acme.directory.clone_from(directory);
        }
        somewhere(acme)
    });
    config.sites.insert(args.domain.clone(), site);
    config
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

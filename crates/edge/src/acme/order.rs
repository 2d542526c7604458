//! One certificate, from the account to the files.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error,
    Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use posthaste_endpoint::tls::crypto_provider;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use super::challenges::{Answer, Offered};
use super::{AcmeError, Authority, Challenge, store};

/// For the authority to look at the answers, and to certify.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(90));

/// The account at the authority: the one that is kept, or a new one.
pub(super) async fn account(authority: &Authority) -> Result<Account, AcmeError> {
    let _one_at_a_time = authority.account.lock().await;
    let path = authority.config.folder().join("account.json");
    let builder = Account::builder_with_http(Box::new(authority.http.clone()));
    if let Some(kept) = store::read(&path).await? {
        let credentials: AccountCredentials = serde_json::from_slice(&kept).map_err(|source| {
            let reason = format!("it is no account: {source}; delete it to get a new one");
            store::failed(&path, std::io::Error::other(reason))
        })?;
        return Ok(builder.from_credentials(credentials).await?);
    }
    let contact: Vec<&str> = authority.config.contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let (account, credentials) = builder.create(&new, authority.config.directory.clone(), None).await?;
    store::write(&path, serde_json::to_string(&credentials).map_err(Error::from)?).await?;
    Ok(account)
}

/// Has the authority certify these names. The chain and the key of its first certificate, in PEM.
pub(super) async fn issue(
    authority: &Authority,
    account: &Account,
    names: &[String],
    kind: Challenge,
    replaces: Option<CertificateIdentifier<'_>>,
) -> Result<String, AcmeError> {
    let identifiers: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
    let mut order = begin(account, &identifiers, replaces).await?;
    let offered = offer(authority, &mut order, kind).await?;
    let status = order.poll_ready(&PATIENCE).await?;
    if !matches!(status, OrderStatus::Ready | OrderStatus::Valid) {
        return Err(refusal(&mut order).await);
    }
    drop(offered);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    order.finalize_csr(params.serialize_request(&key)?.der()).await?;
    let chain = order.poll_certificate(&PATIENCE).await?;
    Ok(format!("{}\n{}", chain.trim_end(), key.serialize_pem()))
}

/// An order; one that says what it replaces has precedence (RFC 9773 section 5), but authorities refuse that once.
async fn begin(
    account: &Account,
    identifiers: &[Identifier],
    replaces: Option<CertificateIdentifier<'_>>,
) -> Result<Order, Error> {
    if let Some(replaces) = replaces
        && let Ok(order) = account.new_order(&NewOrder::new(identifiers).replaces(replaces)).await
    {
        return Ok(order);
    }
    account.new_order(&NewOrder::new(identifiers)).await
}

/// Gives the answers that the authority wants, and tells it to look.
async fn offer(authority: &Authority, order: &mut Order, kind: Challenge) -> Result<Vec<Offered>, AcmeError> {
    let mut offered = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status != AuthorizationStatus::Pending {
            continue;
        }
        let name = authorization.identifier().to_string();
        let wanted = match kind {
            Challenge::Http => ChallengeType::Http01,
            Challenge::TlsAlpn => ChallengeType::TlsAlpn01,
        };
        let mut challenge =
            authorization.challenge(wanted).ok_or_else(|| AcmeError::NoChallenge { name: name.clone() })?;
        let proof = challenge.key_authorization();
        let answer = match kind {
            Challenge::Http => {
                Answer::File { token: challenge.token.clone(), authorization: proof.as_str().to_owned() }
            }
            Challenge::TlsAlpn => {
                Answer::Certificate { key: certificate(&name, proof.digest().as_ref())?, name }
            }
        };
        offered.push(authority.challenges.offer(answer));
        challenge.set_ready().await?;
    }
    Ok(offered)
}

/// The certificate of RFC 8737 section 3.
fn certificate(name: &str, digest: &[u8]) -> Result<Arc<CertifiedKey>, AcmeError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key)?;
    let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let key = crypto_provider().key_provider.load_private_key(der).map_err(|_| Error::Crypto)?;
    // Not `from_der`, which reads the certificate and does not know its critical extension.
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

/// Why the authority does not certify.
async fn refusal(order: &mut Order) -> AcmeError {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        // What is known of it is from before.
        let Ok(state) = authorization.refresh().await else { continue };
        let name = state.identifier().to_string();
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem {
            return AcmeError::Refused { name, reason: problem.to_string() };
        }
    }
    AcmeError::Refused { name: "the order".to_owned(), reason: "the authority does not say why".to_owned() }
}

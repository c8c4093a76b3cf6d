//! The protocol's short values: tokens, codes, secrets, ids, scopes, numbers. Each has one spelling and
//! survives a round trip.

use accounts::Email;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use kernel::OfferId;
use oauth::{
    BearerToken, BrowserSecret, ClientId, CodeChallenge, CodeVerifier, Credential, CredentialKind,
    FamilySecretKind, Scope, ScopeSet, TokenKind,
};
use orders::{Carrier, OrderRef, TrackingNumber};
use url::Url;
use webhooks::{WebhookSecret, signature};

use crate::{always_text, is_printable};

#[test]
fn a_token_has_one_spelling_and_names_its_family() {
    let samples = [
        "ps_at_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
        "ps_pt_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
        "ps_rt_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH=",
        "ps_ac_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
        "ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
        "ps_se_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
    ];
    always_text(&samples, |text| {
        let is_written = |prefix: &str, family: &[u8]| {
            let bytes = URL_SAFE_NO_PAD
                .decode(text.strip_prefix(prefix).unwrap())
                .unwrap();
            assert!(bytes.len() == 48 && bytes.starts_with(family));
            assert_eq!(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)), text);
        };
        if let Some(token) = BearerToken::presented(text) {
            assert_eq!(token.reveal(), text);
            assert!(matches!(token.kind(), TokenKind::Access | TokenKind::Personal));
            is_written(token.kind().prefix(), token.key().family.uuid().as_bytes());
        }
        for kind in [CredentialKind::AuthorizationCode, CredentialKind::RefreshToken] {
            if let Some(credential) = Credential::parse(kind, text) {
                assert_eq!(credential.reveal(), text);
                is_written(kind.prefix(), credential.key().family.uuid().as_bytes());
            }
        }
        if let Ok(secret) = WebhookSecret::parse(text.to_owned()) {
            let signed = signature(&secret, text.as_bytes());
            let digits = signed.strip_prefix("sha256=").unwrap();
            assert!(
                digits.len() == 64
                    && digits
                        .bytes()
                        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            );
        }
        if let Some(secret) = BrowserSecret::presented(text) {
            assert_eq!(secret.reveal(), text);
            assert!(secret.is_csrf_token(&secret.csrf_token()) && !secret.is_csrf_token(text));
        }
    });
}

#[test]
fn ids_numbers_and_addresses_survive_a_round_trip() {
    let challenge = CodeChallenge::new("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned()).unwrap();
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let samples = [
        "psa_00000000000000000000000000000abc",
        "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e",
        "{urn:uuid:0197a5c48b1e7c3a9d2f4e5b6a7c8d9e}",
        "PL-2026-17",
        "620000000000000000000001",
        "anna@shop.example",
        verifier,
    ];
    always_text(&samples, |text| {
        if let Ok(id) = text.parse::<ClientId>() {
            assert_eq!(id.to_string(), text);
        }
        if let Ok(id) = text.parse::<OfferId>() {
            assert_eq!(id.to_string(), text);
        }
        if let Ok(OrderRef::Number(number)) = text.parse() {
            assert_eq!(number.as_str(), text);
        }
        if let Ok(number) = TrackingNumber::new(text.to_owned()) {
            for url in Carrier::ALL
                .iter()
                .filter_map(|carrier| carrier.tracking_url(&number))
            {
                assert_eq!(Url::parse(&url).unwrap().as_str(), url);
            }
        }
        if let Ok(given) = CodeVerifier::new(text.to_owned()) {
            assert_eq!(challenge.is_satisfied_by(&given), text == verifier);
        }
        if let Ok(address) = Email::new(text.to_owned()) {
            assert_eq!(address.as_str(), text);
            assert!(text.len() <= 254 && text.contains('@') && !text.chars().any(char::is_control));
        }
    });
}

#[test]
fn scopes_are_those_in_the_text() {
    always_text(
        &["offers:read offers:write orders:read", " offers:read  scope "],
        |text| match ScopeSet::parse(text) {
            Ok(scopes) => {
                assert_eq!(ScopeSet::parse(&scopes.to_string()), Ok(scopes));
                let mut names = text.split(' ').filter(|name| !name.is_empty());
                assert!(names.all(|name| Scope::parse(name).is_some_and(|scope| scopes.contains(scope))));
            }
            Err(unknown) => {
                assert!(text.contains(&unknown.0) && Scope::parse(&unknown.0).is_none());
                if !unknown.0.chars().any(char::is_control) {
                    is_printable(&unknown.to_string(), text.len());
                }
            }
        },
    );
}

//! Client authentication and the client-credentials grant, rule by rule.

use std::num::NonZeroU32;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{
    ApplicationStatus, ClientSecret, ClientType, InvalidClient, Purpose, RateLimit, RawRegistration,
    Registrar, ScopeSet, authenticate,
};

fn application(client_type: &str, scopes: &[&str]) -> (Application, ClientSecret) {
    let registration = RawRegistration {
        name: "Stock Sync".to_owned(),
        documentation_url: "https://docs.example".to_owned(),
        purpose: "own_use".to_owned(),
        client_type: client_type.to_owned(),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        accept_terms: true,
        ..RawRegistration::default()
    };
    let secret = ClientSecret::from_random(&[9; 32]);
    let id = ClientId::from(Uuid::from_u128(5));
    let owner = SellerId::from(Uuid::from_u128(1));
    let change = Application::register(
        registration.check().unwrap(),
        id,
        &secret,
        owner,
        Registrar::Seller,
        DateTime::<Utc>::UNIX_EPOCH,
    );
    (change.after, secret)
}

#[test]
fn purposes_decide_the_first_status() {
    assert_eq!(Purpose::OwnUse.first_status(), ApplicationStatus::Active);
    assert_eq!(
        Purpose::ForOtherSellers.first_status(),
        ApplicationStatus::Pending
    );
    assert_eq!(Purpose::Other.first_status(), ApplicationStatus::Pending);
}

#[test]
fn a_confidential_client_needs_its_own_secret() {
    let (app, secret) = application("confidential", &["offers:read"]);
    assert_eq!(authenticate(Some(&app), Some(secret.reveal())), Ok(()));
    assert_eq!(
        authenticate(Some(&app), Some("pss_wrong")),
        Err(InvalidClient::Credentials)
    );
    assert_eq!(authenticate(Some(&app), None), Err(InvalidClient::SecretMissing));
    assert_eq!(
        authenticate(Some(&app), Some("")),
        Err(InvalidClient::SecretMissing)
    );
    assert_eq!(
        authenticate(None, Some(secret.reveal())),
        Err(InvalidClient::Credentials)
    );
}

#[test]
fn a_public_client_has_no_secret_and_any_it_sends_is_wrong() {
    let (app, secret) = application("public", &["offers:read"]);
    assert_eq!(app.client_type, ClientType::Public);
    assert_eq!(authenticate(Some(&app), Some("")), Ok(()));
    assert_eq!(
        authenticate(Some(&app), Some(secret.reveal())),
        Err(InvalidClient::Credentials)
    );
}

#[test]
fn suspension_is_told_only_to_the_client_itself() {
    let (app, secret) = application("confidential", &["offers:read"]);
    let app = app.moved(ApplicationStatus::suspend).unwrap().after;
    assert_eq!(
        authenticate(Some(&app), Some(secret.reveal())),
        Err(InvalidClient::Suspended)
    );
    assert_eq!(
        authenticate(Some(&app), Some("pss_wrong")),
        Err(InvalidClient::Credentials)
    );
}

#[test]
fn a_rotated_secret_replaces_the_old_one() {
    let (app, old) = application("confidential", &["offers:read"]);
    let new = ClientSecret::from_random(&[1; 32]);
    let app = app.with_secret(&new).after;
    assert!(authenticate(Some(&app), Some(old.reveal())).is_err());
    assert!(authenticate(Some(&app), Some(new.reveal())).is_ok());
}

#[test]
fn adjusting_one_thing_keeps_the_other() {
    let (app, _) = application("confidential", &["offers:read"]);
    let limit = NonZeroU32::new(7);
    let app = app.adjusted(limit.map(RateLimit::Own), None).after;
    let app = app.adjusted(None, Some(ScopeSet::all())).after;
    assert_eq!((app.rate_limit, app.scopes), (limit, ScopeSet::all()));
    let app = app.adjusted(Some(RateLimit::Default), None).after;
    assert_eq!((app.rate_limit, app.scopes), (None, ScopeSet::all()));
}

#[test]
fn scopes_of_a_grant() {
    let (app, _) = application("confidential", &["offers:read", "orders:read"]);
    let scopes = |requested| client_credentials(&app, requested).map(|grant| grant.scopes.to_string());
    assert_eq!(scopes(None).unwrap(), "offers:read orders:read");
    assert_eq!(scopes(Some("")).unwrap(), "offers:read orders:read");
    assert_eq!(scopes(Some("orders:read orders:read")).unwrap(), "orders:read");
    assert!(matches!(scopes(Some(" ")), Err(ScopeRefused::Empty)));
    assert!(matches!(scopes(Some("messaging")), Err(ScopeRefused::NotHeld(_))));
    assert!(matches!(scopes(Some("no:such")), Err(ScopeRefused::Unknown(_))));
}

#[test]
fn kinds_go_by_the_words_in_the_rows() {
    let words = ["client_credentials", "authorization_code", "personal"];
    assert_eq!(FamilyKind::ALL.map(FamilyKind::as_str), words);
    assert_eq!(words.map(FamilyKind::parse), FamilyKind::ALL.map(Some));
    assert_eq!(FamilyKind::parse("refresh_token"), None);
}

#[test]
fn whose_families_are_meant_is_told_by_an_id() {
    let id = Uuid::from_u128(5);
    let (client_id, seller) = (ClientId::from(id), SellerId::from(id));
    assert_eq!(
        FamiliesOf::Application(client_id).to_string(),
        client_id.to_string()
    );
    assert_eq!(FamiliesOf::Seller(seller).to_string(), seller.to_string());
}

proptest! {
    #[test]
    fn a_grant_never_exceeds_the_application(held in 1_i32..(1 << 17), asked in 0_i32..(1 << 17)) {
        let (app, _) = application("confidential", &["offers:read"]);
        let held = ScopeSet::from_bits(held).unwrap();
        let asked = ScopeSet::from_bits(asked).unwrap();
        let app = app.adjusted(None, Some(held)).after;
        match client_credentials(&app, Some(&asked.to_string())) {
            Ok(grant) => prop_assert!(grant.scopes.is_subset_of(held) && !grant.scopes.is_empty()),
            Err(_) => prop_assert!(!asked.is_subset_of(held)),
        }
    }
}

#[test]
fn the_marketplace_is_not_told_of_what_it_registered_itself() {
    let events = |by| {
        let registration = RawRegistration {
            name: "Stock Sync".to_owned(),
            documentation_url: "https://docs.example".to_owned(),
            purpose: "other".to_owned(),
            client_type: "public".to_owned(),
            scopes: vec!["offers:read".to_owned()],
            accept_terms: true,
            ..RawRegistration::default()
        };
        let secret = ClientSecret::from_random(&[9; 32]);
        let id = ClientId::from(Uuid::from_u128(5));
        let owner = SellerId::from(Uuid::from_u128(1));
        let now = DateTime::<Utc>::UNIX_EPOCH;
        Application::register(registration.check().unwrap(), id, &secret, owner, by, now)
            .events
            .len()
    };
    assert_eq!(
        (events(Registrar::Seller), events(Registrar::Marketplace)),
        (1, 0)
    );
}

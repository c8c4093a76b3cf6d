//! Client authentication and the client-credentials grant, rule by rule.

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use kernel::Change;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{
    ApplicationEvent, ApplicationStatus, ClientSecret, ClientType, InvalidClient, Purpose, RateLimit,
    RawRegistration, Registrar, ScopeSet, Transition, authenticate,
};

fn register(
    client_type: &str,
    by: Registrar,
    scopes: &[&str],
) -> (Change<Application, ApplicationEvent>, ClientSecret) {
    let registration = RawRegistration {
        name: "Stock Sync".to_owned(),
        documentation_url: "https://docs.example".to_owned(),
        purpose: "own_use".to_owned(),
        client_type: client_type.to_owned(),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        accept_terms: true,
        ..RawRegistration::default()
    };
    let (registration, secret) = (registration.check().unwrap(), ClientSecret::from_random(&[9; 32]));
    let (id, owner) = (Uuid::from_u128(5).into(), Uuid::from_u128(1).into());
    let now = DateTime::<Utc>::UNIX_EPOCH;
    (
        Application::register(registration, id, &secret, owner, by, now),
        secret,
    )
}

fn application(client_type: &str, scopes: &[&str]) -> (Application, ClientSecret) {
    let (change, secret) = register(client_type, Registrar::Seller, scopes);
    (change.after, secret)
}

#[test]
fn purposes_decide_the_first_status() {
    use ApplicationStatus::{Active, Pending};
    let statuses = [Purpose::OwnUse, Purpose::ForOtherSellers, Purpose::Other].map(Purpose::first_status);
    assert_eq!(statuses, [Active, Pending, Pending]);
}

#[test]
fn a_client_is_authenticated_by_its_type_its_secret_and_its_status() {
    use InvalidClient::{Closed, Credentials, Deleted, SecretMissing, SecretOfPublic, Suspended};
    let (confidential, secret) = application("confidential", &["offers:read"]);
    let (public, _) = application("public", &["offers:read"]);
    let [suspended, suspended_public] =
        [&confidential, &public].map(|app| app.clone().moved(Transition::Suspend, None).unwrap().after);
    assert_eq!(public.client_type, ClientType::Public);
    let new = ClientSecret::from_random(&[1; 32]);
    let rotated = confidential.clone().with_secret(&new).after;
    let (right, wrong) = (secret.reveal(), "pss_wrong");
    for (application, secret, expected) in [
        (&confidential, right, Ok(())),
        (&confidential, wrong, Err(Credentials)),
        (&confidential, "", Err(SecretMissing)),
        (&public, "", Ok(())),
        (&public, right, Err(SecretOfPublic)),
        // Only the client itself learns that it is suspended.
        (&suspended, right, Err(Suspended { is_proved: true })),
        (&suspended, wrong, Err(Credentials)),
        (&suspended_public, "", Err(Suspended { is_proved: false })),
        (&rotated, right, Err(Credentials)),
        (&rotated, new.reveal(), Ok(())),
    ] {
        let result = authenticate(application, secret);
        assert_eq!(result, expected, "{application:?} {secret:?}");
    }
    for (end, application, secret, expected) in [
        (Closed, &confidential, right, Closed),
        (Closed, &confidential, wrong, Credentials),
        (Closed, &public, "", Credentials),
        (Deleted, &confidential, right, Deleted),
        (Deleted, &public, "", Deleted),
    ] {
        let refused = end.disclosed_to(application, secret);
        assert_eq!(refused, expected, "{application:?} {secret}");
    }
    let seen = [Credentials, Deleted].map(|refusal| (refusal.to_string(), refusal.reason()));
    assert_eq!(
        seen[0], seen[1],
        "the caller does not learn that there was an application"
    );
}

#[test]
fn an_adjustment_leaves_the_rest_unchanged() {
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
fn a_selection_of_families_is_logged_by_its_id() {
    let (client_id, seller) = (ClientId::from(Uuid::max()), SellerId::from(Uuid::max()));
    let written = [FamiliesOf::Application(client_id), FamiliesOf::Seller(seller)].map(|of| of.to_string());
    assert_eq!(written, [client_id.to_string(), seller.to_string()]);
}

proptest! {
    #[test]
    fn a_grant_never_exceeds_the_application(held in 1_i32..(1 << 17), requested in 0_i32..(1 << 17)) {
        let (app, _) = application("confidential", &["offers:read"]);
        let held = ScopeSet::from_bits(held).unwrap();
        let requested = ScopeSet::from_bits(requested).unwrap();
        let app = app.adjusted(None, Some(held)).after;
        match client_credentials(&app, Some(&requested.to_string())) {
            Ok(grant) => prop_assert!(grant.scopes.is_subset_of(held) && !grant.scopes.is_empty()),
            Err(_) => prop_assert!(!requested.is_subset_of(held)),
        }
    }
}

#[test]
fn only_a_sellers_registration_is_announced() {
    let announced = |by| register("public", by, &["offers:read"]).0.events.len();
    assert_eq!([Registrar::Seller, Registrar::Marketplace].map(announced), [1, 0]);
}

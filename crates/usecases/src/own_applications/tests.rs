//! Changes to a seller's applications, over mocks.

use std::sync::{Arc, Mutex};

use kernel::{MockSealer, SellerId};
use oauth::{MockApplicationStore, MockPanelStore, MockSellerStore, RawEdit, RawRegistration, SecretHash};
use uuid::Uuid;

use super::*;
use crate::test_support::{chance, now, seller, sent_form};

fn owner() -> SellerId {
    Uuid::from_u128(1).into()
}

fn by() -> ActingSeller {
    ActingSeller {
        seller: owner(),
        address: std::net::Ipv4Addr::LOCALHOST.into(),
    }
}

fn id() -> ClientId {
    Uuid::from_u128(5).into()
}

fn application(owner: SellerId, client_type: ClientType) -> Application {
    Application {
        client_type,
        built_in: false,
        ..Application::built_in(id(), owner, now()).after
    }
}

/// The ports; what is saved and what is sealed is written down.
struct World {
    sellers: MockSellerStore,
    applications: MockApplicationStore,
    panel: MockPanelStore,
    sealer: MockSealer,
    saved: Arc<Mutex<Vec<Application>>>,
    sealed: Arc<Mutex<String>>,
    noted: Arc<Mutex<Vec<Action>>>,
}

impl World {
    fn new(found: Option<Application>, first: bool) -> Self {
        let mut world = Self {
            sellers: MockSellerStore::new(),
            applications: MockApplicationStore::new(),
            panel: MockPanelStore::new(),
            sealer: MockSealer::new(),
            saved: Arc::default(),
            sealed: Arc::default(),
            noted: Arc::default(),
        };
        world
            .sellers
            .expect_lock_seller()
            .returning(|id| Ok(Some(seller(id))));
        world
            .applications
            .expect_lock_application()
            .returning(move |_| Ok(found.clone()));
        let saved = world.saved.clone();
        world
            .applications
            .expect_save_application()
            .returning(move |change| {
                saved.lock().unwrap().push(change.after);
                Ok(())
            });
        let sealed = world.sealed.clone();
        world.sealer.expect_seal().returning(move |_, _, plain| {
            *sealed.lock().unwrap() = String::from_utf8(plain.to_vec()).unwrap();
            plain.to_vec()
        });
        world
            .panel
            .expect_keep_flash()
            .returning(move |_, _, _| Ok(first));
        let noted = world.noted.clone();
        world.panel.expect_note().returning(move |_, _, action, _| {
            noted.lock().unwrap().push(action);
            Ok(())
        });
        world
    }

    fn stores(&self) -> Stores<'_> {
        Stores {
            sellers: &self.sellers,
            applications: &self.applications,
            panel: &self.panel,
        }
    }

    fn sent(&self) -> Sent<'_> {
        Sent {
            form: sent_form(),
            sealer: &self.sealer,
        }
    }

    fn saved(&self) -> Vec<Application> {
        self.saved.lock().unwrap().clone()
    }

    fn noted(&self) -> Vec<Action> {
        self.noted.lock().unwrap().clone()
    }

    fn shown_secret(&self) -> Option<SecretHash> {
        let sealed = self.sealed.lock().unwrap();
        let secret = sealed.split('"').find(|part| part.starts_with("pss_"));
        secret.map(SecretHash::of)
    }
}

fn registration(client_type: &str) -> Registration {
    RawRegistration {
        name: "Stock Sync".to_owned(),
        documentation_url: "https://docs.example".to_owned(),
        purpose: "own_use".to_owned(),
        client_type: client_type.to_owned(),
        scopes: vec!["offers:read".to_owned()],
        accept_terms: true,
        ..RawRegistration::default()
    }
    .check()
    .unwrap()
}

async fn registered(world: &World, client_type: &str) -> Result<(), Failure<Refusal>> {
    let registration = registration(client_type);
    register(
        world.stores(),
        &chance(),
        (by(), world.sent()),
        registration,
        now(),
    )
    .await
}

#[tokio::test]
async fn the_secret_that_will_be_shown_is_the_one_that_is_stored() {
    let world = World::new(None, true);
    registered(&world, "confidential").await.unwrap();
    let saved = world.saved();
    assert_eq!(saved[0].secret, world.shown_secret());
    assert!(saved[0].secret.is_some());
    assert_eq!(saved[0].owner, owner());
    assert_eq!(world.noted(), [Action::ApplicationRegistered]);
}

#[tokio::test]
async fn a_public_application_is_shown_without_secret() {
    let world = World::new(None, true);
    registered(&world, "public").await.unwrap();
    assert_eq!(world.shown_secret(), None);
    assert!(!world.sealed.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_form_sent_twice_does_nothing_more() {
    let world = World::new(Some(application(owner(), ClientType::Confidential)), false);
    let again = registered(&world, "confidential").await;
    assert!(matches!(
        again,
        Err(Failure::Refused(Refusal::Form(NumberUsed::BySame)))
    ));
    let again = rotate_secret(world.stores(), &chance(), (by(), world.sent()), id()).await;
    assert!(matches!(
        again,
        Err(Failure::Refused(Refusal::Form(NumberUsed::BySame)))
    ));
    assert!(world.saved().is_empty() && world.noted().is_empty());
}

#[tokio::test]
async fn rotation_replaces_the_secret_of_a_confidential_application_alone() {
    let world = World::new(Some(application(owner(), ClientType::Confidential)), true);
    rotate_secret(world.stores(), &chance(), (by(), world.sent()), id())
        .await
        .unwrap();
    assert_eq!(world.saved()[0].secret, world.shown_secret());
    assert_eq!(world.noted(), [Action::SecretRotated]);
    let world = World::new(Some(application(owner(), ClientType::Public)), true);
    let refused = rotate_secret(world.stores(), &chance(), (by(), world.sent()), id()).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::NoSecret))));
}

#[tokio::test]
async fn an_edit_and_a_deletion_are_saved_and_noted() {
    let mut world = World::new(Some(application(owner(), ClientType::Public)), true);
    world
        .applications
        .expect_delete_application()
        .once()
        .returning(|_| Ok(true));
    let change = RawEdit {
        description: Some("Private".to_owned()),
        redirect_uris: Vec::new(),
        scopes: vec!["messaging".to_owned()],
    };
    edit(world.stores(), by(), id(), change.check().unwrap())
        .await
        .unwrap();
    assert_eq!(world.saved()[0].scopes.to_string(), "messaging");
    delete(world.stores(), by(), id()).await.unwrap();
    assert_eq!(
        world.noted(),
        [Action::ApplicationChanged, Action::ApplicationDeleted]
    );
}

#[tokio::test]
async fn somebody_elses_and_the_built_in_application_are_none() {
    let elses = application(Uuid::from_u128(2).into(), ClientType::Confidential);
    let built_in = Application {
        built_in: true,
        ..application(owner(), ClientType::Confidential)
    };
    for found in [None, Some(elses), Some(built_in)] {
        let world = World::new(found, true);
        let scopes = vec!["messaging".to_owned()];
        let change = RawEdit {
            scopes,
            ..RawEdit::default()
        };
        let refusals = [
            edit(world.stores(), by(), id(), change.check().unwrap()).await,
            rotate_secret(world.stores(), &chance(), (by(), world.sent()), id()).await,
            delete(world.stores(), by(), id()).await,
        ];
        for refused in refusals {
            assert!(matches!(
                refused,
                Err(Failure::Refused(Refusal::NoSuchApplication))
            ));
        }
        assert!(world.saved().is_empty() && world.noted().is_empty());
    }
}

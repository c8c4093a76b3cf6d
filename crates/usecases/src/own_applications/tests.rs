//! Changes to a seller's applications, over mocks.

use oauth::{RawEdit, RawRegistration, SecretHash};
use uuid::Uuid;

use super::*;
use crate::MockTransaction;
use crate::test_support::{
    Recorded, application, by, chance, knowing_sellers, now, recording_sealer, refusal, sent_form,
};

/// A transaction that finds the application, and records what is saved, sealed and logged.
struct World {
    tx: MockTransaction,
    sealer: kernel::MockSealer,
    saved: Recorded<Application>,
    sealed: Recorded<String>,
    noted: Recorded<Action>,
}

impl World {
    fn new(found: Option<Application>, form_is_new: bool) -> Self {
        let (saved, noted) = (Recorded::default(), Recorded::default());
        let mut tx = knowing_sellers(MockTransaction::new(), false);
        tx.expect_lock_application().returning(move |_| Ok(found.clone()));
        let record = saved.clone();
        tx.expect_save_application()
            .returning(move |change| record.add(change.after));
        tx.expect_keep_flash().returning(move |_, _, _| Ok(form_is_new));
        let record = noted.clone();
        tx.expect_note()
            .returning(move |_, _, action, _| record.add(action));
        let (sealer, texts) = recording_sealer();
        Self {
            tx,
            sealer,
            saved,
            sealed: texts,
            noted,
        }
    }

    fn sent(&self) -> Sent<'_> {
        Sent {
            form: sent_form(),
            sealer: &self.sealer,
        }
    }

    async fn register(&self, client_type: &str) -> Result<(), Failure<Refusal>> {
        let registration = RawRegistration {
            name: "Stock Sync".to_owned(),
            documentation_url: "https://docs.example".to_owned(),
            purpose: "own_use".to_owned(),
            client_type: client_type.to_owned(),
            scopes: vec!["offers:read".to_owned()],
            accept_terms: true,
            ..RawRegistration::default()
        };
        let registration = registration.check().unwrap();
        let form = (by(), self.sent());
        register(&self.tx, &self.tx, &chance(), form, registration, now()).await
    }

    async fn rotate_secret(&self) -> Result<(), Failure<Refusal>> {
        let id = application().client_id;
        rotate_secret(&self.tx, &self.tx, &chance(), (by(), self.sent()), id).await
    }

    async fn edit(&self) -> Result<(), Failure<Refusal>> {
        let scopes = vec!["messaging".to_owned()];
        let change = RawEdit {
            scopes,
            ..RawEdit::default()
        };
        let change = change.check().unwrap();
        edit(&self.tx, &self.tx, by(), application().client_id, change).await
    }

    async fn delete(&self) -> Result<(), Failure<Refusal>> {
        delete(&self.tx, &self.tx, by(), application().client_id).await
    }

    fn shown_secret(&self) -> Option<SecretHash> {
        let sealed = self.sealed.all().concat();
        let secret = sealed.split('"').find(|part| part.starts_with("pss_"));
        secret.map(SecretHash::of)
    }
}

fn public() -> Application {
    Application {
        client_type: ClientType::Public,
        ..application()
    }
}

#[tokio::test]
async fn the_secret_that_will_be_shown_is_the_one_that_is_stored() {
    let world = World::new(None, true);
    world.register("confidential").await.unwrap();
    let saved = world.saved.all();
    assert_eq!(saved[0].secret, world.shown_secret());
    assert!(saved[0].secret.is_some());
    assert_eq!(saved[0].owner, by().seller);
    assert_eq!(world.noted.all(), [Action::ApplicationRegistered]);

    let world = World::new(None, true);
    world.register("public").await.unwrap();
    assert_eq!(world.shown_secret(), None);
    assert!(!world.sealed.all().is_empty());
}

#[tokio::test]
async fn a_form_sent_twice_does_nothing_more() {
    let world = World::new(Some(application()), false);
    for again in [world.register("confidential").await, world.rotate_secret().await] {
        assert_eq!(refusal(again), Refusal::Form(NumberUsed::BySame));
    }
    assert!(world.saved.all().is_empty() && world.noted.all().is_empty());
}

#[tokio::test]
async fn rotation_replaces_the_secret_of_a_confidential_application_alone() {
    let world = World::new(Some(application()), true);
    world.rotate_secret().await.unwrap();
    assert_eq!(world.saved.all()[0].secret, world.shown_secret());
    assert_eq!(world.noted.all(), [Action::SecretRotated]);
    let refused = World::new(Some(public()), true).rotate_secret().await;
    assert_eq!(refusal(refused), Refusal::NoSecret);
}

#[tokio::test]
async fn an_edit_and_a_deletion_are_saved_and_noted() {
    let mut world = World::new(Some(public()), true);
    world
        .tx
        .expect_delete_application()
        .once()
        .returning(|_| Ok(true));
    world.edit().await.unwrap();
    assert_eq!(world.saved.all()[0].scopes.to_string(), "messaging");
    world.delete().await.unwrap();
    assert_eq!(
        world.noted.all(),
        [Action::ApplicationChanged, Action::ApplicationDeleted]
    );
}

#[tokio::test]
async fn somebody_elses_and_the_built_in_application_are_none() {
    let elses = Application {
        owner: Uuid::from_u128(2).into(),
        ..application()
    };
    let built_in = Application {
        built_in: true,
        ..application()
    };
    for found in [None, Some(elses), Some(built_in)] {
        let world = World::new(found, true);
        let refusals = [
            world.edit().await,
            world.rotate_secret().await,
            world.delete().await,
        ];
        assert!(
            refusals
                .into_iter()
                .all(|refused| refusal(refused) == Refusal::NoSuchApplication)
        );
        assert!(world.saved.all().is_empty() && world.noted.all().is_empty());
    }
}

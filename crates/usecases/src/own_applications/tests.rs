//! Changes to a seller's applications, over mocks.

use oauth::{Count, SecretHash};

use super::*;
use crate::MockTransaction;
use crate::test_support::{
    Recorded, application, by, chance, knowing_sellers, now, recording_sealer, refusal, registration,
    sent_form,
};

const LIMITS: ApplicationLimits = ApplicationLimits {
    per_seller: 5,
    registered_per_hour: 1,
};

/// A transaction that finds the application, and records what is saved, sealed and logged.
struct World {
    tx: MockTransaction,
    sealer: kernel::MockSealer,
    saved: Recorded<Application>,
    sealed: Recorded<String>,
    logged: Recorded<Action>,
}

impl World {
    fn new(found: Option<Application>, form_is_new: bool) -> Self {
        let (saved, logged) = (Recorded::default(), Recorded::default());
        let mut tx = knowing_sellers(MockTransaction::new(), false);
        tx.expect_lock_application().returning(move |_| Ok(found.clone()));
        let record = saved.clone();
        tx.expect_save_application()
            .returning(move |change| record.add(change.after));
        tx.expect_delete_application().returning(|_| Ok(true));
        tx.expect_count_applications()
            .returning(|_| Ok(usize::try_from(LIMITS.per_seller).unwrap() - 1));
        let first = Count {
            place: 1,
            resets_at: now(),
            counted_at: now(),
        };
        tx.expect_count_action().returning(move |_, _| Ok(first));
        tx.expect_store_flash().returning(move |_, _, _| Ok(form_is_new));
        let record = logged.clone();
        tx.expect_log_action()
            .returning(move |_, _, action, _, _| record.add(action));
        let (sealer, texts) = recording_sealer();
        Self {
            tx,
            sealer,
            saved,
            sealed: texts,
            logged,
        }
    }

    async fn register(&self, client_type: &str) -> Result<(), Failure<Refusal>> {
        let registration = registration(client_type);
        let (tx, sealer) = (&self.tx, &self.sealer);
        register(
            tx,
            tx,
            &chance(),
            sent_form(),
            sealer,
            registration,
            LIMITS,
            now(),
        )
        .await
    }

    async fn rotate_secret(&self) -> Result<(), Failure<Refusal>> {
        let id = application().client_id;
        let (tx, sealer) = (&self.tx, &self.sealer);
        rotate_secret(tx, tx, &chance(), sent_form(), sealer, id, now()).await
    }

    fn shown_secret(&self) -> Option<SecretHash> {
        let sealed = self.sealed.all().concat();
        let secret = sealed.split('"').find(|part| part.starts_with("pss_"));
        secret.map(SecretHash::of)
    }

    fn changed_nothing(&self) -> bool {
        self.saved.all().is_empty() && self.logged.all().is_empty()
    }
}

#[tokio::test]
async fn only_a_confidential_client_gets_a_secret() {
    for (client_type, secret) in [("confidential", true), ("public", false)] {
        let world = World::new(None, true);
        world.register(client_type).await.unwrap();
        assert_eq!(world.saved.all()[0].secret, world.shown_secret());
        assert_eq!(world.shown_secret().is_some(), secret);
        assert!(!world.sealed.all().is_empty());
        assert_eq!(world.saved.all()[0].owner, by().seller);
        assert_eq!(world.logged.all(), [Action::ApplicationRegistered]);
    }
}

fn public() -> Application {
    let mut application = application();
    application.client_type = ClientType::Public;
    application
}

#[tokio::test]
async fn a_form_that_is_sent_twice_takes_effect_once() {
    let world = World::new(Some(application()), false);
    for again in [world.register("confidential").await, world.rotate_secret().await] {
        assert_eq!(refusal(again), Refusal::Form(NumberUsed::BySame));
    }
    assert!(world.changed_nothing());
}

#[tokio::test]
async fn rotation_replaces_the_secret_of_a_confidential_application_alone() {
    let world = World::new(Some(application()), true);
    world.rotate_secret().await.unwrap();
    assert_eq!(world.saved.all()[0].secret, world.shown_secret());
    assert_eq!(world.logged.all(), [Action::SecretRotated]);
    let refused = World::new(Some(public()), true).rotate_secret().await;
    assert_eq!(refusal(refused), Refusal::NoSecret);
}

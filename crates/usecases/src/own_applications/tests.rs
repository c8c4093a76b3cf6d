//! Changes to a seller's applications, over mocks.

use oauth::{Count, SecretHash};

use super::*;
use crate::MockTransaction;
use crate::test_support::{Recorded, application, by, chance, knowing_sellers, now, refusal, registration};

const LIMITS: ApplicationLimits = ApplicationLimits {
    per_seller: 5,
    registered_per_hour: 1,
};

/// A transaction that finds the application, and records what is saved and logged.
struct World {
    tx: MockTransaction,
    saved: Recorded<Application>,
    logged: Recorded<Action>,
}

impl World {
    fn new(found: Option<Application>) -> Self {
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
        let record = logged.clone();
        tx.expect_log_action()
            .returning(move |_, _, action, _, _| record.add(action));
        Self { tx, saved, logged }
    }

    async fn register(&self, client_type: &str) -> Result<ShownSecret, Failure<RegistrationRefusal>> {
        let (tx, registration) = (&self.tx, registration(client_type));
        register(tx, tx, &chance(), by(), registration, LIMITS, now()).await
    }

    async fn rotate_secret(&self) -> Result<ShownSecret, Failure<Refusal>> {
        let (tx, id) = (&self.tx, application().client_id);
        rotate_secret(tx, tx, &chance(), by(), id, now()).await
    }
}

#[tokio::test]
async fn only_a_confidential_client_gets_a_secret() {
    for (client_type, secret) in [("confidential", true), ("public", false)] {
        let world = World::new(None);
        let ShownSecret::Registered(id, shown) = world.register(client_type).await.unwrap() else {
            panic!("{client_type}")
        };
        let saved = &world.saved.all()[0];
        assert_eq!(saved.secret, shown.as_deref().map(SecretHash::of));
        assert_eq!(shown.is_some(), secret);
        assert_eq!((saved.client_id.uuid(), saved.owner), (id, by().seller));
        assert_eq!(world.logged.all(), [Action::ApplicationRegistered]);
    }
}

fn public() -> Application {
    let mut application = application();
    application.client_type = ClientType::Public;
    application
}

#[tokio::test]
async fn rotation_replaces_the_secret_of_a_confidential_application_alone() {
    let world = World::new(Some(application()));
    let ShownSecret::Rotated(_, shown) = world.rotate_secret().await.unwrap() else {
        panic!("not rotated")
    };
    assert_eq!(world.saved.all()[0].secret, Some(SecretHash::of(&shown)));
    assert_eq!(world.logged.all(), [Action::SecretRotated]);
    let refused = World::new(Some(public())).rotate_secret().await;
    assert_eq!(refusal(refused), Refusal::NoSecret);
}

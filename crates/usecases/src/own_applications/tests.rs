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

/// The next registration has this place in its hour.
fn counting(tx: &mut MockTransaction, place: u64) {
    let count = Count {
        place,
        resets_at: now(),
        counted_at: now(),
    };
    tx.expect_count_action()
        .withf(|limiter, subject| {
            *limiter == Limiter::Registrations && *subject == Subject::seller(by().seller)
        })
        .returning(move |_, _| Ok(count));
}

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
        counting(&mut tx, 1);
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
async fn only_a_confidential_client_gets_a_secret_and_a_closed_account_nothing() {
    for (client_type, secret) in [("confidential", true), ("public", false)] {
        let tx = World::new(None, true).tx;
        let (chance, registration) = (chance(), registration(client_type));
        let (owner, by) = (by().seller, Registrar::Seller);
        let registered = register_application(
            &tx,
            &tx,
            &chance,
            owner,
            by,
            registration,
            LIMITS.per_seller,
            now(),
        );
        let registered = registered.await.unwrap();
        assert_eq!(registered.client_secret.is_some(), secret);
        assert_eq!(registered.status, ApplicationStatus::Pending);

        let world = World::new(None, true);
        world.register(client_type).await.unwrap();
        assert_eq!(world.saved.all()[0].secret, world.shown_secret());
        assert_eq!(world.shown_secret().is_some(), secret);
        assert!(!world.sealed.all().is_empty());
        assert_eq!(world.saved.all()[0].owner, owner);
        assert_eq!(world.logged.all(), [Action::ApplicationRegistered]);
    }
    let closed = knowing_sellers(MockTransaction::new(), true);
    let (owner, registration) = (by().seller, registration("public"));
    let chance = chance();
    let refused = register_application(
        &closed,
        &closed,
        &chance,
        owner,
        Registrar::Seller,
        registration,
        LIMITS.per_seller,
        now(),
    );
    let refused = refused.await;
    let is_closed = RegistrationRefusal::Account(NotOpen::SellerClosed);
    assert_eq!(refusal(refused), is_closed);
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

#[tokio::test]
async fn one_application_too_many_is_refused_and_one_registration_too_many_in_an_hour() {
    let tx = |living, place| {
        let mut tx = knowing_sellers(MockTransaction::new(), false);
        tx.expect_store_flash().returning(|_, _, _| Ok(true));
        tx.expect_count_applications().returning(move |_| Ok(living));
        tx.expect_save_application().returning(|_| Ok(()));
        counting(&mut tx, place);
        tx
    };
    for (living, place, too_often) in [(5, 1, false), (6, 1, false), (4, 2, true)] {
        let (tx, (sealer, _)) = (tx(living, place), recording_sealer());
        let (form, registration) = (sent_form(), registration("public"));
        let refused = register(&tx, &tx, &chance(), form, &sealer, registration, LIMITS, now()).await;
        let Refusal::Registration(refused) = refusal(refused) else {
            panic!("{living}")
        };
        assert_eq!(matches!(refused, RegistrationRefusal::TooOften(_)), too_often);
        assert_eq!(refused == RegistrationRefusal::TooMany, !too_often);
    }
}

//! The application of the consent walk on the sandbox's page.

use adapter_postgres::Database;
use adapter_sealing::SystemRandomness;
use kernel::{Change, SellerId};
use oauth::{Application, ApplicationEvent, ClientId, ClientType, Purpose, Registration, Scope, Transition};
use usecases::{Announcement, Failure, LockSet, transact};

use super::seed::register;
use crate::command::use_case_error;

const NAME: &str = "Consent walk";

/// Registers the application, or updates its redirect URI. That is on loopback, which registration refuses to all others.
pub(super) async fn register_client(
    database: &Database,
    owner: SellerId,
    redirect_uri: String,
) -> anyhow::Result<ClientId> {
    let found = database.application_directory().application_named(NAME).await?;
    let known = found.as_ref().map(|found| found.client_id);
    if let Some(found) = found
        && found.redirect_uris == [redirect_uri.as_str()]
    {
        return Ok(found.client_id);
    }
    let registration = Registration {
        name: NAME.to_owned(),
        description: None,
        documentation_url: "https://consent-walk.example/docs".to_owned(),
        purpose: Purpose::ForOtherSellers,
        client_type: ClientType::Public,
        redirect_uris: vec![redirect_uri],
        scopes: [Scope::OffersRead, Scope::OrdersRead].into_iter().collect(),
    };
    let (units, locks) = (database.units(), LockSet::default());
    let work = (SystemRandomness::new(), known, registration);
    let client = transact(&*units, &locks, &work, |tx, (randomness, known, registration)| {
        Box::pin(async move {
            let registration = registration.clone();
            let Some(client_id) = *known else {
                let moves = &[Transition::Accept];
                let registered = register(tx, randomness, owner, registration, moves).await?;
                return Ok(registered.client_id);
            };
            if let Some(before) = tx.lock_application(client_id).await? {
                let after = Application {
                    redirect_uris: registration.redirect_uris,
                    ..before
                };
                let change = Change::of_existing(after, vec![ApplicationEvent::Changed]);
                let change = Announcement::of_application(change, tx.now());
                tx.save_application(change).await?;
            }
            Ok::<_, Failure<anyhow::Error>>(client_id)
        })
    });
    client.await.map_err(use_case_error)
}

//! The application of the consent walk on the sandbox's page.

use adapter_postgres::Database;
use adapter_sealing::SystemRandomness;
use kernel::SellerId;
use oauth::{ClientId, ClientType, Purpose, Registration, Scope, Transition};
use usecases::{LockSet, transact};

use super::seed::register;
use crate::command::use_case_error;

/// Registers it, or finds that of an earlier start. Its redirect URI is an address of this machine, which no
/// other application may have.
pub(super) async fn client(
    database: &Database,
    owner: SellerId,
    port: u16,
    redirect_uri: String,
) -> anyhow::Result<ClientId> {
    let name = format!("Consent walk {port}");
    if let Some(found) = database.application_directory().application_named(&name).await? {
        return Ok(found.client_id);
    }
    let registration = Registration {
        name,
        description: None,
        documentation_url: "https://consent-walk.example/docs".to_owned(),
        purpose: Purpose::ForOtherSellers,
        client_type: ClientType::Public,
        redirect_uris: vec![redirect_uri],
        scopes: [Scope::OffersRead, Scope::OrdersRead].into_iter().collect(),
    };
    let (units, locks) = (database.units(), LockSet::default());
    let work = (SystemRandomness::new(), registration);
    let registered = transact(&*units, &locks, &work, |tx, (randomness, registration)| {
        let moves = &[Transition::Accept];
        Box::pin(register(tx, randomness, owner, registration.clone(), moves))
    });
    Ok(registered.await.map_err(use_case_error)?.client_id)
}

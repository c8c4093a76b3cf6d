//! The application of the consent walk on the sandbox's page.

use adapter_postgres::Database;
use adapter_sealing::SystemRandomness;
use kernel::SellerId;
use oauth::{ClientId, ClientType, Purpose, Registrar, Registration, Scope, Transition};
use usecases::manage_application::change_status;
use usecases::own_applications::register_application;
use usecases::{ActingOperator, Failure, LockSet, Transaction, transact};

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
    let (units, locks, work) = (database.units(), LockSet::default(), (owner, registration));
    let registered = transact(&*units, &locks, &work, |tx, (owner, registration)| {
        Box::pin(register(tx, *owner, registration.clone()))
    });
    registered.await.map_err(use_case_error)
}

async fn register(
    tx: &dyn Transaction,
    owner: SellerId,
    registration: Registration,
) -> Result<ClientId, Failure<anyhow::Error>> {
    let (randomness, by) = (SystemRandomness::new(), Registrar::Seller);
    let registered =
        register_application(tx, tx, &randomness, owner, by, registration, u32::MAX, tx.now()).await;
    let client_id = registered.map_err(Failure::refused_as)?.client_id;
    let (by, accept) = (ActingOperator::CommandLine, Transition::Accept);
    let accepted = change_status(tx, tx, by, client_id, accept, None, tx.now()).await;
    accepted.map_err(Failure::refused_as)?;
    Ok(client_id)
}

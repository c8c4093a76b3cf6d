//! What the simulated carriers say of a parcel, as the sandbox's page sets it.

use std::sync::Arc;

use adapter_carriers::SimulatedCarriers;
use adapter_postgres::Database;
use adapter_sandbox_page::SimulatedParcels;
use async_trait::async_trait;
use kernel::error_chain;
use orders::{TrackingNumber, TrackingStatus};

pub(super) struct Parcels {
    pub(super) carriers: Arc<SimulatedCarriers>,
    pub(super) database: Database,
}

#[async_trait]
impl SimulatedParcels for Parcels {
    async fn set(&self, tracking_number: &str, status: &str) -> Result<(), String> {
        let number = TrackingNumber::new(tracking_number.to_owned())
            .map_err(|invalid| format!("The tracking number {invalid}."))?;
        let status =
            TrackingStatus::parse(status).ok_or("Carriers know no such status: choose one of the list.")?;
        self.carriers.set(number, status);
        let asked = self.database.ask_about_parcels(tracking_number).await;
        asked.map_err(|error| {
            tracing::warn!(
                cause = error_chain(&error),
                "carriers are not asked about a parcel at once"
            );
            "It is set, but the database does not answer now: carriers are asked at the next look-up."
                .to_owned()
        })
    }
}

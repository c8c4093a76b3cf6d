//! Carriers, as slow and as forgetful as they are.

use async_trait::async_trait;
use orders::{Carrier, CarrierLookup, Lookup, Sighting, TrackingNumber, TrackingStatus};

use crate::{Met, Simulator};

/// Carriers that answer as the lot falls.
#[derive(Debug, Clone)]
pub(crate) struct Carriers(pub(crate) Simulator);

#[async_trait]
impl CarrierLookup for Carriers {
    async fn look_up(&self, _carrier: Carrier, _number: &TrackingNumber) -> Lookup {
        self.0.pause(1, 2_500).await;
        let met = match self.0.draw(|chance| chance.u8(..4)) {
            0 => Met::ParcelUnknown,
            1 => Met::CarrierSilent,
            2 => Met::ParcelUnderWay,
            _ => Met::ParcelDelivered,
        };
        self.0.count(met);
        let status = match met {
            Met::ParcelUnknown => return Lookup::NotFound,
            Met::CarrierSilent => return Lookup::Unavailable("no answer in time".to_owned()),
            Met::ParcelUnderWay => TrackingStatus::InTransit,
            _ => TrackingStatus::Delivered,
        };
        Lookup::Found(Sighting {
            status,
            at: Some(self.0.now()),
            raw_code: String::new(),
        })
    }
}

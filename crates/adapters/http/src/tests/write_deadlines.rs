//! How long a request that writes waits for a store that is silent, and for whom it waits beyond that.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::test::{TestRequest, call_service, init_service};
use async_trait::async_trait;
use kernel::{Claim, Claimed, IdempotencyClaims, Remembered, StoreError};
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use tokio::time::{Instant, sleep, timeout};
use usecases::{Transaction, UnitOfWork};

use super::fixture::Fixture;
use super::trade::{PARCEL, SHIPMENTS, paid, patch, post, transaction};
use crate::{Public, configure};

/// Sends the request with a key; gives the status and how long the answer took.
async fn timed(public: Public, request: TestRequest) -> (u16, f64) {
    let app = init_service(App::new().configure(configure(public))).await;
    let request = request.insert_header(("idempotency-key", "k"));
    let began = Instant::now();
    let call = call_service(&app, request.to_request());
    let response = timeout(Duration::from_mins(1), call).await.expect("no answer");
    (response.status().as_u16(), began.elapsed().as_secs_f64())
}

/// A store whose transactions and claims never come, or never end.
struct Silent {
    claims: bool,
}

#[async_trait]
impl UnitOfWork for Silent {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        pending().await
    }
}

#[async_trait]
impl IdempotencyClaims for Silent {
    async fn claim(&self, _: &Claim, _: Duration) -> Result<Claimed, StoreError> {
        if self.claims {
            Ok(Claimed::Run)
        } else {
            pending().await
        }
    }
    async fn release(&self, _: &Claim) -> Result<(), StoreError> {
        pending().await
    }
    async fn outcome(&self, _: &Claim) -> Result<Option<Remembered>, StoreError> {
        pending().await
    }
}

#[actix_web::test]
async fn a_store_that_falls_silent_is_given_up_within_3_seconds() {
    tokio::time::pause();
    for claims in [true, false] {
        let mut public = Fixture::writing().public();
        public.units = Arc::new(Silent { claims });
        public.claims = Arc::new(Silent { claims });
        let (status, seconds) = timed(public, patch(r#"{"stock":1}"#)).await;
        assert_eq!(status, 500);
        assert!((2.0..3.0).contains(&seconds), "{seconds}");
    }
}

/// A carrier that takes its time, all of what the port allows.
struct Slow;

#[async_trait]
impl CarrierLookup for Slow {
    async fn look_up(&self, _: Carrier, _: &TrackingNumber) -> Lookup {
        sleep(Duration::from_millis(2_500)).await;
        Lookup::Unavailable("timed out".to_owned())
    }
}

/// Opens one transaction, after a second.
struct Sluggish(std::sync::Mutex<Option<Box<dyn Transaction>>>);

#[async_trait]
impl UnitOfWork for Sluggish {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        sleep(Duration::from_secs(1)).await;
        Ok(self.0.lock().unwrap().take().unwrap())
    }
}

#[actix_web::test]
async fn the_time_of_a_carrier_is_not_the_stores() {
    tokio::time::pause();
    let mut shipping = transaction();
    shipping.expect_lock_part().returning(|_, _| Ok(Some(paid())));
    shipping.expect_save_parts().returning(|_| Ok(()));
    shipping.expect_queue_mail().returning(|_| Ok(()));
    shipping.expect_complete().returning(|_, _| Ok(()));
    shipping.expect_commit().once().returning(|| Ok(()));
    let fixture = Fixture::writing().claimed(Claimed::Run).with_order(Some(paid()));
    let mut public = fixture.public();
    public.carriers = Arc::new(Slow);
    public.units = Arc::new(Sluggish(std::sync::Mutex::new(Some(Box::new(shipping)))));
    let (status, seconds) = timed(public, post(SHIPMENTS, PARCEL)).await;
    assert_eq!(status, 201);
    assert!((3.5..3.6).contains(&seconds), "{seconds}");
}

//! How often a seller may have a test event sent to a subscription: it is the receiver that gets them.

use kernel::{SellerId, StoreError};
use oauth::{Limiter, RateCounter, Subject};
use webhooks::SubscriptionId;

/// Test events to one subscription in a clock minute.
pub const MOST_A_MINUTE: u32 = 10;

/// Counts a test event; false when it is one too many for this minute.
pub async fn admit(
    rates: &dyn RateCounter,
    seller: SellerId,
    subscription: SubscriptionId,
) -> Result<bool, StoreError> {
    let subject = Subject::of_seller(seller, subscription.uuid());
    let count = rates.count(Limiter::TestEvents, subject).await?;
    Ok(count.against(MOST_A_MINUTE).admits())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::{Count, MockRateCounter};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::now;

    #[tokio::test]
    async fn the_tenth_is_admitted_and_the_eleventh_is_not() {
        for (place, admitted) in [(1, true), (10, true), (11, false)] {
            let mut rates = MockRateCounter::new();
            rates.expect_count().once().returning(move |limiter, _| {
                assert_eq!(limiter, Limiter::TestEvents);
                Ok(Count {
                    place,
                    resets_at: now() + TimeDelta::seconds(20),
                    counted_at: now(),
                })
            });
            let answer = admit(&rates, Uuid::nil().into(), Uuid::nil().into()).await;
            assert_eq!(answer.unwrap(), admitted, "{place}");
        }
    }
}

//! Deliveries that are lost with their worker.

use chrono::TimeDelta;
use webhooks::{Fate, LOSSES_FORGIVEN, Room, TopUp};

use crate::support::{Fixture, ROOM, ended, id, ids, release};

#[tokio::test]
async fn a_lane_is_taken_over_after_its_lease_and_what_was_in_hand_is_lost() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let lane = fixture.lane().await;
    let queued = fixture.queue(lane, 2).await;
    let first = fixture.claim_one().await;
    assert_eq!(ids(&first), queued);
    assert!(first.deliveries.iter().all(|due| due.lost == 0));
    let ending = [ended(first.hold, &first.deliveries[0], 500)];
    fixture.settle(&ending, &[]).await;
    clock.advance(TimeDelta::seconds(29)).await;
    assert!(fixture.claim().await.is_empty());
    // By now the one that ended is due again, which does not make it lost.
    clock.advance(TimeDelta::minutes(2)).await;
    let second = fixture.claim_one().await;
    let told: Vec<_> = second
        .deliveries
        .iter()
        .map(|due| (due.id, due.attempt, due.lost))
        .collect();
    assert_eq!(told, [(queued[1], 0, 1), (queued[0], 1, 0)]);
    fixture.release(second.hold).await;
    assert!(
        fixture
            .claim_one()
            .await
            .deliveries
            .iter()
            .all(|due| due.lost < 2),
        "given back is not lost"
    );
}

#[tokio::test]
async fn a_third_loss_and_each_after_it_are_told_until_they_are_concluded() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let lane = fixture.lane().await;
    fixture.queue(lane, 1).await;
    for lost in 0..=LOSSES_FORGIVEN + 1 {
        let claimed = fixture.claim_one().await;
        assert_eq!(claimed.deliveries[0].lost, lost);
        assert_eq!(claimed.deliveries[0].has_failed_by_loss(), lost > 2);
        if lost > LOSSES_FORGIVEN {
            let end = ended(claimed.hold, &claimed.deliveries[0], 500);
            fixture.settle(&[end], &[release(claimed.hold)]).await;
        } else {
            clock.advance(TimeDelta::seconds(31)).await;
        }
    }
    clock.advance(TimeDelta::minutes(2)).await;
    let claimed = fixture.claim_one().await;
    assert!(
        !claimed.deliveries[0].has_failed_by_loss(),
        "it was concluded and is to be sent"
    );
    clock.advance(TimeDelta::seconds(31)).await;
    let claimed = fixture.claim_one().await;
    assert!(
        claimed.deliveries[0].has_failed_by_loss(),
        "and then lost once more"
    );
}

#[tokio::test]
async fn a_loss_that_there_was_no_room_to_tell_of_is_told_with_the_next_claim() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let lane = fixture.lane().await;
    let queued = fixture.queue(lane, 4).await;
    for _ in 0..3 {
        assert_eq!(fixture.claim_one().await.deliveries.len(), 4);
        clock.advance(TimeDelta::seconds(31)).await;
    }
    let narrow = Room { per_lane: 3, ..ROOM };
    let claimed = fixture.lanes().claim(id(), narrow).await.unwrap().lanes.remove(0);
    assert_eq!(ids(&claimed), queued[..3]);
    assert!(claimed.deliveries.iter().all(|due| due.lost == 3));
    let ends: Vec<_> = claimed
        .deliveries
        .iter()
        .map(|due| webhooks::Conclusion {
            fate: Fate::Retry(TimeDelta::hours(1)),
            ..ended(claimed.hold, due, 500)
        })
        .collect();
    fixture.settle(&ends, &[release(claimed.hold)]).await;
    assert_eq!(fixture.claim_one().await.deliveries[0].lost, 3);
}

#[tokio::test]
async fn what_came_with_a_top_up_can_be_lost_too() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let lane = fixture.lane().await;
    let queued = fixture.queue(lane, 17).await;
    let claimed = fixture.claim_one().await;
    fixture
        .settle(&[ended(claimed.hold, &claimed.deliveries[0], 200)], &[])
        .await;
    let top_up = TopUp {
        hold: claimed.hold,
        running: queued[1..16].to_vec(),
        room: 1,
        repeats: 1,
    };
    assert_eq!(
        fixture.lanes().top_up(&[top_up]).await.unwrap()[0].deliveries[0].id,
        queued[16]
    );
    clock.advance(TimeDelta::seconds(31)).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(ids(&claimed), queued[1..]);
    assert!(claimed.deliveries.iter().all(|due| due.lost == 1));
}

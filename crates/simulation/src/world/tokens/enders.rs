//! A seller who disconnects, and an operator who suspends, revokes and deletes.

use usecases::manage_application::Move;

use super::{crew::Crew, ending::Ending};

/// Ends this and that, one after the other, and now and then lets it live again.
pub(super) async fn end_some(crew: Crew) {
    let simulator = crew.endpoint.simulator.clone();
    let (seller, own) = crew.own;
    for _ in 0..simulator.draw(|chance| chance.usize(0..=3)) {
        simulator.pause(0, 5_000).await;
        let client_id = if simulator.happens(500) { own } else { crew.others };
        let ending = match simulator.draw(|chance| chance.u8(..6)) {
            0 | 1 => Ending::Move(client_id, Move::Suspend),
            2 | 3 => Ending::RevokeAll(client_id),
            4 => Ending::Disconnect(seller, crew.others),
            _ => Ending::Delete(client_id),
        };
        let place = crew.ledger.begin(ending.ended(), simulator.now());
        if !crew.end(ending).await {
            return;
        }
        let told = simulator.now();
        crew.ledger.change(place, |end| end.told = Some(told));
        if let Ending::Move(client_id, _) = ending {
            simulator.pause(0, 4_000).await;
            let undone = simulator.now();
            crew.ledger.change(place, |end| end.undone = Some(undone));
            crew.end(Ending::Move(client_id, Move::Reinstate)).await;
        }
    }
}

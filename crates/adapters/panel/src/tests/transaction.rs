//! An open transaction over the world. What it changes stands at once, also what is undone by a refusal.

use chrono::TimeDelta;
use kernel::{CommitError, StoreError};
use oauth::{Application, Consent, Count, PersonalToken};
use usecases::MockTransaction;

use super::receivers::deliveries;
use super::world::Shared;

pub(crate) fn transaction(world: &Shared) -> MockTransaction {
    let mut transaction = MockTransaction::new();
    let now = world.get().now;
    transaction.expect_now().returning(move || now);
    let there = world.clone();
    transaction.expect_commit().returning(move || {
        let mut world = there.get();
        if world.lost_answers == 0 {
            return Ok(());
        }
        world.lost_answers -= 1;
        Err(CommitError::Unknown(StoreError::Unavailable(
            "connection reset".into(),
        )))
    });
    accounts(&mut transaction, world);
    sessions(&mut transaction, world);
    links(&mut transaction, world);
    applications(&mut transaction, world);
    tokens(&mut transaction, world);
    grants(&mut transaction, world);
    deliveries(&mut transaction, world);
    deeds(&mut transaction, world);
    transaction
}

/// Every deed gets the place that attempts for an account get.
fn deeds(transaction: &mut MockTransaction, world: &Shared) {
    let there = world.clone();
    transaction.expect_count_deed().returning(move |_, _| {
        let world = there.there()?;
        Ok(Count {
            place: world.places.1,
            resets_at: world.now + TimeDelta::seconds(20),
            counted_at: world.now,
        })
    });
}

fn accounts(transaction: &mut MockTransaction, world: &Shared) {
    let there = world.clone();
    transaction.expect_lock_seller().returning(move |id| {
        let world = there.there()?;
        Ok(world.sellers.iter().find(|seller| seller.id == id).cloned())
    });
    let there = world.clone();
    transaction
        .expect_present_password()
        .returning(move |seller| Ok(there.there()?.passwords.get(&seller).cloned()));
    let there = world.clone();
    transaction.expect_set_password().returning(move |seller, hash| {
        there.get().passwords.insert(seller, hash);
        Ok(())
    });
    let there = world.clone();
    transaction
        .expect_note()
        .returning(move |_, address, action, subject| {
            there.get().notes.push((action, address, subject.to_owned()));
            Ok(())
        });
}

fn sessions(transaction: &mut MockTransaction, world: &Shared) {
    let there = world.clone();
    transaction.expect_open_session().returning(move |session| {
        there.get().sessions.push(session);
        Ok(())
    });
    let there = world.clone();
    transaction.expect_has_session().returning(move |hash| {
        let world = there.there()?;
        Ok(world.sessions.iter().any(|session| session.hash == hash))
    });
    let there = world.clone();
    transaction.expect_end_session().returning(move |hash| {
        there.get().sessions.retain(|session| session.hash != hash);
        Ok(())
    });
    let there = world.clone();
    transaction.expect_end_sessions().returning(move |seller, but| {
        let kept = |session: &oauth::Session| session.seller != seller || Some(session.hash) == but;
        there.get().sessions.retain(kept);
        Ok(())
    });
    let there = world.clone();
    transaction
        .expect_keep_flash()
        .returning(move |session, form, sealed| {
            let mut world = there.get();
            if world.flashes.contains_key(&form) {
                return Ok(false);
            }
            world.flashes.insert(form, (session, sealed));
            Ok(true)
        });
    let there = world.clone();
    transaction.expect_take_flash().returning(move |session, form| {
        let mut world = there.get();
        let found = world
            .flashes
            .get_mut(&form)
            .filter(|(owner, _)| *owner == session);
        Ok(found.and_then(|(_, sealed)| sealed.take()))
    });
}

fn links(transaction: &mut MockTransaction, world: &Shared) {
    let there = world.clone();
    transaction.expect_add_link().returning(move |link| {
        there.get().links.push(link);
        Ok(())
    });
    let there = world.clone();
    transaction.expect_use_link().returning(move |hash, kind| {
        let mut world = there.get();
        let now = world.now;
        let mine = |link: &oauth::Link| link.hash == hash && link.kind == kind && now < link.expires_at;
        let Some(found) = world.links.iter().copied().find(mine) else {
            return Ok(None);
        };
        world.links.retain(|link| link.hash != hash);
        Ok(world
            .sellers
            .iter()
            .find(|seller| seller.id == found.seller)
            .cloned())
    });
    let there = world.clone();
    transaction.expect_queue_account_mail().returning(move |mail| {
        there.get().mails.push(mail);
        Ok(())
    });
}

fn applications(transaction: &mut MockTransaction, world: &Shared) {
    let there = world.clone();
    transaction.expect_lock_application().returning(move |id| {
        let world = there.there()?;
        let mut all = world.applications.iter();
        Ok(all.find(|application| application.client_id == id).cloned())
    });
    let there = world.clone();
    transaction.expect_built_in_application().returning(move |owner| {
        let now = there.get().now;
        let id = uuid::Uuid::from_u128(0xb00).into();
        Ok(Some(Application::built_in(id, owner, now).after))
    });
    let there = world.clone();
    transaction.expect_save_application().returning(move |change| {
        let mut world = there.get();
        let after = change.after;
        let taken = |other: &Application| other.name == after.name && other.client_id != after.client_id;
        if world.applications.iter().any(taken) {
            let constraint = "applications_name_key".to_owned();
            return Err(StoreError::Conflict { constraint });
        }
        world
            .applications
            .retain(|other| other.client_id != after.client_id);
        world.applications.push(after);
        Ok(())
    });
    let there = world.clone();
    transaction.expect_delete_application().returning(move |id| {
        there
            .get()
            .applications
            .retain(|application| application.client_id != id);
        Ok(true)
    });
}

fn tokens(transaction: &mut MockTransaction, world: &Shared) {
    transaction.expect_issue_token().returning(|_| Ok(()));
    let there = world.clone();
    transaction
        .expect_add_personal_token()
        .returning(move |seller, id, name| {
            let mut world = there.get();
            let token = PersonalToken {
                id,
                name: name.to_owned(),
                scopes: oauth::ScopeSet::EMPTY,
                created_at: world.now,
                expires_at: None,
            };
            world.tokens.push((seller, token));
            Ok(())
        });
    let there = world.clone();
    transaction
        .expect_count_personal_tokens()
        .returning(move |seller, _| {
            let world = there.get();
            Ok(world.tokens.iter().filter(|(owner, _)| *owner == seller).count())
        });
    let there = world.clone();
    transaction
        .expect_revoke_personal_token()
        .returning(move |seller, id| {
            let mut world = there.get();
            let before = world.tokens.len();
            world
                .tokens
                .retain(|(owner, token)| *owner != seller || token.id != id);
            Ok(world.tokens.len() < before)
        });
}

fn grants(transaction: &mut MockTransaction, world: &Shared) {
    let there = world.clone();
    transaction
        .expect_lock_consent()
        .returning(move |id, viewer, expires_at| {
            let mut world = there.get();
            let new = Consent {
                id,
                viewer,
                expires_at,
                decided_at: None,
            };
            Ok(*world.screens.entry(id).or_insert(new))
        });
    let there = world.clone();
    transaction.expect_save_consent().returning(move |consent| {
        there.get().screens.insert(consent.id, consent);
        Ok(())
    });
    let there = world.clone();
    transaction.expect_release_consent().returning(move |id, viewer| {
        let mut world = there.get();
        let own = world
            .screens
            .get(&id)
            .is_some_and(|screen| screen.viewer == viewer);
        Ok(own && world.screens.remove(&id).is_some())
    });
    let there = world.clone();
    transaction.expect_add_consent().returning(move |consent| {
        there.get().consents.push(consent);
        Ok(())
    });
    let there = world.clone();
    transaction.expect_disconnect().returning(move |seller, id| {
        let mut world = there.get();
        let before = world.connections.len();
        world
            .connections
            .retain(|(owner, connection)| *owner != seller || connection.client_id != id);
        Ok(world.connections.len() < before)
    });
}

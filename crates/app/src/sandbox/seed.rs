//! Seeds the database once, in one transaction, through the use cases.
//!
//! Secrets are readable only when they are created, so the credentials are written to a file before the
//! COMMIT. At the next start the database shows whether it was committed.

use accounts::{NewOperatorToken, NewPersonalToken, NewSeller, PasswordHash, PasswordHasher as _};
use adapter_postgres::Database;
use adapter_sandbox_page::SandboxSeller;
use adapter_sealing::{Argon2Hasher, HashingBounds, SystemRandomness};
use anyhow::{Context as _, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{OfferId, Randomness as _, SellerId};
use oauth::{RawRegistration, Registrar, Registration, Scope, Transition};
use offers::{ExternalIdChange, OfferPatch};
use orders::{
    Carrier, OrderId, OrderNumber, OrderRef, PollSchedule, TrackingNumber, TrackingReport, TrackingStatus,
};
use usecases::change_offer::patch_offer;
use usecases::feed_offers::feed_offer;
use usecases::manage_application::change_status;
use usecases::operator_tokens::create_operator_token;
use usecases::own_applications::{Registered, register_application};
use usecases::personal_tokens::issue_personal_token;
use usecases::place_order::{Line, place_order};
use usecases::sellers::register_seller;
use usecases::ship_order::{Report, record_report};
use usecases::transition_order::transition_order;
use usecases::{ActingOperator, Failure, LockSet, Transaction, place_order, transact, transition_order};
use web::decode;
use web::resources::offer_input;

use crate::command::use_case_error;

use super::data_dir::{ApplicationCredentials, Credentials, DataDir, Examples, SellerCredentials};
use super::plan::{ApplicationPlan, OrderPlan, OrderStep, Plan, SellerPlan};

/// The credentials of an earlier seeding of this database; otherwise seeds it now.
pub(super) async fn seed_once(
    database: &Database,
    data_dir: &DataDir,
    tracking: PollSchedule,
) -> anyhow::Result<Credentials> {
    for known in data_dir.known_credentials()? {
        let first = known.sellers.first().map(|seller| seller.account.id.into());
        if let Some(id) = first
            && database.sellers().seller(id).await?.is_some()
        {
            return Ok(known);
        }
    }
    let seeded = seed(database, data_dir, tracking).await;
    seeded.context("cannot seed the database")
}

async fn seed(
    database: &Database,
    data_dir: &DataDir,
    tracking: PollSchedule,
) -> anyhow::Result<Credentials> {
    let (plan, randomness) = (Plan::read()?, SystemRandomness::new());
    // Names are unique in a database, and another data directory may have seeded this one before.
    let is_first = database.sellers().sellers(0, 1).await?.is_empty();
    let id = randomness.uuid().simple().to_string();
    let seeding = Seeding {
        data_dir,
        passwords: passwords(plan.sellers.len(), &randomness).await?,
        suffix: id.chars().rev().take(5).filter(|_| !is_first).collect(),
        plan,
        randomness,
        tracking,
    };
    let units = database.units();
    let locks = LockSet::default();
    let seeded = transact(&*units, &locks, &seeding, |tx, seeding| Box::pin(seeding.run(tx)));
    seeded.await.map_err(use_case_error)
}

async fn passwords(
    count: usize,
    randomness: &SystemRandomness,
) -> anyhow::Result<Vec<(String, PasswordHash)>> {
    // Hashes one password at a time.
    let hasher = Argon2Hasher::new(HashingBounds {
        at_a_time: 1,
        waiting: 0,
    });
    let mut passwords = Vec::new();
    for _ in 0..count {
        let password = readable(&randomness.secret());
        let hash = hasher.hash(&password).await?;
        passwords.push((password, hash));
    }
    Ok(passwords)
}

/// 20 characters of 5 random bits each, without look-alike characters.
fn readable(random: &[u8; 32]) -> String {
    let letters = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letter = |byte: &u8| letters.get(usize::from(byte % 32)).copied().map(char::from);
    random.iter().take(20).filter_map(letter).collect()
}

/// A refusal means that the plan breaks a rule.
type SeedError = Failure<anyhow::Error>;

fn invalid(error: impl Into<anyhow::Error>) -> SeedError {
    Failure::Refused(error.into())
}

fn unknown(what: &'static str) -> impl Fn() -> SeedError {
    move || Failure::Refused(anyhow!("the plan names no such {what}"))
}

/// Registers an application, and makes these moves of its status.
pub(super) async fn register(
    tx: &dyn Transaction,
    randomness: &SystemRandomness,
    owner: SellerId,
    registration: Registration,
    moves: &[Transition],
) -> Result<Registered, SeedError> {
    let by = Registrar::Seller;
    let registered = register_application(tx, tx, randomness, owner, by, registration, u32::MAX, tx.now());
    let mut registered = registered.await.map_err(Failure::refused_as)?;
    for step in moves {
        let by = ActingOperator::CommandLine;
        let changed = change_status(tx, tx, by, registered.client_id, *step, None, tx.now()).await;
        registered.status = changed.map_err(Failure::refused_as)?.status;
    }
    Ok(registered)
}

/// The transaction that seeds everything.
struct Seeding<'a> {
    plan: Plan,
    data_dir: &'a DataDir,
    randomness: SystemRandomness,
    tracking: PollSchedule,
    /// One per seller.
    passwords: Vec<(String, PasswordHash)>,
    /// Appended to unique names; empty if the database was never seeded.
    suffix: String,
}

struct SeededSeller {
    offers: Vec<OfferId>,
    credentials: SellerCredentials,
}

impl Seeding<'_> {
    async fn run(&self, tx: &dyn Transaction) -> Result<Credentials, SeedError> {
        let new = NewOperatorToken {
            name: "sandbox".to_owned(),
            ..NewOperatorToken::default()
        };
        let (_, operator) = create_operator_token(tx, &self.randomness, new).await?;
        let mut shops = Vec::new();
        for (plan, password) in self.plan.sellers.iter().zip(&self.passwords) {
            shops.push(self.seller(tx, plan, password).await?);
        }
        for (seller, plan) in self.plan.sellers.iter().enumerate() {
            for (n, order) in plan.orders.iter().enumerate() {
                self.order(tx, &mut shops, seller, n, order).await?;
            }
        }
        let credentials = Credentials {
            backoffice_token: operator.reveal().to_owned(),
            sellers: shops.into_iter().map(|shop| shop.credentials).collect(),
            ..Credentials::default()
        };
        self.data_dir.prepare(&credentials).map_err(invalid)?;
        Ok(credentials)
    }

    /// A unique name, with the suffix after a separator.
    fn unique(&self, name: &str, separator: char) -> String {
        if self.suffix.is_empty() {
            return name.to_owned();
        }
        format!("{name}{separator}{}", self.suffix)
    }

    async fn seller(
        &self,
        tx: &dyn Transaction,
        plan: &SellerPlan,
        (password, hash): &(String, PasswordHash),
    ) -> Result<SeededSeller, SeedError> {
        let email = format!("{}@{}", self.unique(&plan.mailbox, '+'), plan.domain);
        let new = NewSeller {
            id: self.randomness.uuid().into(),
            name: plan.name.clone(),
            email: email.clone(),
            password: Some(hash.clone()),
            created_at: tx.now(),
        };
        let by = ActingOperator::CommandLine;
        // No invitations are sent: every seller has a password.
        let seller = register_seller(tx, tx, &self.randomness, by, new, "", TimeDelta::zero())
            .await
            .map_err(Failure::refused_as)?;
        let mut applications = Vec::new();
        for application in &plan.applications {
            applications.push(self.application(tx, seller.id, application).await?);
        }
        let offers = self.offers(tx, seller.id, plan).await?;
        let credentials = SellerCredentials {
            account: SandboxSeller {
                id: seller.id.uuid(),
                seller_no: seller.seller_no,
                email,
                password: password.clone(),
                personal_token: self.personal_token(tx, seller.id).await?,
            },
            examples: Examples {
                offer: offers.first().map(ToString::to_string),
                ..Examples::default()
            },
            applications,
        };
        Ok(SeededSeller { offers, credentials })
    }

    async fn application(
        &self,
        tx: &dyn Transaction,
        owner: SellerId,
        plan: &ApplicationPlan,
    ) -> Result<ApplicationCredentials, SeedError> {
        let registration = RawRegistration {
            name: self.unique(&plan.name, ' '),
            description: Some(plan.description.clone()),
            documentation_url: format!("https://{}/docs", plan.domain),
            purpose: plan.purpose.clone(),
            client_type: plan.client_type.clone(),
            redirect_uris: vec![format!("https://{}/oauth/callback", plan.domain)],
            scopes: plan.scopes.clone(),
            accept_terms: true,
        };
        let registration = registration.check().map_err(invalid)?;
        let (name, redirect_uris) = (registration.name.clone(), registration.redirect_uris.clone());
        let moves: &[Transition] = match plan.status.as_deref() {
            Some("active") => &[Transition::Accept],
            Some("suspended") => &[Transition::Accept, Transition::Suspend],
            _ => &[],
        };
        let registered = register(tx, &self.randomness, owner, registration, moves).await?;
        Ok(ApplicationCredentials {
            client_id: registered.client_id.to_string(),
            client_secret: registered.client_secret.map(|secret| secret.reveal().to_owned()),
            name,
            status: registered.status.as_str().to_owned(),
            scopes: plan.scopes.clone(),
            redirect_uris,
        })
    }

    async fn personal_token(&self, tx: &dyn Transaction, seller: SellerId) -> Result<String, SeedError> {
        let new = NewPersonalToken {
            name: "sandbox".to_owned(),
            scopes: Scope::IN_USE.into_iter().collect(),
            expires_at: None,
        };
        let by = ActingOperator::CommandLine;
        let token = issue_personal_token(tx, tx, &self.randomness, by, seller, new, tx.now()).await;
        Ok(token.map_err(Failure::refused_as)?.reveal().to_owned())
    }

    /// Adds the seller's offers, with timestamps over the last weeks.
    async fn offers(
        &self,
        tx: &dyn Transaction,
        seller: SellerId,
        plan: &SellerPlan,
    ) -> Result<Vec<OfferId>, SeedError> {
        let mut ids = Vec::new();
        for (n, offer) in (0..).zip(&plan.offers) {
            let id = self.randomness.uuid().into();
            let feed = decode::body(offer.to_string().as_bytes(), &offer_input(Some(id)))
                .map_err(|violations| invalid(anyhow!("{offer}: {violations:?}")))?;
            let product = &feed.product;
            let sku = product.brand.as_ref().map(|_| product.handle.to_uppercase());
            let fed_at = tx.now() - TimeDelta::minutes(n * 311 + 12);
            feed_offer(tx, seller, feed, None, fed_at).await?;
            let patch = OfferPatch {
                external_id: sku.map(ExternalIdChange::Set),
                ..OfferPatch::default()
            };
            let patched = patch_offer(tx, seller, id, patch, fed_at).await;
            patched.map_err(Failure::refused_as)?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Takes a seller's nth order through its steps, spread over its age. The newest order of a kind becomes
    /// the example of that kind.
    async fn order(
        &self,
        tx: &dyn Transaction,
        shops: &mut [SeededSeller],
        seller: usize,
        n: usize,
        plan: &OrderPlan,
    ) -> Result<(), SeedError> {
        let age = TimeDelta::minutes(plan.minutes_ago);
        let after = |eighths| tx.now() - age + age * eighths / 8;
        let new = self.new_order(shops, seller, n, plan)?;
        let placed = place_order(tx, tx, &self.randomness, &new, after(0)).await;
        let id = placed.map_err(Failure::refused_as)?.id;
        for step in &plan.steps {
            let (transition, at) = match step {
                OrderStep::Pay => (transition_order::Transition::Pay, after(1)),
                OrderStep::Cancel => (transition_order::Transition::Cancel, after(2)),
                OrderStep::Deliver => (transition_order::Transition::Deliver, after(6)),
                OrderStep::Ship(parcel) => {
                    let shop = shops.get(seller).ok_or_else(unknown("seller"))?;
                    self.ship(tx, shop.credentials.account.id.into(), id, parcel, after(3))
                        .await?;
                    continue;
                }
            };
            let changed = transition_order(tx, tx, &OrderRef::Id(id), transition, at).await;
            changed.map_err(Failure::refused_as)?;
        }
        let is_shared = plan.lines.iter().any(|(of, ..)| *of != seller);
        let concerned = plan.lines.iter().filter(|_| plan.steps == [OrderStep::Pay]);
        for (of, ..) in concerned {
            let examples = &mut shops
                .get_mut(*of)
                .ok_or_else(unknown("seller"))?
                .credentials
                .examples;
            let example = match (plan.is_test, is_shared) {
                (true, _) => &mut examples.test_order,
                (false, true) => &mut examples.multi_seller_order,
                (false, false) => &mut examples.order,
            };
            *example = Some(id.to_string());
        }
        Ok(())
    }

    fn new_order(
        &self,
        shops: &[SeededSeller],
        seller: usize,
        n: usize,
        plan: &OrderPlan,
    ) -> Result<place_order::NewOrder, SeedError> {
        let shop = shops.get(seller).ok_or_else(unknown("seller"))?;
        let seller_no = shop.credentials.account.seller_no;
        let customer = self.plan.customers.get(n).ok_or_else(unknown("buyer"))?;
        let line = |(seller, offer, quantity): &(usize, usize, i32)| {
            let shop = shops.get(*seller)?;
            Some(Line {
                seller: shop.credentials.account.id.into(),
                offer: *shop.offers.get(*offer)?,
                quantity: *quantity,
                unit_price: None,
                title: None,
                sku: None,
            })
        };
        let items = plan.lines.iter().map(line).collect::<Option<_>>();
        Ok(place_order::NewOrder {
            number: Some(OrderNumber::from_trusted(format!(
                "ZAM-{seller_no}-{}",
                1_001 + n
            ))),
            is_test: plan.is_test,
            payment_method: Some(customer.payment_method.clone()),
            delivery_method: Some(customer.delivery_method.clone()),
            buyer: Some(customer.buyer.clone()),
            shipping_address: Some(customer.shipping_address.clone()),
            delivery_point: plan.delivery_point.clone(),
            invoice: plan.invoice.clone(),
            items: items.ok_or_else(unknown("offer"))?,
        })
    }

    async fn ship(
        &self,
        tx: &dyn Transaction,
        seller: SellerId,
        order: OrderId,
        [carrier, number]: &[String; 2],
        at: DateTime<Utc>,
    ) -> Result<(), SeedError> {
        let report = Report {
            order: OrderRef::Id(order),
            carrier: Carrier::parse(carrier).ok_or_else(unknown("carrier"))?,
            tracking_number: TrackingNumber::new(number.clone()).map_err(invalid)?,
            item_ids: Vec::new(),
        };
        // The sandbox's carriers always report a tracking number with this prefix as in transit.
        let tracking_report = number.starts_with("TRANSIT").then(|| TrackingReport {
            status: TrackingStatus::InTransit,
            at: Some(at),
            raw_code: "TRANSIT".to_owned(),
        });
        let (randomness, tracking) = (&self.randomness, self.tracking);
        let reported = record_report(tx, randomness, seller, &report, tracking_report, tracking, at).await;
        reported.map_err(Failure::refused_as)?;
        // The shipment was days ago, so its mail is not sent now.
        Ok(tx.forget_mails(order).await?)
    }
}

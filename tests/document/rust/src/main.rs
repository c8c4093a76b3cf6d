//! A complete trade with the crate that `openapi-generator-cli` generates from the document.
//!
//! The first line of stdin has the API's URL and the application's credentials.

use std::{collections::BTreeSet, io::BufRead as _};

use reqwest::Client;
use seller_api_client::{
    apis::{
        Error, account_api, authorization_api, configuration::Configuration, events_api, offers_api,
        orders_api, shipments_api, webhooks_api,
    },
    models::{
        Carrier, CreateShipmentConflictCode, Currency, GrantType, NewPrice, NewShipment, NewWebhook,
        NotFoundCode, Offer, OfferStatus, OfferUpdate, OrderStatus, RevocationRequest, Scope, Shipment,
        TokenRequest, UpdateOfferUnprocessableCode, WebhookEvent,
    },
};
use uuid::Uuid;

const AGENT: &str = "RustTrade/1.0";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let asked: serde_json::Value = serde_json::from_str(&line).unwrap();
    let said = |name: &str| asked[name].as_str().unwrap().to_owned();
    let (client_id, client_secret) = (said("client_id"), said("client_secret"));

    let mut api = Configuration::new();
    api.base_path = said("base_url");
    // Every call has it as a parameter, so otherwise it would be sent twice.
    api.user_agent = None;
    api.client = Client::builder().no_proxy().build().unwrap();
    let request = TokenRequest {
        client_id: Some(client_id.clone()),
        client_secret: Some(client_secret.clone()),
        ..TokenRequest::new(GrantType::ClientCredentials)
    };
    let issued = authorization_api::issue_token(&api, request, None, None).await.unwrap();
    api.bearer_access_token = Some(issued.access_token.clone());

    let me = account_api::get_me(&api, AGENT, None, None).await.unwrap();
    assert_eq!(me.app.client_id, client_id);
    assert!(me.scopes.contains(&Scope::ShipmentsColonWrite));

    let offers = all_offers(&api).await;
    changes_an_offer_once(&api, &offers).await;
    cannot_price_what_has_no_price(&api, &offers).await;

    let (key, url) = (Uuid::new_v4().to_string(), "http://127.0.0.1:9/hooks".to_owned());
    let wanted = NewWebhook::new(url, vec![WebhookEvent::OrderShipped]);
    let subscription = webhooks_api::create_webhook(&api, AGENT, wanted, None, Some(&key), None)
        .await
        .unwrap();
    assert!(subscription.secret.len() > 20);
    let id = subscription.id.to_string();
    let listed = webhooks_api::list_webhooks(&api, AGENT, None, None)
        .await
        .unwrap();
    assert!(listed.items.iter().any(|webhook| webhook.id == subscription.id));

    ships_an_order(&api).await;
    let deliveries = webhooks_api::list_webhook_deliveries(&api, &id, AGENT, None, None)
        .await
        .unwrap();
    let events: Vec<_> = deliveries.items.iter().map(|delivery| delivery.event).collect();
    assert_eq!(events, [WebhookEvent::OrderShipped]);
    let journal = events_api::list_events(&api, AGENT, None, None, None, None, None, None).await;
    assert!(!journal.unwrap().items.is_empty());

    // A deleted resource is a 404, distinguished from others by its code.
    webhooks_api::delete_webhook(&api, &id, AGENT, None, None)
        .await
        .unwrap();
    let missing = webhooks_api::delete_webhook(&api, &id, AGENT, None, None).await;
    let Some(webhooks_api::DeleteWebhookError::Status404(missing)) = refusal(missing, 404) else {
        panic!("a 404 is of its own type");
    };
    assert_eq!(missing.errors[0].code, NotFoundCode::NotFound);

    let revocation = RevocationRequest {
        client_id: Some(client_id),
        client_secret: Some(client_secret),
        ..RevocationRequest::new(issued.access_token)
    };
    authorization_api::revoke_token(&api, revocation, None)
        .await
        .unwrap();
    let ended = account_api::get_me(&api, AGENT, None, None).await;
    assert!(matches!(
        refusal(ended, 401),
        Some(account_api::GetMeError::Status401(_))
    ));
    println!("traded");
}

/// The typed body of an error.
fn refusal<T: std::fmt::Debug, E: std::fmt::Debug>(answer: Result<T, Error<E>>, status: u16) -> Option<E> {
    match answer {
        Err(Error::ResponseError(refused)) if refused.status == status => refused.entity,
        other => panic!("{status} was expected: {other:?}"),
    }
}

/// All offers, page by page.
async fn all_offers(api: &Configuration) -> Vec<Offer> {
    let mut offers: Vec<Offer> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = offers_api::list_offers(api, AGENT, None, Some(7), after.as_deref(), None, None, None, None, None, None)
            .await
            .unwrap();
        offers.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let ids: BTreeSet<_> = offers.iter().map(|offer| offer.id).collect();
    assert!(offers.len() > 7 && ids.len() == offers.len());
    offers
}

/// A change that is sent twice is executed once.
async fn changes_an_offer_once(api: &Configuration, offers: &[Offer]) {
    let published = offers
        .iter()
        .filter(|offer| offer.status == OfferStatus::Published);
    let (id, stock) = published
        .filter_map(|offer| Some((offer.id.to_string(), offer.stock?)))
        .next()
        .unwrap();
    let change = OfferUpdate {
        stock: Some(stock + 1),
        ..OfferUpdate::new()
    };
    let key = Uuid::new_v4().to_string();
    let changed = || offers_api::update_offer(api, &id, AGENT, change.clone(), None, Some(&key), None, None);
    let (first, repeated) = (changed().await.unwrap(), changed().await.unwrap());
    assert_eq!(first.stock, Some(stock + 1));
    assert_eq!(repeated, first);
}

/// An error has a type, and its codes are an enumeration.
async fn cannot_price_what_has_no_price(api: &Configuration, offers: &[Offer]) {
    let unpriced = offers.iter().find(|offer| offer.price.is_none()).unwrap();
    let change = OfferUpdate {
        price: Some(Box::new(NewPrice::new(100, Currency::Pln))),
        ..OfferUpdate::new()
    };
    let id = unpriced.id.to_string();
    let answer = offers_api::update_offer(api, &id, AGENT, change, None, None, None, None).await;
    let Some(offers_api::UpdateOfferError::Status422(refused)) = refusal(answer, 422) else {
        panic!("a 422 is of its own type");
    };
    assert_eq!(refused.errors[0].code, UpdateOfferUnprocessableCode::NoPriceRow);
}

/// Ships an order that is ready to ship and has items of this seller only.
async fn ships_an_order(api: &Configuration) {
    let status = Some(OrderStatus::Processing);
    let paid = orders_api::list_orders(api, AGENT, None, Some(200), None, None, status, None, None, None)
        .await
        .unwrap();
    for candidate in paid.items {
        let id = candidate.id.to_string();
        let order = orders_api::get_order(api, &id, AGENT, None, None).await.unwrap();
        assert_eq!(order.status, OrderStatus::Processing);
        assert!(order.buyer.unwrap().email.is_some());
        let shipment = match ship(api, &id, "TRANSIT0001").await {
            Ok(shipment) => shipment,
            Err(CreateShipmentConflictCode::MultiSellerOrder) => continue,
            Err(code) => panic!("{code}"),
        };
        assert_eq!(
            (shipment.order_id, shipment.carrier),
            (candidate.id, Carrier::Inpost)
        );
        let known = orders_api::get_order(api, &id, AGENT, None, None).await.unwrap();
        assert_eq!(known.status, OrderStatus::Shipped);
        assert_eq!(known.shipment.unwrap().tracking_number, "TRANSIT0001");
        let again = ship(api, &id, "TRANSIT0002").await.unwrap_err();
        assert_eq!(again, CreateShipmentConflictCode::AlreadyShipped);
        return;
    }
    panic!("there is an order to ship");
}

async fn ship(
    api: &Configuration,
    order: &str,
    parcel: &str,
) -> Result<Shipment, CreateShipmentConflictCode> {
    let key = Uuid::new_v4().to_string();
    let parcel = NewShipment::new(Carrier::Inpost, parcel.to_owned());
    match shipments_api::create_shipment(api, order, AGENT, parcel, None, Some(&key), None).await {
        Ok(shipment) => Ok(shipment),
        refused => match refusal(refused, 409) {
            Some(shipments_api::CreateShipmentError::Status409(refused)) => Err(refused.errors[0].code),
            other => panic!("a 409 is of its own type: {other:?}"),
        },
    }
}

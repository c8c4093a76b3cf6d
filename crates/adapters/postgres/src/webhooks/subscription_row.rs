//! A subscription as a row, and its secret.

use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{Array, Bool, Text, Timestamptz, Uuid as SqlUuid},
};
use kernel::{Purpose, SellerId, StoreError};
use uuid::Uuid;
use webhooks::{AddressPolicy, Subscription, SubscriptionId, WebhookEvent, WebhookSecret, WebhookUrl};

use crate::sealing::Sealing;

/// The columns of [`SubscriptionRow`], of a table named `s`.
macro_rules! subscription_columns {
    () => {
        "s.id, s.client_id, s.url, s.events, s.active, s.created_at"
    };
}
pub(super) use subscription_columns;

/// Their types.
pub(super) type Columns = (SqlUuid, SqlUuid, Text, Array<Text>, Bool, Timestamptz);

/// What is told of a subscription.
#[derive(Queryable)]
pub(super) struct SubscriptionRow {
    id: Uuid,
    client_id: Uuid,
    url: String,
    events: Vec<String>,
    active: bool,
    created_at: DateTime<Utc>,
}

impl TryFrom<SubscriptionRow> for Subscription {
    type Error = StoreError;

    fn try_from(row: SubscriptionRow) -> Result<Self, StoreError> {
        let id = SubscriptionId::from(row.id);
        let events = row.events.iter().map(|name| {
            WebhookEvent::parse(name)
                .ok_or_else(|| StoreError::corrupt("subscriptions", id, format!("event {name:?}")))
        });
        Ok(Self {
            id,
            client_id: row.client_id.into(),
            url: url(id, &row.url)?,
            events: events.collect::<Result<_, _>>()?,
            active: row.active,
            created_at: row.created_at,
        })
    }
}

/// The kept URL. Whether its address may be sent to is judged at each attempt.
pub(super) fn url(id: SubscriptionId, text: &str) -> Result<WebhookUrl, StoreError> {
    WebhookUrl::parse(text, AddressPolicy::Any)
        .map_err(|invalid| StoreError::corrupt("subscriptions", id, format!("url {invalid}")))
}

/// Seals the secret of a subscription into its own row: put into another one, it does not open.
pub(super) fn seal(
    sealing: &Sealing,
    seller: SellerId,
    id: SubscriptionId,
    secret: &WebhookSecret,
) -> Result<Vec<u8>, StoreError> {
    let (bound_to, plain) = (binding(seller, id), secret.reveal().as_bytes());
    Ok(sealing.sealer()?.seal(Purpose::WebhookSecret, &bound_to, plain))
}

/// Opens a subscription's secret.
pub(super) fn open(
    sealing: &Sealing,
    seller: SellerId,
    id: SubscriptionId,
    sealed: &[u8],
) -> Result<WebhookSecret, StoreError> {
    let corrupt = |reason: String| StoreError::corrupt("subscriptions", id, reason);
    let opened = sealing
        .sealer()?
        .open(Purpose::WebhookSecret, &binding(seller, id), sealed)
        .map_err(|cause| corrupt(cause.to_string()))?;
    let text = String::from_utf8(opened).map_err(|_| corrupt("a secret that is no text".to_owned()))?;
    WebhookSecret::parse(text).map_err(|invalid| corrupt(format!("a secret that {invalid}")))
}

fn binding(seller: SellerId, id: SubscriptionId) -> Vec<u8> {
    [seller.uuid().as_bytes().as_slice(), id.uuid().as_bytes()].concat()
}

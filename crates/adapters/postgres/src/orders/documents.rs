//! The parts of an order that are written once and read as a whole: items, buyer and address, each one JSON document.

use std::{borrow::Cow, io::Write as _};

use diesel::deserialize::{FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{IsNull, Output, ToSql};
use diesel::{deserialize, serialize, sql_types};
use kernel::{Money, OfferId, StoreError};
use orders::OrderItem;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A JSON document as stored in its column, not parsed yet.
#[derive(Debug, AsExpression, FromSqlRow)]
#[diesel(sql_type = sql_types::Json)]
pub(crate) struct Document(Vec<u8>);

impl FromSql<sql_types::Json, Pg> for Document {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(value.as_bytes().to_vec()))
    }
}

impl ToSql<sql_types::Json, Pg> for Document {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemDocument<'a> {
    offer: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<Cow<'a, str>>,
    quantity: i32,
    /// Absent if all pieces were taken from stock.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<i32>,
    /// In minor units of the only currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_price: Option<i64>,
}

fn borrowed(text: Option<&String>) -> Option<Cow<'_, str>> {
    text.map(|text| Cow::Borrowed(text.as_str()))
}

fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

impl Document {
    fn of(value: &impl Serialize) -> Result<Self, StoreError> {
        serde_json::to_vec(value)
            .map(Self)
            .map_err(StoreError::unexpected)
    }

    pub(super) fn of_items(items: &[OrderItem]) -> Result<Self, StoreError> {
        let documents = items.iter().map(|item| ItemDocument {
            offer: item.offer.uuid(),
            title: borrowed(item.title.as_ref()),
            handle: borrowed(item.handle.as_ref()),
            sku: borrowed(item.sku.as_ref()),
            quantity: item.quantity,
            taken: (item.taken != item.quantity).then_some(item.taken),
            unit_price: item.unit_price.map(Money::amount),
        });
        Self::of(&documents.collect::<Vec<_>>())
    }

    /// The document of a buyer or an address, without the fields that it lacks.
    pub(super) fn of_personal(value: &impl Serialize) -> Result<Self, StoreError> {
        let mut value = serde_json::to_value(value).map_err(StoreError::unexpected)?;
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, field| !field.is_null());
        }
        Self::of(&value)
    }

    /// The items, or why they are invalid.
    pub(super) fn items(&self) -> Result<Vec<OrderItem>, String> {
        let documents = self.read::<Vec<ItemDocument>>("items")?;
        if documents.is_empty() {
            return Err("no items".to_owned());
        }
        documents.into_iter().map(item).collect()
    }

    /// Errors name the position, never the text, which may be a buyer's data.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self, column: &str) -> Result<T, String> {
        serde_json::from_slice(&self.0)
            .map_err(|error| format!("{column} cannot be read at column {}", error.column()))
    }
}

fn item(document: ItemDocument<'_>) -> Result<OrderItem, String> {
    if document.quantity < 1 {
        return Err(format!("quantity {}", document.quantity));
    }
    let taken = document.taken.unwrap_or(document.quantity);
    if !(0..=document.quantity).contains(&taken) {
        return Err(format!("taken {taken} of {}", document.quantity));
    }
    let price = document.unit_price.map(Money::pln).transpose();
    Ok(OrderItem {
        offer: OfferId::from(document.offer),
        title: owned(document.title),
        handle: owned(document.handle),
        sku: owned(document.sku),
        quantity: document.quantity,
        taken,
        unit_price: price.map_err(|invalid| format!("unit_price {invalid}"))?,
    })
}

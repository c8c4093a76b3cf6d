//! The parts of an order that are written once and read as a whole: items and what is the buyer's, each one
//! JSON document.

use kernel::{Money, OfferId, StoreError};
use orders::OrderItem;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::sql::Document;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemDocument {
    offer: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<String>,
    quantity: i32,
    /// Absent if all pieces were taken from stock.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<i32>,
    /// In minor units of the only currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit_price: Option<i64>,
}

impl Document {
    pub(super) fn of_items(items: &[OrderItem]) -> Result<Self, StoreError> {
        let documents = items.iter().map(|item| ItemDocument {
            offer: item.offer.uuid(),
            title: item.title.clone(),
            handle: item.handle.clone(),
            sku: item.sku.clone(),
            quantity: item.quantity,
            taken: (item.taken != item.quantity).then_some(item.taken),
            unit_price: item.unit_price.map(Money::amount),
        });
        Self::of(&documents.collect::<Vec<_>>())
    }

    /// The document of a buyer's data, without the fields that it lacks.
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
}

fn item(document: ItemDocument) -> Result<OrderItem, String> {
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
        title: document.title,
        handle: document.handle,
        sku: document.sku,
        quantity: document.quantity,
        taken,
        unit_price: price.map_err(|invalid| format!("unit_price {invalid}"))?,
    })
}

//! A list that is whole, without pages.

use serde::{Serialize, Serializer};
use web::query::Selection;

/// Its items, shown by `V`, made of an item and the chosen fields.
pub(super) struct Items<'a, T, V> {
    items: &'a [T],
    show: fn(&'a T, Selection) -> V,
    fields: Selection,
}

impl<'a, T, V: Serialize> Items<'a, T, V> {
    pub(super) const fn new(items: &'a [T], fields: Selection, show: fn(&'a T, Selection) -> V) -> Self {
        Self { items, show, fields }
    }

    /// How many bytes the list usually has, when one item has so many.
    pub(super) const fn usual_length(&self, of_one: usize) -> usize {
        self.items.len().saturating_add(1).saturating_mul(of_one)
    }
}

impl<T, V: Serialize> Serialize for Items<'_, T, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items.iter().map(|item| (self.show)(item, self.fields)))
    }
}

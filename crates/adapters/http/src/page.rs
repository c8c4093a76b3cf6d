//! Pages of a list and their cursors (contract: Pagination). A cursor is a sealed position that opens only
//! for its own list (D18). In place of a page, a list returns the items that `ids` names.

use std::collections::BTreeSet;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use kernel::{Keyset, Page, PageSize, SealPurpose, Sealer, SellerId};
use serde::Serialize;
use uuid::Uuid;
use web::Error;
use web::openapi::Parameter;
use web::operation::Call;
use web::query::{DEFAULT_LIMIT, FIELDS, Query, Selection};
use web::reply::Reply;
use web::schema::{Node, array, object, string};

use crate::Public;

/// The message for a cursor that does not open.
const REFUSED: &str =
    "Not a cursor of this list: send a `next` of the same resource and filters, or omit the parameter.";

/// The most ids that one request names.
const MAX_IDS: usize = 100;

/// The range is in the description, because values outside it are clamped, not refused.
pub(crate) const LIMIT: Parameter = Parameter::new("limit", || {
    Node::of([
        ("type", "integer".into()),
        ("default", i64::from(DEFAULT_LIMIT).into()),
    ])
});

pub(crate) const AFTER: Parameter = Parameter::new("after", string);

/// Any text may be an id: one that no item has is left out.
pub(crate) const IDS: Parameter = Parameter::new("ids", || {
    string().with("pattern", format!("^[^,]+(,[^,]+){{0,{}}}$", MAX_IDS - 1))
});

/// The schema of a page.
pub(crate) fn schema(name: &str, item: Node) -> Node {
    let next = string()
        .or_null()
        .describe("Cursor of the next page, to be sent as `after`; `null` only at the end of the list.");
    object(&[("items", array(item)), ("next", next)]).named(name)
}

/// A page with one item and no next page.
pub(crate) fn example(item: Node) -> Node {
    Node::of([("items", vec![item].into()), ("next", Node::Null)])
}

/// The requested page of a list.
pub(crate) struct PageRequest<Id> {
    /// Only the items with these ids, in place of a page.
    pub(crate) ids: Option<BTreeSet<Id>>,
    pub(crate) after: Option<Keyset>,
    pub(crate) size: PageSize,
    list: List,
}

impl<Id: FromStr + Ord> PageRequest<Id> {
    pub(crate) fn read(query: &mut Query<'_>, call: &Call<Public>, list: List) -> Self {
        let sealer = call.state.sealer.as_ref();
        let names_ids = query.names().any(|name| name == IDS.name);
        let (after, limit) = if names_ids {
            // Whatever they are: a cursor is refused at `ids`, a limit ignored.
            (None, u16::MAX)
        } else {
            let after = query.parsed("after", |text| open(sealer, &list, text).ok_or(REFUSED));
            (after, query.limit())
        };
        Self {
            ids: ids(query),
            after,
            size: PageSize::clamped(limit.into()),
            list,
        }
    }

    /// 200 with the page, its items shown by `show`, and the cursor of the next page.
    pub(crate) fn reply<'a, T, V: Serialize>(
        &self,
        call: &Call<Public>,
        page: &'a Page<T>,
        show: fn(&'a T, Selection) -> V,
    ) -> Result<Reply, Error> {
        let sealer = call.state.sealer.as_ref();
        let next = page.next.map(|last| seal(sealer, &self.list, last));
        let items = page.items.iter().map(|item| show(item, call.fields));
        Reply::page(items.collect(), next)
    }
}

/// The items that `ids` names, without what is no id. No other parameter selects items beside it.
fn ids<Id: FromStr + Ord>(query: &mut Query<'_>) -> Option<BTreeSet<Id>> {
    let may_be_beside = [IDS.name, LIMIT.name, FIELDS.name];
    let is_alone = query.names().all(|name| may_be_beside.contains(&name));
    query.parsed(IDS.name, |text| {
        let ids = text.split(',');
        if ids.clone().count() > MAX_IDS || ids.clone().any(str::is_empty) {
            return Err(format!("Must be 1 to {MAX_IDS} ids, separated by commas."));
        }
        if !is_alone {
            return Err("Send it without `after` and filters.".to_owned());
        }
        Ok(ids.filter_map(|id| id.parse().ok()).collect())
    })
}

/// Identifies the list of a cursor: resource, seller and filters, as bytes. `limit` and `fields` are not part
/// of it, so both may change between pages.
pub(crate) struct List(Vec<u8>);

impl List {
    /// Callers destructure their filter without `..`, so that no filter is left out here. Different lists
    /// have different bytes: the first byte of an instant determines its length; words, which contain no NUL
    /// and are not empty, are separated by NUL and come last.
    pub(crate) fn new(
        resource: &str,
        seller: SellerId,
        instants: &[Option<DateTime<Utc>>],
        words: &[Option<&str>],
    ) -> Self {
        let mut bytes = resource.as_bytes().to_vec();
        bytes.push(0);
        bytes.extend_from_slice(seller.uuid().as_bytes());
        for instant in instants {
            match instant {
                None => bytes.push(0),
                Some(at) => {
                    bytes.push(1);
                    bytes.extend_from_slice(&at.timestamp().to_be_bytes());
                    bytes.extend_from_slice(&at.timestamp_subsec_nanos().to_be_bytes());
                }
            }
        }
        let words: Vec<_> = words.iter().map(|word| word.unwrap_or_default()).collect();
        bytes.extend_from_slice(words.join("\0").as_bytes());
        Self(bytes)
    }

    /// With a filter that is newer than its list: without it, cursors of older programs stay valid. The value
    /// contains no NUL.
    pub(crate) fn and(mut self, name: &str, value: Option<&str>) -> Self {
        for part in value.map(|value| [name, value]).into_iter().flatten() {
            self.0.push(0);
            self.0.extend_from_slice(part.as_bytes());
        }
        self
    }
}

/// The cursor of the page that begins after `position`.
fn seal(sealer: &dyn Sealer, list: &List, position: Keyset) -> String {
    let mut plain = position.at.timestamp_micros().to_be_bytes().to_vec();
    plain.extend_from_slice(position.id.as_bytes());
    URL_SAFE_NO_PAD.encode(sealer.seal(SealPurpose::Cursor, &list.0, &plain))
}

/// The position in a cursor, if it belongs to this list.
fn open(sealer: &dyn Sealer, list: &List, text: &str) -> Option<Keyset> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let plain = sealer.open(SealPurpose::Cursor, &list.0, &bytes).ok()?;
    let (at, id) = plain.split_first_chunk::<8>()?;
    Some(Keyset {
        at: DateTime::from_timestamp_micros(i64::from_be_bytes(*at))?,
        id: Uuid::from_slice(id).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_newer_filters_is_identified_as_by_older_programs() {
        let list = |ean| {
            let list = List::new("offers", Uuid::nil().into(), &[None], &[Some("draft")]);
            list.and("ean", ean).0
        };
        assert_eq!(list(None), [b"offers\0".as_slice(), &[0; 17], b"draft"].concat());
        assert_ne!(list(Some("")), list(None));
    }
}

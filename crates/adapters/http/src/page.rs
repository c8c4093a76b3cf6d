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
    /// What identifies the list to its cursors.
    list: Vec<u8>,
}

impl<Id: FromStr + Ord> PageRequest<Id> {
    /// Call it after the filters: it completes the list's identity.
    pub(crate) fn read(list: List<'_, '_>, call: &Call<Public>) -> Self {
        let (query, list) = (list.query, [list.instants, list.texts].concat());
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
    pub(crate) async fn reply<'a, T, V: Serialize>(
        &self,
        call: &Call<Public>,
        page: &'a Page<T>,
        show: fn(&'a T, Selection) -> V,
    ) -> Result<Reply, Error> {
        let sealer = call.state.sealer.as_ref();
        let next = page.next.map(|last| seal(sealer, &self.list, last));
        let items = page.items.iter().map(|item| show(item, call.fields));
        Reply::page(items.collect(), next).await
    }
}

/// The valid ids in `ids`. No other parameter selects items beside it.
fn ids<Id: FromStr + Ord>(query: &mut Query<'_>) -> Option<BTreeSet<Id>> {
    let may_be_beside = [IDS.name, LIMIT.name, FIELDS.name];
    let is_alone = query.names().all(|name| may_be_beside.contains(&name));
    query.parsed(IDS.name, |text| {
        // A `+` is a space where clients encode forms; no id begins or ends with one.
        let ids = text
            .split(',')
            .map(|id| id.trim_matches(|c: char| c.is_whitespace() || c == '+'));
        if ids.clone().count() > MAX_IDS || ids.clone().any(str::is_empty) {
            return Err(format!("Must be 1 to {MAX_IDS} ids, separated by commas."));
        }
        if !is_alone {
            return Err("Send it without `after` and filters.".to_owned());
        }
        Ok(ids.filter_map(|id| id.parse().ok()).collect())
    })
}

/// Reads a list's filters. With resource and seller these identify it to its cursors, as bytes; `limit` and
/// `fields` do not, so both may change between pages.
///
/// Different lists have different bytes: the first byte of an instant determines its length; the status, which
/// is read before texts and is not empty, and texts contain no NUL and come last.
pub(crate) struct List<'q, 'a> {
    query: &'q mut Query<'a>,
    instants: Vec<u8>,
    texts: Vec<u8>,
}

impl<'q, 'a> List<'q, 'a> {
    pub(crate) fn new(resource: &str, seller: SellerId, query: &'q mut Query<'a>) -> Self {
        Self {
            query,
            instants: [resource.as_bytes(), &[0], seller.uuid().as_bytes()].concat(),
            texts: Vec::new(),
        }
    }

    pub(crate) fn status<T: Copy>(
        &mut self,
        values: &'static [T],
        called: fn(T) -> &'static str,
    ) -> Option<T> {
        let status = self.query.one_of("status", values, called);
        self.texts.extend(status.map_or("", called).bytes());
        status
    }

    pub(crate) fn date_time(&mut self, name: &'static str) -> Option<DateTime<Utc>> {
        let instant = self.query.date_time(name);
        self.instants.push(instant.is_some().into());
        if let Some(at) = instant {
            self.instants.extend(at.timestamp().to_be_bytes());
            self.instants.extend(at.timestamp_subsec_nanos().to_be_bytes());
        }
        instant
    }

    /// A filter that is newer than its list: without it, cursors of older programs stay valid.
    pub(crate) fn words(&mut self, name: &'static str, most: usize) -> Option<String> {
        let words = self.query.words(name, most)?;
        for part in [name, words.as_str()] {
            self.texts.push(0);
            self.texts.extend(part.bytes());
        }
        Some(words)
    }
}

/// The cursor of the page that begins after `position`.
fn seal(sealer: &dyn Sealer, list: &[u8], position: Keyset) -> String {
    let mut plain = position.at.timestamp_micros().to_be_bytes().to_vec();
    plain.extend_from_slice(position.id.as_bytes());
    URL_SAFE_NO_PAD.encode(sealer.seal(SealPurpose::Cursor, list, &plain))
}

/// The position in a cursor, if it belongs to this list.
fn open(sealer: &dyn Sealer, list: &[u8], text: &str) -> Option<Keyset> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let plain = sealer.open(SealPurpose::Cursor, list, &bytes).ok()?;
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
        let list = |raw| {
            let known = ["status", "updated_after", "ean"].map(Parameter::undocumented);
            let read = web::query::read(raw, &known, |query| {
                let mut list = List::new("offers", Uuid::nil().into(), query);
                list.status(&["draft"], |word| word);
                list.date_time("updated_after");
                list.words("ean", 64);
                [list.instants, list.texts].concat()
            });
            read.unwrap()
        };
        let known = [b"offers\0".as_slice(), &[0; 17], b"draft"].concat();
        assert_eq!(list("status=draft"), known);
        assert_ne!(list("status=draft&ean="), known);
    }
}

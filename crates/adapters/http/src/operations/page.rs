//! A page of a list as clients see it (contract: Pagination).

use kernel::{Keyset, Page};
use serde::{Serialize, Serializer};
use web::query::{DEFAULT_LIMIT, Query, Selection};
use web::schema::{Node, array, object, string};

use crate::cursor::{self, List};
use crate::declared::Parameter;
use crate::operation::{Context, Reply};
use crate::refusal::Refusal;

/// `limit`. Its range is said in words, because what lies outside is clamped.
pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    description: "How many items, 1 to 200. A smaller or larger integer is taken as the nearest of these.",
    schema: || {
        Node::of([
            ("type", "integer".into()),
            ("default", i64::from(DEFAULT_LIMIT).into()),
        ])
    },
    deprecated: None,
};

/// `after`.
pub(super) const AFTER: Parameter = Parameter {
    name: "after",
    description: "The `next` of the page before, as it was: it belongs to this list and these filters. `limit` and `fields` may \
                  change between pages.",
    schema: string,
    deprecated: None,
};

/// What the document says of a page.
pub(super) fn schema(name: &str, item: Node) -> Node {
    let next = string()
        .or_null()
        .said("What to send as `after` to read on; `null` at the end of the list.");
    object(&[("items", array(item)), ("next", next)]).named(name)
}

/// The only page of a list of one.
pub(super) fn example(item: Node) -> Node {
    Node::of([("items", vec![item].into()), ("next", Node::Null)])
}

/// Reads the parameter `after` for this list.
pub(super) fn after(query: &mut Query<'_>, context: &Context, list: &List) -> Option<Keyset> {
    query.parsed("after", |text| {
        cursor::open(context.public.sealer.as_ref(), list, text).ok_or(cursor::REFUSED)
    })
}

/// A page whose items are shown by `V`, made of an item and the chosen fields.
pub(super) struct PageView<'a, T, V> {
    page: &'a Page<T>,
    show: fn(&'a T, Selection) -> V,
    fields: Selection,
    usual_length: usize,
}

impl<'a, T, V: Serialize> PageView<'a, T, V> {
    /// `usual_length` is that of one item, in bytes.
    pub(super) const fn new(
        page: &'a Page<T>,
        fields: Selection,
        show: fn(&'a T, Selection) -> V,
        usual_length: usize,
    ) -> Self {
        Self {
            page,
            show,
            fields,
            usual_length,
        }
    }

    /// 200 with the page and the cursor of the one after it.
    pub(super) fn reply(self, context: &Context, list: &List) -> Result<Reply, Refusal> {
        let sealer = context.public.sealer.as_ref();
        let next = self.page.next.map(|last| cursor::seal(sealer, list, last));
        let count = self.page.items.len().saturating_add(1);
        let expected = count.saturating_mul(self.usual_length);
        let items = Items(self);
        Reply::ok(&Body { items, next }, expected)
    }
}

#[derive(Serialize)]
struct Body<T> {
    items: T,
    next: Option<String>,
}

struct Items<'a, T, V>(PageView<'a, T, V>);

impl<T, V: Serialize> Serialize for Items<'_, T, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PageView {
            page, show, fields, ..
        } = &self.0;
        serializer.collect_seq(page.items.iter().map(|item| show(item, *fields)))
    }
}

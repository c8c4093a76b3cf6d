//! Pages of a list: keyset pagination, newest first (contract: Pagination).

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The largest page size (contract: Limits).
pub const MAX_PAGE_SIZE: u16 = 200;

/// The maximum number of items on a page: 1 to [`MAX_PAGE_SIZE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize(u16);

impl PageSize {
    /// The nearest allowed size.
    pub fn clamped(size: i64) -> Self {
        let size = size.clamp(1, i64::from(MAX_PAGE_SIZE));
        Self(u16::try_from(size).unwrap_or(MAX_PAGE_SIZE))
    }

    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The position of an item in a list sorted by timestamp and id, both descending. A page begins after a
/// position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyset {
    /// The sort timestamp, in microseconds.
    pub at: DateTime<Utc>,
    /// The tie-break.
    pub id: Uuid,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// Where the next page begins: the last item's position, or where the search of a filtered list stopped.
    /// None at the end of the list.
    pub next: Option<Keyset>,
}

impl<T> Page<T> {
    /// A list without further pages.
    pub const fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }

    /// Makes a page of at most `size` items from a read of up to `size + 1`: the extra item shows that more
    /// follow, so that `next` is None exactly at the end, and never leads to an empty page.
    pub fn from_one_more(mut items: Vec<T>, size: PageSize, position: impl Fn(&T) -> Keyset) -> Self {
        let size = usize::from(size.get());
        let more = items.len() > size;
        items.truncate(size);
        let next = if more { items.last().map(position) } else { None };
        Self { items, next }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position(n: &u128) -> Keyset {
        Keyset {
            at: DateTime::UNIX_EPOCH,
            id: Uuid::from_u128(*n),
        }
    }

    proptest! {
        #[test]
        fn pages_contain_everything_once_and_the_last_is_not_empty(total in 0_u128..700, size in 1_i64..200) {
            let size = PageSize::clamped(size);
            let (mut seen, mut after) = (Vec::new(), None::<Keyset>);
            loop {
                let start = after.map_or(0, |keyset| keyset.id.as_u128() + 1);
                let read = (start..total).take(usize::from(size.get()) + 1).collect::<Vec<_>>();
                let page = Page::from_one_more(read, size, position);
                prop_assert!(!page.items.is_empty() || total == 0);
                seen.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen, (0..total).collect::<Vec<_>>());
        }
    }
}

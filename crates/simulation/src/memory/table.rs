//! A table: what is committed, and beside it what open transactions have written and nobody else sees.

use std::collections::BTreeMap;

use super::TxId;

/// Rows by their keys.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    committed: BTreeMap<K, V>,
    written: BTreeMap<TxId, BTreeMap<K, Option<V>>>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            committed: BTreeMap::new(),
            written: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    /// The row as the transaction sees it: its own, or the committed one.
    pub(crate) fn get(&self, tx: TxId, key: &K) -> Option<&V> {
        match self.written.get(&tx).and_then(|written| written.get(key)) {
            Some(own) => own.as_ref(),
            None => self.committed.get(key),
        }
    }

    pub(crate) fn put(&mut self, tx: TxId, key: K, row: V) {
        self.written.entry(tx).or_default().insert(key, Some(row));
    }

    pub(crate) fn remove(&mut self, tx: TxId, key: &K) {
        self.written.entry(tx).or_default().insert(key.clone(), None);
    }

    /// Changes a row that the transaction sees; false where there is none.
    pub(crate) fn change(&mut self, tx: TxId, key: &K, change: impl FnOnce(&mut V)) -> bool {
        let Some(mut row) = self.get(tx, key).cloned() else {
            return false;
        };
        change(&mut row);
        self.put(tx, key.clone(), row);
        true
    }

    /// The rows that the transaction sees and that suit, by their keys.
    pub(crate) fn select(&self, tx: TxId, suits: impl Fn(&K, &V) -> bool) -> Vec<(K, V)> {
        let own = self.written.get(&tx);
        let covered = |key: &K| own.is_some_and(|own| own.contains_key(key));
        let committed = self.committed.iter().filter(|(key, _)| !covered(key));
        let written = own.into_iter().flatten();
        let written = written.filter_map(|(key, row)| Some((key, row.as_ref()?)));
        let suiting = committed.chain(written).filter(|(key, row)| suits(key, row));
        let mut rows: Vec<_> = suiting.map(|(key, row)| (key.clone(), row.clone())).collect();
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        rows
    }

    /// What everybody sees.
    pub(crate) const fn committed(&self) -> &BTreeMap<K, V> {
        &self.committed
    }

    /// The transaction ends, with its rows or without.
    pub(crate) fn end(&mut self, tx: TxId, keep: bool) {
        let written = self.written.remove(&tx).unwrap_or_default();
        for (key, row) in written.into_iter().filter(|_| keep) {
            match row {
                Some(row) => drop(self.committed.insert(key, row)),
                None => drop(self.committed.remove(&key)),
            }
        }
    }
}

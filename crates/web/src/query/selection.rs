//! Field selection: which fields of a resource a response has (contract: Field selection).

/// A choice among the fields of a table of at most 64 names. `id` is always chosen where the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    table: &'static [&'static str],
    chosen: u64,
}

impl Selection {
    /// Every field.
    pub const fn all(table: &'static [&'static str]) -> Self {
        Self {
            table,
            chosen: u64::MAX,
        }
    }

    /// The fields that `text` names, separated by commas; a name may be repeated. The error is a message.
    pub(super) fn parse(text: &str, table: &'static [&'static str]) -> Result<Self, String> {
        let bit_of = |name: &str| table.iter().position(|known| *known == name).map(bit);
        let mut chosen = bit_of("id").unwrap_or(0);
        for name in text.split(',') {
            chosen |= bit_of(name).ok_or_else(|| {
                let table = table.join(", ");
                format!("Must be a comma-separated list of top-level fields. The fields here are {table}.")
            })?;
        }
        Ok(Self { table, chosen })
    }

    /// Whether the field at this index of the table is chosen: the quick way, for rows by the hundred.
    pub const fn has_index(&self, index: usize) -> bool {
        self.chosen & bit(index) != 0
    }

    /// Whether the field of this name is chosen.
    pub fn has(&self, name: &str) -> bool {
        self.table
            .iter()
            .position(|known| *known == name)
            .is_some_and(|index| self.has_index(index))
    }

    /// Whether every field is chosen, because the request did not choose.
    pub const fn is_all(&self) -> bool {
        self.chosen == u64::MAX
    }

    /// The chosen names, in the order of the table.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.table
            .iter()
            .enumerate()
            .filter(|(index, _)| self.has_index(*index))
            .map(|(_, name)| *name)
    }
}

const fn bit(index: usize) -> u64 {
    match index {
        0..64 => 1 << index,
        _ => 0,
    }
}

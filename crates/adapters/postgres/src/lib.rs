//! The ports over PostgreSQL: unit of work, stores, the gate, migrations.

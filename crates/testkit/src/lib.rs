//! Test support: a shared private PostgreSQL, a database per test, builders, the program under test.

//! In which arrangement of processes the program under test runs, chosen by whoever runs the tests.

/// What chooses: `single` (also where it is not set), `fleet` or `fleet-pgbouncer`.
const VARIABLE: &str = "SELLER_API_TEST_TOPOLOGY";

/// An arrangement of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One process that does everything.
    Single,
    /// Several servers without workers behind a balancer, and workers beside them.
    Fleet,
    /// The same, and all of them reach the database through a `PgBouncer` with fewer connections than they have.
    FleetPgBouncer,
}

impl Topology {
    /// What the environment says.
    pub(crate) fn chosen() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("" | "single") => Self::Single,
            Ok("fleet") => Self::Fleet,
            Ok("fleet-pgbouncer") => Self::FleetPgBouncer,
            Ok(other) => {
                panic!("{VARIABLE} is `single`, `fleet` or `fleet-pgbouncer`, and not `{other}`")
            }
        }
    }
}

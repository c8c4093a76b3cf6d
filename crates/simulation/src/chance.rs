//! Chance for the use cases: ids that rise, and secrets that follow from the seed.

use kernel::Randomness;
use uuid::Uuid;

use crate::executor::Simulator;

/// Ids and secrets drawn by a run's lots.
#[derive(Debug, Clone)]
pub struct Chance(pub Simulator);

impl Randomness for Chance {
    fn secret(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.draw(|chance| chance.fill(&mut bytes));
        bytes
    }

    fn uuid(&self) -> Uuid {
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | u128::from(self.0.number()))
    }
}

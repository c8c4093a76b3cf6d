//! Fake ports that the tests of the listener share.

use kernel::{Purpose, SealError, Sealer};

/// Writes purpose and content in clear text instead of sealing them.
pub(crate) struct PlainSealer;

impl Sealer for PlainSealer {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        [head(purpose, bound_to).as_slice(), plain].concat()
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let head = head(purpose, bound_to);
        sealed
            .strip_prefix(head.as_slice())
            .map(<[u8]>::to_vec)
            .ok_or(SealError)
    }
}

fn head(purpose: Purpose, bound_to: &[u8]) -> Vec<u8> {
    let length = u64::try_from(bound_to.len()).unwrap().to_be_bytes();
    [purpose.name().as_bytes(), &length, bound_to].concat()
}

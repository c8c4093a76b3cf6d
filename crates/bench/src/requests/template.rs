//! A request with holes for numbers.

use std::ops::Range;

use anyhow::ensure;

/// What marks a hole, as often as it has digits. No token or header of a load's has it.
const HOLE: u8 = b'#';

/// A whole request in which some decimal numbers of fixed length differ from one time to the next.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    request: Vec<u8>,
    holes: Vec<Range<usize>>,
}

impl Template {
    /// A request in which every run of `#` is a hole of so many digits.
    pub(crate) fn new(request: Vec<u8>) -> Self {
        let mut holes: Vec<Range<usize>> = Vec::new();
        for (place, _) in request.iter().enumerate().filter(|(_, byte)| **byte == HOLE) {
            match holes.last_mut() {
                Some(last) if last.end == place => last.end += 1,
                _ => holes.push(place..place + 1),
            }
        }
        Self { request, holes }
    }

    /// Makes a request in place of what `into` holds, with a number for each hole. Of longer numbers the last digits count.
    pub(crate) fn write(&self, numbers: &[u64], into: &mut Vec<u8>) -> anyhow::Result<()> {
        ensure!(
            numbers.len() == self.holes.len(),
            "{} numbers for {} holes",
            numbers.len(),
            self.holes.len()
        );
        into.clear();
        into.extend_from_slice(&self.request);
        for (hole, number) in self.holes.iter().zip(numbers) {
            let mut left = *number;
            for digit in into.get_mut(hole.clone()).unwrap_or_default().iter_mut().rev() {
                *digit = b'0' + u8::try_from(left % 10).unwrap_or_default();
                left /= 10;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_the_holes_from_the_right() {
        let template = Template::new(b"a #### b ## c".to_vec());
        let mut request = b"what was there".to_vec();
        template.write(&[42, 789], &mut request).unwrap();
        assert_eq!(request, b"a 0042 b 89 c");
        assert!(template.write(&[1], &mut request).is_err());
    }
}

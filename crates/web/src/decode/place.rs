//! Where in a body a value stands, and how to refuse it there.

use std::fmt;

use crate::problem::Entry;
use crate::violations::{Message, Violations};

/// A place in a body: knows its path (written out only when something is wrong there) and where violations go.
pub struct Place<'a> {
    path: Path<'a>,
    violations: &'a mut Violations,
}

#[derive(Clone, Copy)]
struct Path<'a> {
    outer: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Name(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// The body as a whole.
    pub fn root(violations: &'a mut Violations) -> Self {
        Self {
            path: Path {
                outer: None,
                step: Step::Root,
            },
            violations,
        }
    }

    /// The field of this name, within an object that stands here.
    pub fn field<'b>(&'b mut self, name: &'b str) -> Place<'b> {
        self.inner(Step::Name(name))
    }

    /// The element of this index, within an array that stands here.
    pub fn element(&mut self, index: usize) -> Place<'_> {
        self.inner(Step::Index(index))
    }

    /// Records that what stands here is wrong. Returns nothing, so that a reader can end with it.
    pub fn refuse<T>(&mut self, message: impl Into<Message>) -> Option<T> {
        let entry = Entry::whole(message);
        self.violations.push(match self.path.step {
            Step::Root => entry,
            Step::Name(_) | Step::Index(_) => entry.at(self.path.to_string()),
        });
        None
    }

    /// Records that nothing should stand here; reported after everything else.
    pub(super) fn refuse_unknown(&mut self, message: impl FnOnce() -> String) {
        let path = &self.path;
        self.violations
            .push_unknown(|| Entry::validation(path.to_string(), message()));
    }

    fn inner<'b>(&'b mut self, step: Step<'b>) -> Place<'b> {
        Place {
            path: Path {
                outer: Some(&self.path),
                step,
            },
            violations: self.violations,
        }
    }
}

impl fmt::Display for Path<'_> {
    /// `price.amount`, `item_ids[2]` (D14).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside = self.outer.is_some_and(|outer| !matches!(outer.step, Step::Root));
        if let Some(outer) = self.outer {
            outer.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Name(name) if inside => write!(f, ".{name}"),
            Step::Name(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

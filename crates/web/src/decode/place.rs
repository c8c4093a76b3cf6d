//! The place of a value in a body, and how to record a violation there.

use std::fmt;

use crate::problem::Entry;
use crate::violations::{Message, Violations};

/// A place in a body. It knows its path, formatted only for a violation, and the list of violations.
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

    /// The field with this name, in the object at this place.
    pub fn field<'b>(&'b mut self, name: &'b str) -> Place<'b> {
        self.inner(Step::Name(name))
    }

    /// The element at this index, in the array at this place.
    pub fn element(&mut self, index: usize) -> Place<'_> {
        self.inner(Step::Index(index))
    }

    /// Records a violation at this place. Returns `None`, so that a reader can end with it.
    pub fn refuse<T>(&mut self, message: impl Into<Message>) -> Option<T> {
        let entry = Entry::whole(message);
        self.violations.push(match self.path.step {
            Step::Root => entry,
            Step::Name(_) | Step::Index(_) => entry.at(self.path.to_string()),
        });
        None
    }

    /// Records an unknown field at this place; reported after all other violations.
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

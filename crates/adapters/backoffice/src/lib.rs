//! The marketplace-side API on its own listener.

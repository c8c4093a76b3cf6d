//! Load generator and side-by-side report.

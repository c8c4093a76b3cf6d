//! Tests of sending.

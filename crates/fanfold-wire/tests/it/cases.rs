//! Whole bodies, by eye.

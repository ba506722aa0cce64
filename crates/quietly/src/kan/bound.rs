//! The longest gradient that any row can have.

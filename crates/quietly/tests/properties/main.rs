//! What must hold of every default on every table: the properties P1 to P9 of docs/spec/default.md#1.
//!
//! `cargo test` runs a fast selection, and `make properties` all of it, with a line for each comparison. A comparison that is known
//! to fail is listed in `known.rs` with what was measured, and its line says so; any other failure fails the test.
//!
//! Seeds are fixed. Unless a file says otherwise, a comparison is of a median over seeds, each with a table and noise of its own: a default that is
//! within the limit for nine seeds in ten would fail it once in 85,000 sets of 20 fresh seeds, and once in 117 sets of 5.
//! Each file has a control: a fit that is broken on purpose and must be found out.
mod fitting;
mod known;
mod report;
mod statistics;
mod tables;

mod p1_consistent;
mod p2_monotone;
mod p3_constant;
mod p4_nested;
mod p5_invariant;
mod p6_ranges;
mod p7_columns;
mod p8_targets;

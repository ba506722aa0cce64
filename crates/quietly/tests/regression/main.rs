//! What a user would do with a regression, and what must hold whenever they do.
mod accuracy;
mod common;
mod exact;
mod model_file;
mod plans;
mod recipes;
mod same_bits;
mod trouble;

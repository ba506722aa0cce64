//! What decides privacy: mechanisms, samplers and their draws, the lattice, releases, plans, certificates, the ledger and
//! checkpoints.
//!
//! To audit a guarantee, read this crate with `quietly-private`, `quietly-noise` and `quietly-accounting`. It knows no
//! table, no model and no file format of tables.
//!
//! * [`mechanism`] has mechanisms, stages and samplers, and what they cost.
//! * [`draw`] draws the batches: the only place that does.
//! * [`privacy_plan`] prices what will be released, before any data is read.
//! * [`lattice`] makes integers of clipped vectors, with a proof of what one unit of privacy adds.
//! * [`release`] adds the planned noise: the only place where private values become public.
//! * [`certificate`] is the proof that goes with a model, [`ledger`] what was spent on a table.
//! * [`checkpoint`] is the checkpoint of a run.
#[cfg(all(feature = "witness", not(debug_assertions)))]
compile_error!("the feature `witness` is for tests: it shows what is released without its noise");

pub mod allocation;
pub mod batch_sampling;
pub mod budget;
pub mod calibration_cache;
pub mod certificate;
pub mod charge;
pub mod checkpoint;
pub mod cores;
pub mod disk;
pub mod error;
pub mod group;
pub mod lattice;
pub mod ledger;
pub mod mechanism;
pub mod privacy_plan;
pub mod private_selection;
pub mod progress;
#[doc(hidden)]
pub mod random;
pub mod release;
pub mod rows_used;

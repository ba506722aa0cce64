//! The networks behind the papers that `quietly-lab` reproduces: research code, and no part of the product.
//!
//! * [`feature_learning`]: noisy gradient descent on pictures of patches, watched from the inside.
//! * [`cnn`]: private learning on pictures with a small convolutional network.
#![forbid(unsafe_code)]
pub mod cnn;
pub mod feature_learning;

/// Synthetic numbers are multiples of 2^-32.
const GRID: u32 = 32;

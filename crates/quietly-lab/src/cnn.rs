//! Private learning on pictures: a small convolutional network whose gradients are clipped one by one.
//!
//! *Understanding Private Learning From Feature Perspective* trains ResNet-20 on pictures made worse by noise and shows where it
//! looks. Here is what two cores can do of it, with a guarantee: pictures are streamed, one forward and one backward pass each,
//! and the gradient of each is clipped by its exact norm, put on an integer lattice and added up.
//!
//! * [`Pictures`] are read ([`Pictures::cifar10`]) or made up ([`Pasted`]), and made worse ([`Pictures::corrupt`]).
//! * [`ImageTraining::plan`] prices DP-SGD with Poisson samples, [`ImagePlan::run`] gives a [`ConvNet`] with its certificate.
//! * [`Notebook`] is a checkpoint: [`ImagePlan::run_with`] resumes an interrupted run at no extra cost, with the same bits.
//! * [`ConvNet::attention`] shows where a network looks: Grad-CAM.
//!
//! ```
//! use quietly::{Budget, Key, Private};
//! use quietly_lab::cnn::{ConvShape, ImageTraining, Pasted};
//! use std::ops::ControlFlow;
//!
//! let shape = ConvShape { side: 8, widths: [4, 4, 4], classes: 2, ..ConvShape::default() };
//! let training = ImageTraining { shape, steps: 5, batch: 20, ..ImageTraining::default() };
//! let plan = training.plan(100, Budget::new(4.0, 1e-5)?)?;
//! assert!(plan.epsilon() <= 4.0);
//!
//! let world = Pasted::new(8, 4, 2, 2.0, Key::from_seed(1))?;
//! let (pictures, _) = world.draw(0, 100)?;
//! let quiet = &mut |_| ControlFlow::Continue(());
//! let (network, certificate) = plan.run(&Private::new(pictures), "picture", Key::from_os()?, 2, quiet)?;
//! assert_eq!(network.weights().len(), shape.weights());
//! println!("{certificate}");
//! # Ok::<(), quietly::Error>(())
//! ```
pub use self::{
    dataset::{Pasted, Pictures},
    grad_cam::Attention,
    network::{ConvNet, ConvShape},
    resume::Notebook,
    training::{ImagePlan, ImageTraining},
};

mod conv;
mod dataset;
mod grad_cam;
mod gradient;
mod group_norm;
mod matmul;
mod network;
mod resume;
#[cfg(test)]
mod tests;
mod training;

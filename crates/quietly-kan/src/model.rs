//! A trained network, as a model file keeps it.
use quietly_engine::error::Error;
use serde::{Deserialize, Serialize};

use super::{architecture::NetworkShape, network::Network, quantized_rows::QuantizedRows};

/// A trained network: public, as all that moved its weights was released.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct KanModel {
    pub(super) network: Network,
}

/// What a file keeps.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    shape: NetworkShape,
    /// All weights, fixed ones too, layer after layer, each [input][function][output].
    weights: Vec<f32>,
}

impl KanModel {
    pub fn new(network: Network) -> Self {
        KanModel { network }
    }

    /// How the network looks.
    pub fn shape(&self) -> &NetworkShape {
        self.network.shape()
    }

    /// The scores of one row of features: one, or one for each class.
    ///
    /// # Panics
    ///
    /// If there are not as many features as inputs.
    pub fn scores(&self, features: &[f64]) -> Vec<f64> {
        assert_eq!(features.len(), self.shape().inputs.len(), "one row of features");
        self.scores_of_rows(features, 1)
    }

    /// The scores of many rows, one after the other.
    ///
    /// # Panics
    ///
    /// If the features are not whole rows.
    pub fn scores_of_rows(&self, features: &[f64], threads: usize) -> Vec<f64> {
        let count = features.len() / self.shape().inputs.len();
        let rows = QuantizedRows::new(self.shape(), features, &vec![0.0; count]);
        let which: Vec<u32> = (0..count as u32).collect();
        self.network.scores(&rows, &which, threads).into_iter().map(f64::from).collect()
    }
}

impl PartialEq for KanModel {
    fn eq(&self, other: &Self) -> bool {
        let all = |t: &KanModel| t.network.all_weights();
        self.shape() == other.shape() && all(self) == all(other)
    }
}

impl From<KanModel> for Stored {
    fn from(trained: KanModel) -> Stored {
        Stored { shape: trained.shape().clone(), weights: trained.network.all_weights() }
    }
}

impl TryFrom<Stored> for KanModel {
    type Error = Error;

    fn try_from(Stored { shape, weights }: Stored) -> Result<Self, Error> {
        Network::of(shape, &weights).map(KanModel::new)
    }
}

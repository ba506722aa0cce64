//! The spline functions of a trained network, for display. They are public.
use quietly_engine::error::Error;

use super::{
    KanModel,
    architecture::{Input, LayerShape},
    network::Network,
};

impl KanModel {
    /// What an input adds to a unit of the first layer: a function of one number within [-1, 1], or of 0 and 1 where the input is
    /// plain.
    ///
    /// # Panics
    ///
    /// If there is no such input or unit.
    pub fn function(&self, input: usize, unit: usize, x: f64) -> f64 {
        let shape = self.shape();
        let layer = &self.network.layers[0];
        let LayerShape { inputs, outputs, .. } = layer.shape;
        assert!(input < inputs && unit < outputs, "an input and a unit of the first layer");
        let size = |input: &Input| if *input == Input::Spline { shape.basis } else { 1 };
        let first: usize = shape.inputs[..input].iter().map(size).sum();
        let weight = |k: usize| layer.weight(first + k, unit);
        let sum = match shape.inputs[input] {
            Input::Plain => x * weight(0),
            Input::Spline => {
                let at = shape.basis().at(x);
                let active = at.values.iter().take(shape.degree + 1).enumerate();
                active.map(|(k, b)| b * weight(at.interval + k)).sum()
            }
        };
        sum / (inputs as f64).sqrt()
    }

    /// The units of the first layer, those first whose weights are farthest from where they started, which `seed` says.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if the start cannot be drawn.
    pub fn moved_most(&self, seed: u64) -> Result<Vec<usize>, Error> {
        let start = Network::new(self.shape().clone(), seed)?;
        let (now, then) = (&self.network.layers[0], &start.layers[0]);
        let moved = |unit: usize| -> f64 {
            let far = |k: usize| (now.weight(k, unit) - then.weight(k, unit)).powi(2);
            (0..now.shape.rows).map(far).sum()
        };
        let mut units: Vec<(f64, usize)> = (0..now.shape.outputs).map(|u| (moved(u), u)).collect();
        units.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(units.into_iter().map(|(_, unit)| unit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NetworkLoss, NetworkShape};

    /// A unit's sum is the sum of its functions; a score is made of such sums by the layers above, so that a network whose other
    /// units are switched off tells.
    #[test]
    fn a_score_is_made_of_the_functions() {
        let inputs = vec![Input::Spline, Input::Plain, Input::Spline];
        let shape =
            NetworkShape { hidden: vec![4], ..NetworkShape::new(inputs, NetworkLoss::Logistic) };
        let network = Network::new(shape.clone(), 3).unwrap();
        let trained = KanModel::new(network.clone());
        for row in [[0.3, 1.0, -0.8], [-1.0, 0.0, 1.0], [0.0, 1.0, 0.99]] {
            let score = |units: usize| {
                // The fixed last layer at tanh of the sums.
                let basis = shape.basis();
                let of = |unit: usize| {
                    let a: f64 = (0..3).map(|i| trained.function(i, unit, row[i])).sum();
                    let at = basis.at(a.tanh());
                    let weight = |k: usize| network.layers[1].weight(unit * shape.basis + k, 0);
                    (0..4).map(|k| at.values[k] * weight(at.interval + k)).sum::<f64>() / 2.0
                };
                (0..units).map(of).sum::<f64>()
            };
            let found = trained.scores(&row)[0];
            // Splines of rows are bytes: 1/255 each.
            assert!((score(4) - found).abs() < 0.02, "{} {found}", score(4));
            assert!((score(3) - found).abs() > 0.02, "one unit less is another score");
        }
    }

    #[test]
    fn the_unit_that_moved_is_found() {
        let shape = NetworkShape::new(vec![Input::Spline; 2], NetworkLoss::Logistic);
        let mut network = Network::new(shape.clone(), 9).unwrap();
        let mut weights = network.weights();
        // Function 5 of the second input, units 7 and 2.
        weights[(shape.basis + 5) * 64 + 7] += 1.0;
        weights[2] += 0.5;
        network.set_weights(&weights);
        let units = KanModel::new(network).moved_most(9).unwrap();
        assert_eq!((units.len(), units[0], units[1]), (64, 7, 2));
    }
}

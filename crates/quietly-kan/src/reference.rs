//! The same network in double precision, dense and slow, to compare with.
use super::{
    architecture::{Input, NetworkLoss, NetworkShape},
    network::Network,
    quantized_rows::{ONE, Row},
};

pub(super) struct Reference {
    shape: NetworkShape,
    /// All layers, [function][output].
    pub(super) layers: Vec<Vec<f64>>,
}

impl Reference {
    pub(super) fn of(network: &Network) -> Self {
        let layers = network.layers.iter().map(|layer| layer.get().map(f64::from).collect());
        Self { shape: network.shape.clone(), layers: layers.collect() }
    }

    /// One trainable weight, counted through the trainable layers.
    pub(super) fn weight(&mut self, index: usize) -> &mut f64 {
        let shapes = self.shape.layers();
        let l = shapes.iter().rposition(|l| l.trainable && l.offset <= index).unwrap();
        &mut self.layers[l][index - shapes[l].offset]
    }

    /// All functions of the first layer at a row.
    pub(super) fn first(&self, row: Row<'_>) -> Vec<f64> {
        let (mut features, mut spline, mut plain) = (vec![], 0, 0);
        for input in &self.shape.inputs {
            match input {
                Input::Plain => {
                    features.push(f64::from(row.plain[plain]) / ONE);
                    plain += 1;
                }
                Input::Spline => {
                    let start = features.len();
                    features.resize(start + self.shape.basis, 0.0);
                    let active = self.shape.degree + 1;
                    let interval = usize::from(row.intervals[spline]);
                    for k in 0..active {
                        let word = row.words[spline * active + k];
                        features[start + interval + k] = f64::from(word) / ONE;
                    }
                    spline += 1;
                }
            }
        }
        features
    }

    pub(super) fn scores(&self, row: Row<'_>) -> Vec<f64> {
        let mut features = self.first(row);
        let mut inputs = self.shape.inputs.len();
        let mut sums = vec![];
        for (l, weights) in self.layers.iter().enumerate() {
            let outputs = weights.len() / features.len();
            sums = vec![0.0; outputs];
            for (b, weights) in features.iter().zip(weights.chunks_exact(outputs)) {
                sums.iter_mut().zip(weights).for_each(|(sum, w)| *sum += b * w);
            }
            sums.iter_mut().for_each(|sum| *sum /= (inputs as f64).sqrt());
            if l + 1 < self.layers.len() {
                features = sums.iter().flat_map(|a| self.dense(a.tanh())).collect();
                inputs = outputs;
            }
        }
        sums
    }

    pub(super) fn loss(&self, row: Row<'_>) -> f64 {
        let (f, y) = (self.scores(row), f64::from(row.label));
        match self.shape.loss {
            NetworkLoss::Logistic => (-y * f[0]).exp().ln_1p(),
            NetworkLoss::Softmax { .. } => {
                f.iter().map(|f| f.exp()).sum::<f64>().ln() - f[y as usize]
            }
            NetworkLoss::Huber { width } => {
                let gap = (f[0] - y).abs();
                if gap <= width { gap * gap / 2.0 } else { width * (gap - width / 2.0) }
            }
        }
    }

    /// The derivative by one weight, from a central difference.
    pub(super) fn slope(&mut self, row: Row<'_>, index: usize) -> f64 {
        const H: f64 = 1e-5;
        let start = *self.weight(index);
        let mut at = |w| {
            *self.weight(index) = w;
            self.loss(row)
        };
        let slope = (at(start + H) - at(start - H)) / (2.0 * H);
        at(start);
        slope
    }

    /// All splines at v, by their definition.
    fn dense(&self, v: f64) -> Vec<f64> {
        fn spline(v: f64, knot: f64, width: f64, degree: usize) -> f64 {
            if degree == 0 {
                return f64::from(u8::from(knot <= v && v < knot + width));
            }
            let reach = degree as f64 * width;
            (v - knot) / reach * spline(v, knot, width, degree - 1)
                + (knot + reach + width - v) / reach * spline(v, knot + width, width, degree - 1)
        }
        let (p, o) = (self.shape.basis, self.shape.degree);
        let width = 2.0 / (p - o) as f64;
        (0..p).map(|k| spline(v, (k as f64 - o as f64) * width - 1.0, width, o)).collect()
    }
}

//! Step sizes that learn from released gradients: post-processing.

/// Step sizes of a descent, one for every coordinate, with a heavy ball.
///
/// A coordinate whose released gradients change sign, both beyond twice their noise and the second not much smaller
/// than the first, swings: its step is halved and its speed forgotten. All of it depends on released values only.
pub struct StepSize {
    pub sizes: Vec<f64>,
    speed: Vec<f64>,
    last: Option<(Vec<f64>, f64)>,
}

impl StepSize {
    pub fn new(sizes: Vec<f64>) -> Self {
        let speed = vec![0.0; sizes.len()];
        StepSize { sizes, speed, last: None }
    }

    /// Moves `weights` along a released gradient whose noise has standard deviation `std`.
    pub fn go(&mut self, weights: &mut [f64], gradient: Vec<f64>, std: f64, momentum: f64) {
        if let Some((before, noise)) = &self.last {
            for j in 0..gradient.len() {
                let (g, p) = (gradient[j], before[j]);
                if g * p < 0.0
                    && g.abs() > 2.0 * std
                    && p.abs() > 2.0 * noise
                    && g.abs() > 0.5 * p.abs()
                {
                    self.sizes[j] *= 0.5;
                    self.speed[j] = 0.0;
                }
            }
        }
        for (j, g) in gradient.iter().enumerate() {
            self.speed[j] = momentum * self.speed[j] + self.sizes[j] * g;
            weights[j] += self.speed[j];
        }
        self.last = Some((gradient, std));
    }
}

//! Which iterates of a descent are returned.
use std::ops::Range;

/// Which iterates are averaged, by the steps that made them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Average {
    /// The last one alone.
    Last,
    /// Those of steps `from` to `until`, without the end.
    Steps {
        from: u64,
        until: u64,
        /// Divides each iterate before it is added. The mean differs by rounding; seeded results depend on it.
        divides_first: bool,
    },
}

impl Average {
    /// The mean over these steps.
    pub fn over(steps: Range<u64>) -> Self {
        Average::Steps { from: steps.start, until: steps.end, divides_first: false }
    }

    /// The mean over the last half of `steps` steps: those after the first ⌊T/2⌋.
    pub fn last_half(steps: u64) -> Self {
        Average::over(steps / 2..steps)
    }

    /// The same, each iterate divided before it is added.
    pub fn dividing_first(self) -> Self {
        match self {
            Average::Last => self,
            Average::Steps { from, until, .. } => {
                Average::Steps { from, until, divides_first: true }
            }
        }
    }
}

/// The average so far.
pub struct Mean {
    average: Average,
    sum: Vec<f64>,
}

impl Mean {
    pub fn new(average: Average, width: usize) -> Self {
        let sum = if average == Average::Last { vec![] } else { vec![0.0; width] };
        Mean { average, sum }
    }

    /// Takes the weights that a step made.
    pub fn take(&mut self, step: u64, weights: &[f64]) {
        let Average::Steps { from, until, divides_first } = self.average else { return };
        if (from..until).contains(&step) {
            let count = if divides_first { (until - from) as f64 } else { 1.0 };
            self.sum.iter_mut().zip(weights).for_each(|(s, w)| *s += w / count);
        }
    }

    /// The average, where the last weights are these.
    pub fn of(self, last: Vec<f64>) -> Vec<f64> {
        let Average::Steps { from, until, divides_first } = self.average else { return last };
        let count = if divides_first { 1.0 } else { (until - from).max(1) as f64 };
        self.sum.into_iter().map(|s| s / count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/spec/regression.md#14, test 7: the last half has T - ⌊T/2⌋ terms, w_T among them; w_0
    /// is never one, as no step makes it.
    #[test]
    fn the_last_half_ends_with_the_last_iterate() {
        for steps in [1_u64, 2, 3, 19, 20, 4001] {
            let Average::Steps { from, until, .. } = Average::last_half(steps) else { panic!() };
            assert_eq!((until - from, until), (steps - steps / 2, steps));
        }
    }

    #[test]
    fn means_are_over_the_steps_that_were_asked_for() {
        let mean = |average: Average| {
            let mut mean = Mean::new(average, 1);
            (0..7).for_each(|t| mean.take(t, &[(t * t) as f64]));
            mean.of(vec![36.0])[0]
        };
        assert_eq!(mean(Average::Last), 36.0);
        assert_eq!(mean(Average::over(0..7)), 13.0);
        assert_eq!(mean(Average::over(2..3)), 4.0);
        assert_eq!(mean(Average::last_half(7)), (9.0 + 16.0 + 25.0 + 36.0) / 4.0);
        let divided = mean(Average::last_half(7).dividing_first());
        assert!((divided - 21.5).abs() < 1e-12);
    }
}

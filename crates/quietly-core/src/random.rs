//! A repeatable random number generator for tests.

/// Marsaglia's xorshift generator.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in [-1, 1).
    pub fn number(&mut self) -> f64 {
        (self.word() >> 11) as f64 / 2f64.powi(52) - 1.0
    }

    /// A positive number of any size, with extremes among them.
    pub fn size(&mut self) -> f64 {
        match self.word() % 8 {
            0 => 5e-324,
            1 => 1e308,
            2 => f64::MIN_POSITIVE,
            _ => 2f64.powf(self.number() * 1000.0) * (1.0 + self.number().abs()),
        }
    }
}

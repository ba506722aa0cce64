//! Tables drawn from a known distribution, and the excess risk of a fit.
use quietly::{Key, Link, Private, Table};
use quietly_cli::error::Failure;
use quietly_noise::Bits;

/// Features lie within [-6, 6], which is public; one draw in a billion does not and is clamped.
const REACH: f64 = 6.0;

/// Rows beside the private ones: for thresholds, and for tests of ReLU models.
const PUBLIC: usize = 200;
const TEST: usize = 2000;

/// A distribution of tables: x ~ N(0, diag λ) with λ log-spaced from 1 to 1/κ, y = <x, w*> + z or max(<x, w*>, 0) + z.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) link: Link,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// The standard deviation of z.
    pub(crate) sigma: f64,
    /// The condition number of the features' second moment.
    pub(crate) kappa: f64,
    /// ||w*||² in the norm of the second moment.
    pub(crate) signal: f64,
}

/// A table and its true weights.
pub(crate) struct World {
    setting: Setting,
    pub(crate) table: Private<Table>,
    /// Public rows of the same distribution.
    pub(crate) public: Table,
    truth: Vec<f64>,
    /// Features of the table and of fresh rows, for ReLU models: synthetic, so public.
    train: Vec<f64>,
    test: Vec<f64>,
}

impl Setting {
    /// The variances of the features.
    pub(crate) fn variances(&self) -> Vec<f64> {
        let last = self.width.max(2) - 1;
        (0..self.width).map(|j| self.kappa.powf(-(j as f64) / last as f64)).collect()
    }

    /// A public range of the target: four standard deviations, which are five or six for max(u, 0).
    pub(crate) fn range(&self) -> (f64, f64) {
        let most = 4.0 * (self.signal + self.sigma * self.sigma).sqrt();
        let most = if self.link == Link::Relu { 1.3 * most } else { most };
        (-most, most)
    }

    /// ||w*|| of encoded features, for a target in units of its range: a parameter of DP-PGD.
    pub(crate) fn radius(&self) -> f64 {
        REACH * self.signal.sqrt() / self.range().1
    }

    /// How many weights are fitted, the intercept among them.
    pub(crate) fn weights(&self) -> f64 {
        (self.width + 1) as f64
    }

    /// What least squares adds to the risk: σ²(d + 1)/2N.
    pub(crate) fn statistical(&self) -> f64 {
        self.sigma * self.sigma * self.weights() / (2.0 * self.rows as f64)
    }

    /// A table of this distribution.
    pub(crate) fn draw(&self, seed: u64) -> Result<World, Failure> {
        let key = Key::from_seed(seed);
        let stream = |name: &str| Ok::<_, Failure>(Normals::new(key.stream(name).bits(0)?));
        let variances = self.variances();
        let mut truth = vec![0.0; self.width];
        stream("truth")?.fill(&mut truth)?;
        let norm2: f64 = truth.iter().zip(&variances).map(|(w, v)| v * w * w).sum();
        let scale = (self.signal / norm2.max(f64::MIN_POSITIVE)).sqrt();
        truth.iter_mut().for_each(|w| *w *= scale);

        let scales: Vec<f64> = variances.iter().map(|v| v.sqrt()).collect();
        let draw = |normals: &mut Normals, rows: usize| -> Result<(Vec<f64>, Vec<f64>), Failure> {
            let mut x = vec![0.0; rows * self.width];
            normals.fill(&mut x)?;
            let mut y = vec![0.0; rows];
            normals.fill(&mut y)?;
            for (row, y) in x.chunks_exact_mut(self.width).zip(&mut y) {
                row.iter_mut().zip(&scales).for_each(|(x, s)| *x *= s);
                *y = self.link.apply(dot(row, &truth)) + self.sigma * *y;
            }
            Ok((x, y))
        };
        let (train, y) = draw(&mut stream("rows")?, self.rows)?;
        let (public, public_y) = draw(&mut stream("public rows")?, PUBLIC)?;
        let relu = self.link == Link::Relu;
        let test = if relu { draw(&mut stream("test rows")?, TEST)?.0 } else { vec![] };
        let encoded = |x: &[f64]| x.iter().map(|x| x / REACH).collect();
        let table = Private::new(Table::new(self.width, encoded(&train), y));
        let public = Table::new(self.width, encoded(&public), public_y);
        let train = if relu { train } else { vec![] };
        Ok(World { setting: *self, table, public, truth, train, test })
    }
}

impl World {
    /// The excess risk of weights of encoded features: on fresh rows, and on those of the table.
    ///
    /// For linear models ½(||w - w*||² + b²) in the norm of the second moment, exactly, and the same for both. For ReLU models
    /// half the mean squared distance from max(<x, w*>, 0) over the rows.
    pub(crate) fn risks(&self, intercept: f64, weights: &[f64]) -> (f64, f64) {
        let weights: Vec<f64> = weights.iter().map(|w| w / REACH).collect();
        if self.setting.link == Link::Linear {
            let parts = weights.iter().zip(&self.truth).zip(self.setting.variances());
            let square: f64 = parts.map(|((w, t), v)| v * (w - t) * (w - t)).sum();
            let risk = 0.5 * (square + intercept * intercept);
            return (risk, risk);
        }
        let on = |rows: &[f64]| {
            let rows = rows.chunks_exact(self.setting.width);
            let count = rows.len() as f64;
            let off = |row| {
                self.apply(dot(row, &weights) + intercept) - self.apply(dot(row, &self.truth))
            };
            0.5 * rows.map(off).map(|e: f64| e * e).sum::<f64>() / count
        };
        (on(&self.test), on(&self.train))
    }

    fn apply(&self, u: f64) -> f64 {
        self.setting.link.apply(u)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Normal draws by Box and Muller: synthetic data need no exact distribution.
pub(crate) struct Normals {
    bits: Bits,
}

impl Normals {
    pub(crate) fn new(bits: Bits) -> Normals {
        Normals { bits }
    }

    pub(crate) fn fill(&mut self, out: &mut [f64]) -> Result<(), Failure> {
        for pair in out.chunks_mut(2) {
            let (u, v) = (1.0 - self.uniform()?, self.uniform()?);
            let (length, angle) = ((-2.0 * u.ln()).sqrt(), std::f64::consts::TAU * v);
            let (sin, cos) = angle.sin_cos();
            pair.iter_mut().zip([length * cos, length * sin]).for_each(|(x, z)| *x = z);
        }
        Ok(())
    }

    fn uniform(&mut self) -> Result<f64, Failure> {
        Ok((self.bits.word()? >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(link: Link) -> Setting {
        Setting { link, rows: 40_000, width: 4, sigma: 0.5, kappa: 100.0, signal: 2.0 }
    }

    /// The spread of a mean square of n normals is √(2/n): 5 of those are met by chance once in two million.
    #[test]
    fn features_have_the_second_moment_that_is_said() {
        let world = Setting { link: Link::Relu, ..setting(Link::Linear) }.draw(3).unwrap();
        let variances = world.setting.variances();
        assert_eq!((variances[0], variances.len()), (1.0, 4));
        assert!((variances[3] - 0.01).abs() < 1e-12, "{variances:?}");
        let rows = || world.train.chunks_exact(4);
        for j in 0..4 {
            for k in 0..=j {
                let mean = rows().map(|r| r[j] * r[k]).sum::<f64>() / 40_000.0;
                let unit = (variances[j] * variances[k]).sqrt();
                let expected = if j == k { variances[j] } else { 0.0 };
                assert!(
                    (mean - expected).abs() < 5.0 * unit * (2.0_f64 / 40_000.0).sqrt(),
                    "{j} {k}"
                );
            }
        }
        let signal: f64 = world.truth.iter().zip(&variances).map(|(w, v)| v * w * w).sum();
        assert!((signal - 2.0).abs() < 1e-9, "{signal}");
    }

    /// The exact risk against the mean over fresh rows, for weights that are wrong; and the truth itself has none.
    #[test]
    fn the_risk_is_what_fresh_rows_say() {
        let world = setting(Link::Linear).draw(5).unwrap();
        let twin = Setting { link: Link::Relu, ..setting(Link::Linear) }.draw(5).unwrap();
        assert_eq!(world.truth, twin.truth);
        let right: Vec<f64> = world.truth.iter().map(|w| w * REACH).collect();
        assert!(world.risks(0.0, &right).0 < 1e-25);
        assert_eq!(twin.risks(0.0, &right), (0.0, 0.0));
        let wrong: Vec<f64> = right.iter().map(|w| w + 3.0).collect();
        let off = |row: &[f64]| row.iter().sum::<f64>() * 3.0 / REACH + 0.2;
        let rows = twin.train.chunks_exact(4);
        let sampled = 0.5 * rows.map(|r| off(r).powi(2)).sum::<f64>() / 40_000.0;
        let exact = world.risks(0.2, &wrong).0;
        assert!((sampled / exact - 1.0).abs() < 0.04, "{sampled} {exact}");
        // The zero model has half the signal, or a quarter for ReLU.
        assert!((world.risks(0.0, &[0.0; 4]).0 - 1.0).abs() < 1e-12);
        let (test, train) = twin.risks(0.0, &[0.0; 4]);
        assert!((train - 0.5).abs() < 0.03 && (test - 0.5).abs() < 0.15, "{test} {train}");
    }

    #[test]
    fn the_same_seed_gives_the_same_table() {
        let draw = |seed| setting(Link::Relu).draw(seed).unwrap().train;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}

//! Clipped gradients, added up as integers.
use quietly_core::lattice::{self, Lattice};

use super::{Examples, Features, Row};
use crate::glm::Glm;

impl Examples<'_> {
    /// Σ derivative·z over all rows, or over these, each held to the lattice's clip and rounded to its integers.
    ///
    /// With several outputs a row's vector is derivatives ⊗ z. Its numbers v are what [`lattice`] calls z there, with
    /// the coefficient 1, so that ‖q‖ ≤ [`Lattice::bound`] whatever led to them: no row adds more. A sum of integers
    /// is the same in any order, and no part has the 2³² rows that would fill its numbers.
    pub fn clipped_gradient_sum(
        &self,
        glm: Glm,
        w: &[f64],
        lattice: &Lattice,
        chosen: Option<&[u32]>,
    ) -> Vec<i64> {
        let (outputs, size) = (glm.outputs(), self.size());
        let count = chosen.map_or(self.rows(), <[u32]>::len);
        let parts = self.in_parts(0..count, |range| {
            let mut sum = vec![0_i64; outputs * size];
            let (mut derivatives, mut v, mut at) = (vec![0.0; outputs], Vec::new(), Vec::new());
            for i in range.map(|k| chosen.map_or(k, |chosen| chosen[k] as usize)) {
                let scale = self.scale(i);
                if scale == 0.0 {
                    continue;
                }
                for (derivative, w) in derivatives.iter_mut().zip(w.chunks_exact(size)) {
                    *derivative = self.scaled_score(i, scale, w);
                }
                glm.derivatives(&mut derivatives, self.target[i]);
                self.outer(i, scale, &derivatives, &mut v, &mut at);
                let a = lattice.clipped_coefficient(1.0, lattice::norm(Row::Dense(&v).dot(&v)));
                // What overflows is held to nothing, and nothing times infinity would be no number. Held derivatives and cut
                // rows do not overflow; nothing here relies on that.
                if a == 0.0 {
                    continue;
                }
                let units = v.iter().map(|v| lattice::lowered(lattice::raised(a * v), 1));
                match self.features {
                    Features::Dense(_) => sum.iter_mut().zip(units).for_each(|(s, q)| *s += q),
                    Features::Sparse { .. } => at.iter().zip(units).for_each(|(&j, q)| sum[j] += q),
                }
            }
            sum
        });
        let mut total = vec![0_i128; outputs * size];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += i128::from(part));
        }
        total.into_iter().map(lattice::clamped).collect()
    }

    /// The numbers v of derivatives ⊗ z for row i; where rows are sparse, those that may be other than zero, and their places.
    fn outer(
        &self,
        i: usize,
        scale: f64,
        derivatives: &[f64],
        v: &mut Vec<f64>,
        at: &mut Vec<usize>,
    ) {
        v.clear();
        at.clear();
        for (k, derivative) in derivatives.iter().enumerate() {
            let (c, first) = (derivative * scale, k * self.size());
            match self.row(i) {
                Row::Dense(x) => v.extend(x.iter().map(|x| c * x)),
                Row::Sparse(index, x) => {
                    v.extend(x.iter().map(|x| c * x));
                    at.extend(index.iter().map(|&j| first + j as usize));
                }
            }
            if self.constant != 0.0 {
                v.push(c * self.constant);
                at.push(first + self.width);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        design_matrix::Shape,
        minimiser::tests::{SMOOTH, rows},
    };

    /// A clip that no gradient meets leaves the plain sum, on any number of threads, dense or sparse, of all rows or some.
    #[test]
    fn integers_add_up_to_the_gradient() {
        for glm in SMOOTH {
            let (x, y) = rows(3000, 4, glm, 8);
            let shape = Shape { width: 4, constant: 0.5, l1: None, radius: 2.0 };
            let w: Vec<f64> = (0..5 * glm.outputs()).map(|j| 0.3 * j as f64 - 0.7).collect();
            let lattice = Lattice::for_sums(100.0, w.len());
            let starts: Vec<usize> = (0..=3000).map(|i| 4 * i).collect();
            let index: Vec<u32> = (0..12_000).map(|k| k % 4).collect();
            let sparse = Features::Sparse { starts: &starts, index: &index, values: &x };
            let of = |features, threads| Examples::new(shape, features, y.clone(), threads);
            let (one, three, thin) =
                (of(Features::Dense(&x), 1), of(Features::Dense(&x), 3), of(sparse, 2));
            let all = one.clipped_gradient_sum(glm, &w, &lattice, None);
            assert_eq!(three.clipped_gradient_sum(glm, &w, &lattice, None), all);
            let plain = one.gradient(glm, &w, 0..3000);
            for (q, g) in all.iter().zip(&plain) {
                assert!((*q as f64 * lattice.step() - g).abs() < 3000.0 * lattice.step());
            }
            // Products of sparse rows are added in another order.
            let apart = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).max();
            assert!(apart(&thin.clipped_gradient_sum(glm, &w, &lattice, None), &all) <= Some(3));
            let (even, odd): (Vec<u32>, Vec<u32>) = (0..3000).partition(|i| i % 2 == 0);
            let even = one.clipped_gradient_sum(glm, &w, &lattice, Some(&even));
            let odd = three.clipped_gradient_sum(glm, &w, &lattice, Some(&odd));
            let both: Vec<i64> = even.iter().zip(&odd).map(|(a, b)| a + b).collect();
            assert_eq!(both, all);
        }
    }

    /// Numbers beyond all bounds are held to nothing.
    #[test]
    fn what_is_not_a_number_counts_as_nothing() {
        let shape = Shape { width: 1, constant: 0.0, l1: None, radius: 2.0 };
        let examples = Examples::new(shape, Features::Dense(&[1.0, 1.0]), vec![1.0, f64::NAN], 1);
        for glm in [SMOOTH[1], SMOOTH[5]] {
            let lattice = Lattice::for_sums(1.0, glm.outputs());
            for w in [f64::NAN, f64::INFINITY, 1e308] {
                let sum =
                    examples.clipped_gradient_sum(glm, &vec![w; glm.outputs()], &lattice, None);
                assert!(sum.iter().all(|s| s.abs() <= lattice.bound()), "{glm:?} {w}");
            }
        }
    }
}

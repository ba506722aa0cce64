//! One row, dense or sparse.
use quietly_data::Sparse;

use super::Features;

/// The features of one row.
#[derive(Clone, Copy)]
pub enum Row<'a> {
    Dense(&'a [f64]),
    Sparse(&'a [u32], &'a [f64]),
}

impl Row<'_> {
    /// ⟨w, x⟩: any order of d products errs by at most d·u·‖w‖·‖x‖.
    #[inline(always)]
    pub fn dot(self, w: &[f64]) -> f64 {
        match self {
            Row::Dense(x) => lanes(x, w, |x, w| x * w),
            Row::Sparse(index, values) => {
                let mut sum = 0.0;
                for (&j, x) in index.iter().zip(values) {
                    sum += w[j as usize] * x;
                }
                sum
            }
        }
    }

    /// sum += c·x
    #[inline(always)]
    pub fn add_to(self, c: f64, sum: &mut [f64]) {
        match self {
            // Loops, as closures are not always inlined.
            Row::Dense(x) => {
                for (s, x) in sum.iter_mut().zip(x) {
                    *s += c * x;
                }
            }
            Row::Sparse(index, values) => {
                for (&j, x) in index.iter().zip(values) {
                    sum[j as usize] += c * x;
                }
            }
        }
    }

    /// Σ|x|, in any order.
    #[inline(always)]
    pub fn size(self) -> f64 {
        let (Row::Dense(x) | Row::Sparse(_, x)) = self;
        lanes(x, x, |x, _| x.abs())
    }

    /// Σx², in any order.
    #[inline(always)]
    pub fn square(self) -> f64 {
        let (Row::Dense(x) | Row::Sparse(_, x)) = self;
        lanes(x, x, |x, _| x * x)
    }

    /// Every entry that may be other than zero.
    pub fn entries(self) -> impl Iterator<Item = (usize, f64)> {
        let (dense, sparse) = match self {
            Row::Dense(x) => (Some(x), None),
            Row::Sparse(index, values) => (None, Some(index.iter().zip(values))),
        };
        let dense = dense.into_iter().flat_map(|x| x.iter().copied().enumerate());
        dense.chain(sparse.into_iter().flatten().map(|(&j, &x)| (j as usize, x)))
    }
}

/// Σ f(a, b) over two slices, in lanes that a processor adds side by side.
#[inline(always)]
fn lanes(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> f64 {
    const LANES: usize = 8;
    let (a_all, a_rest) = a.as_chunks::<LANES>();
    let (b_all, b_rest) = b[..a.len()].as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_all.iter().zip(b_all) {
        for lane in 0..LANES {
            sums[lane] += f(a[lane], b[lane]);
        }
    }
    let mut rest = 0.0;
    for (a, b) in a_rest.iter().zip(b_rest) {
        rest += f(*a, *b);
    }
    // Opaque to the optimiser, which otherwise turns the loop before around to suit these sums.
    let s = std::hint::black_box(sums);
    ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])) + rest
}

impl<'a> From<&'a Sparse> for Features<'a> {
    fn from(rows: &'a Sparse) -> Self {
        Features::Sparse { starts: &rows.starts, index: &rows.index, values: &rows.values }
    }
}

impl<'a> Features<'a> {
    /// Row i of `width` features.
    #[inline(always)]
    pub fn row(self, i: usize, width: usize) -> Row<'a> {
        match self {
            Features::Dense(all) => Row::Dense(&all[i * width..][..width]),
            Features::Sparse { starts, index, values } => {
                let range = starts[i]..starts[i + 1];
                Row::Sparse(&index[range.clone()], &values[range])
            }
        }
    }
}

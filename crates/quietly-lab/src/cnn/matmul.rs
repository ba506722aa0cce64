//! The one loop that a network of pictures spends its time in.
//!
//! All three products of a convolution (its answer, the gradient of its weights and that of its input) are sums of rows
//! times numbers. Each entry is added up by itself, from the first term to the last and fused, so that it has the same bits
//! in any tile and on any processor; one without fused products computes them in software, slowly.

/// How the numbers on the left are found: those of row r at `start + r·row + o·outer.1 + i·inner.1`, for the o below
/// `outer.0` and the i below `inner.0`, in this order.
#[derive(Clone, Copy)]
pub(super) struct Left {
    pub(super) start: usize,
    pub(super) row: usize,
    pub(super) outer: (usize, usize),
    pub(super) inner: (usize, usize),
}

/// Where the rows of the answer are: `rows` of them, `row` apart.
#[derive(Clone, Copy)]
pub(super) struct Into {
    pub(super) start: usize,
    pub(super) row: usize,
    pub(super) rows: usize,
}

/// Adds left times right, whose rows have `columns` numbers and follow each other, to `out`. Rows of `out` may overlap.
#[inline(always)]
pub(super) fn add_product(
    (a, left): (&[f32], Left),
    (b, columns): (&[f32], usize),
    (out, into): (&mut [f32], Into),
) {
    const ROWS: usize = 4;
    let mut row = 0;
    while row + ROWS <= into.rows {
        strip::<ROWS>((a, left), (b, columns), (out, into), row);
        row += ROWS;
    }
    while row < into.rows {
        strip::<1>((a, left), (b, columns), (out, into), row);
        row += 1;
    }
}

#[inline(always)]
fn strip<const R: usize>(
    left: (&[f32], Left),
    right: (&[f32], usize),
    (out, into): (&mut [f32], Into),
    row: usize,
) {
    const WIDE: usize = 16;
    let mut column = 0;
    while column + WIDE <= right.1 {
        tile::<R, WIDE>(left, right, (out, into), row, column);
        column += WIDE;
    }
    while column < right.1 {
        tile::<R, 1>(left, right, (out, into), row, column);
        column += 1;
    }
}

#[inline(always)]
fn tile<const R: usize, const N: usize>(
    (a, left): (&[f32], Left),
    (b, columns): (&[f32], usize),
    (out, into): (&mut [f32], Into),
    row: usize,
    column: usize,
) {
    let mut sums = [[0.0_f32; N]; R];
    let mut right = column;
    for o in 0..left.outer.0 {
        let mut at = left.start + row * left.row + o * left.outer.1;
        for _ in 0..left.inner.0 {
            let line: &[f32; N] = b[right..][..N].try_into().expect("as long as asked for");
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = a[at + r * left.row];
                for (sum, y) in sums.iter_mut().zip(line) {
                    *sum = x.mul_add(*y, *sum);
                }
            }
            at += left.inner.1;
            right += columns;
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let out = &mut out[into.start + (row + r) * into.row + column..][..N];
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
    }
}

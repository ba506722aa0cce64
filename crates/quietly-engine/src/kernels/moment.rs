//! The sum of the outer products of rows with themselves.
//!
//! A row is scaled down to the clip norm, put on the lattice as integers below 2¹⁷, and multiplied
//! with itself. Products are below 2³⁴, so double precision adds 2¹⁹ of them exactly.
use std::ops::Range;

use quietly_core::lattice::{Lattice, clamped, nearest_f64, norm};

use super::{LANES, Rows, SimdBlock, WhitenedRows, across, dispatch, workers::in_blocks};

/// How many rows are multiplied together; they stay in the cache meanwhile.
const SHEET: usize = 128;

/// How many rows are added in double precision.
const EXACT: usize = 1 << 19;

/// Columns of a tile of the product. With [`LANES`] rows, a tile fits in registers.
const PANEL: usize = 8;

type Tile = [[f64; PANEL]; LANES];

/// Rows that can be put on a lattice.
pub trait Source: Sync {
    /// How many there are.
    fn rows(&self) -> usize;

    /// How many features each has.
    fn width(&self) -> usize;

    /// Calls a row that comes after row `row` into the cache, where that helps.
    fn call(&self, row: usize);

    /// Writes row `row`, scaled down to the clip norm, in lattice units, in front of zeros.
    fn integers(&self, row: usize, clip: &Lattice, into: &mut [[f64; LANES]]);
}

impl Source for WhitenedRows {
    fn rows(&self) -> usize {
        self.rows()
    }

    fn width(&self) -> usize {
        self.width()
    }

    /// These rows lie one after the other, which memory sees by itself.
    #[inline(always)]
    fn call(&self, _row: usize) {}

    #[inline(always)]
    fn integers(&self, row: usize, clip: &Lattice, into: &mut [[f64; LANES]]) {
        let coefficient = clip.clipped_coefficient(1.0, f64::from(self.norms[row]));
        for (into, z) in into.iter_mut().zip(self.row(row)) {
            *into = z.map(|z| nearest_f64(coefficient * f64::from(z)));
        }
    }
}

impl Source for Rows<'_> {
    fn rows(&self) -> usize {
        self.rows()
    }

    fn width(&self) -> usize {
        self.map.width()
    }

    #[inline(always)]
    fn call(&self, row: usize) {
        self.call(row);
    }

    #[inline(always)]
    fn integers(&self, row: usize, clip: &Lattice, into: &mut [[f64; LANES]]) {
        let (width, constant) = (self.map.table_width(), self.map.constant);
        self.transformed(row, into);
        let mut squares = [0.0; LANES];
        for z in into.iter() {
            for lane in 0..LANES {
                squares[lane] += z[lane] * z[lane];
            }
        }
        let coefficient =
            clip.clipped_coefficient(1.0, norm(across([squares])[0] + constant * constant));
        for z in into.iter_mut() {
            *z = z.map(|z| nearest_f64(coefficient * z));
        }
        into[width / LANES][width % LANES] = nearest_f64(coefficient * constant);
    }
}

/// Σ z zᵀ over all rows, each first scaled down to the clip norm: the upper triangle, row by row,
/// in units of the squared step. A record moves the whole matrix by C² in Frobenius norm.
pub fn second_moment(source: &impl Source, clip: &Lattice, threads: usize) -> Vec<i64> {
    let width = source.width();
    let work = |products: &mut Products, lines: Range<usize>| {
        products.make_room(lines.len());
        dispatch(Sheet { source, clip, lines, products });
    };
    let workers = in_blocks(source.rows(), SHEET, threads, || Products::new(width), work);
    let mut total = vec![0i128; width * (width + 1) / 2];
    for mut worker in workers {
        worker.make_room(EXACT);
        total.iter_mut().zip(&worker.total).for_each(|(sum, x)| *sum += x);
    }
    total.into_iter().map(clamped).collect()
}

/// A sheet of rows to be multiplied.
struct Sheet<'a, S> {
    source: &'a S,
    clip: &'a Lattice,
    lines: Range<usize>,
    products: &'a mut Products,
}

impl<S: Source> SimdBlock for Sheet<'_, S> {
    #[inline(always)]
    fn run(self) {
        let lines = self.lines.len();
        for (i, row) in self.lines.enumerate() {
            self.source.call(row);
            self.source.integers(row, self.clip, &mut self.products.row);
            self.products.lay_down(i);
        }
        self.products.multiply(lines);
    }
}

/// What one worker has multiplied so far.
struct Products {
    width: usize,
    row: Vec<[f64; LANES]>,
    /// The rows of a sheet, cut into panels of columns.
    panels: Vec<[[f64; PANEL]; SHEET]>,
    /// Sums over the last `rows` rows, tile by tile as [`tiles`] lists them.
    tiles: Vec<Tile>,
    rows: usize,
    /// The upper triangle of all rows before, row by row.
    total: Vec<i128>,
}

impl Products {
    fn new(width: usize) -> Self {
        let panels = width.div_ceil(PANEL);
        Self {
            width,
            row: vec![[0.0; LANES]; panels * PANEL / LANES],
            panels: vec![[[0.0; PANEL]; SHEET]; panels],
            tiles: vec![[[0.0; PANEL]; LANES]; tiles(width).count()],
            rows: 0,
            total: vec![0; width * (width + 1) / 2],
        }
    }

    /// Puts the current row into line `i` of the sheet.
    #[inline(always)]
    fn lay_down(&mut self, i: usize) {
        let panels = self.row.as_flattened().as_chunks::<PANEL>().0;
        for (panel, numbers) in self.panels.iter_mut().zip(panels) {
            panel[i] = *numbers;
        }
    }

    /// Adds the products of the first lines of the sheet.
    #[inline(always)]
    fn multiply(&mut self, lines: usize) {
        for (tile, (top, panel)) in self.tiles.iter_mut().zip(tiles(self.width)) {
            let tall = &self.panels[top / (PANEL / LANES)][..lines];
            let wide = &self.panels[panel][..lines];
            // Constants, so that each case is compiled on its own.
            match top % (PANEL / LANES) {
                0 => multiply::<0>(tile, tall, wide),
                _ => multiply::<1>(tile, tall, wide),
            }
        }
        self.rows += lines;
    }

    /// Moves the sums to the total if `more` rows might not be added exactly.
    fn make_room(&mut self, more: usize) {
        if self.rows + more <= EXACT {
            return;
        }
        self.rows = 0;
        let width = self.width;
        for (tile, (top, panel)) in self.tiles.iter_mut().zip(tiles(width)) {
            for (i, line) in (top * LANES..width).zip(tile) {
                for (j, sum) in (panel * PANEL..width).zip(line) {
                    if i <= j {
                        // Rows before i have `width`, `width - 1`, … entries.
                        let start = i * (2 * width + 1 - i) / 2;
                        self.total[start + j - i] += *sum as i128;
                    }
                    *sum = 0.0;
                }
            }
        }
    }
}

/// Which rows, counted in [`LANES`], and which columns, counted in [`PANEL`]s, touch the triangle.
fn tiles(width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width.div_ceil(PANEL)).flat_map(move |panel| {
        let below = ((panel + 1) * PANEL).min(width).div_ceil(LANES);
        (0..below).map(move |top| (top, panel))
    })
}

#[inline(always)]
fn multiply<const TOP: usize>(tile: &mut Tile, tall: &[[f64; PANEL]], wide: &[[f64; PANEL]]) {
    let mut sums = *tile;
    for (a, b) in tall.iter().zip(wide) {
        for i in 0..LANES {
            for j in 0..PANEL {
                sums[i][j] += a[TOP * LANES + i] * b[j];
            }
        }
    }
    *tile = sums;
}

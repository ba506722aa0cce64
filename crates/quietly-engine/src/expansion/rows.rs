//! Rows through an expansion.
use std::sync::OnceLock;

use quietly_data::{Private, Table};
use quietly_noise::Key;

use super::Expansion;
use crate::{
    error::Error,
    linalg::dot,
    normals::normals,
    splines::{Basis, Input},
};

/// An expansion at work: what it needs is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Expander {
    width: usize,
    by: By,
}

#[derive(Clone, Debug, PartialEq)]
enum By {
    Splines { inputs: Vec<Input>, basis: Basis },
    RandomFourier { inputs: usize, frequencies: Vec<f64>, phases: Vec<f64> },
}

impl Expander {
    /// # Errors
    ///
    /// As [`Expansion::check`], and [`Error::Noise`].
    pub fn new(expansion: &Expansion) -> Result<Self, Error> {
        expansion.check()?;
        let by = match expansion {
            Expansion::Splines { inputs, functions, degree } => {
                By::Splines { inputs: inputs.clone(), basis: Basis::new(*functions, *degree) }
            }
            Expansion::RandomFourier { inputs, count, width, seed } => {
                let key = Key::from_seed(*seed);
                let drawn = normals(&key.stream("frequencies of waves"), 0, 30, inputs * count)?;
                let frequencies = drawn.into_iter().map(|z| z / width).collect();
                let mut bits = key.stream("phases of waves").bits(0)?;
                let turn = std::f64::consts::TAU / 2f64.powi(64);
                let phases = (0..*count).map(|_| Ok(bits.word()? as f64 * turn));
                let phases = phases.collect::<Result<_, Error>>()?;
                By::RandomFourier { inputs: *inputs, frequencies, phases }
            }
        };
        Ok(Expander { width: expansion.width(), by })
    }

    /// Writes the features of an expanded row over zeros. Features beyond [-1, 1] count as its ends, missing ones as no splines.
    pub fn fill(&self, row: &[f64], into: &mut [f64]) {
        assert_eq!(into.len(), self.width, "room for every feature");
        match &self.by {
            By::Splines { inputs, basis } => {
                assert_eq!(row.len(), inputs.len(), "a number for every input");
                let mut at = 0;
                for (x, input) in row.iter().zip(inputs) {
                    if *input == Input::Plain {
                        into[at] = within(*x);
                        at += 1;
                        continue;
                    }
                    if !x.is_nan() {
                        let point = basis.at(*x);
                        let into = &mut into[at + point.interval..][..basis.active()];
                        into.copy_from_slice(&point.values[..basis.active()]);
                    }
                    at += basis.size();
                }
            }
            By::RandomFourier { inputs, frequencies, phases } => {
                assert_eq!(row.len(), *inputs, "a number for every input");
                let row: Vec<f64> = row.iter().map(|x| within(*x)).collect();
                let height = (2.0 / self.width as f64).sqrt();
                let waves = frequencies.chunks_exact(*inputs).zip(phases);
                for (into, (w, b)) in into.iter_mut().zip(waves) {
                    *into = height * (dot(w, &row) + b).cos();
                }
            }
        }
    }

    /// The expanded row.
    pub fn apply(&self, row: &[f64]) -> Vec<f64> {
        let mut expanded = vec![0.0; self.width];
        self.fill(row, &mut expanded);
        expanded
    }

    /// The expanded rows of a table.
    pub fn table(&self, table: &Private<Table>, threads: usize) -> Private<Table> {
        table.as_ref().map(|table| self.public_table(table, threads))
    }

    /// The same for a public one.
    pub fn public_table(&self, table: &Table, threads: usize) -> Table {
        table.with_features(self.width, threads, |row, into| self.fill(row, into))
    }
}

/// Within [-1, 1]; 0 if it is no number.
fn within(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(-1.0, 1.0) }
}

/// An expander that is made when it is first needed. Whatever holds one is compared without it.
#[derive(Clone, Debug, Default)]
pub struct CachedExpander(OnceLock<Expander>);

impl CachedExpander {
    /// The expander of an expansion that was checked.
    pub fn of(&self, expansion: &Expansion) -> &Expander {
        self.0.get_or_init(|| Expander::new(expansion).expect("an expansion that was checked"))
    }
}

impl PartialEq for CachedExpander {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

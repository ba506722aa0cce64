//! Sums over rows that were transformed by a public map: clipped gradients of linear models, and second moments.
//!
//! `kernels.rs` clips row by row; [`lattice`](quietly_core::lattice) proves what one row adds: an integer vector of norm at most C, or its product with itself.
use quietly_core::lattice::Lattice;
use serde::{Deserialize, Serialize};

use super::{Cache, Output, Query, Rows, add_to, encoded};
use crate::{
    kernels::{
        Affine, Bins, Bucket, LinearQuery, Rows as MappedRows, Totals, WhitenedRows, second_moment,
    },
    residual::Residual,
    target_scaling::TargetScaling,
    transform::RowTransform,
};

/// All rows of a table under a public map, in single precision.
pub struct TransformedRows {
    transform: RowTransform,
    pub rows: WhitenedRows,
}

/// Whether a cache holds rows under this map.
fn holds(cache: &Cache, transform: &RowTransform) -> bool {
    cache.get().is_some_and(|there: &TransformedRows| there.transform == *transform)
}

/// The transformed rows, made in the place of others unless they are there.
pub(super) fn transformed<'c>(
    rows: &Rows<'_>,
    cache: &'c mut Cache,
    transform: &RowTransform,
) -> &'c WhitenedRows {
    if !holds(cache, transform) {
        let spare = cache.take::<TransformedRows>().map(|old| old.rows);
        let rows = transform.cached(spare, rows.data.dense(), rows.threads);
        cache.put(TransformedRows { transform: transform.clone(), rows });
    }
    &cache.get::<TransformedRows>().expect("just made").rows
}

/// Those transformed rows that are meant, where not all are. Rows that come once are transformed for themselves.
fn transformed_members(
    rows: &Rows<'_>,
    members: &Bucket,
    cache: &mut Cache,
    transform: &RowTransform,
) -> WhitenedRows {
    if cache.is_reused() {
        return transformed(rows, cache, transform).at(members.rows());
    }
    transform.cached(None, &members.table(rows.data.dense()), rows.threads)
}

/// The rows as they come through a map.
fn mapped<'b>(rows: &'b Rows<'_>, map: &'b Affine) -> MappedRows<'b> {
    match rows.members {
        Some(these) => MappedRows::these(rows.data.dense(), map, these),
        None => MappedRows::all(rows.data.dense(), map),
    }
}

/// Σ z zᵀ over transformed rows z, each scaled down to this norm: the upper triangle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondMoment {
    pub transform: RowTransform,
    pub norm: f64,
}

impl SecondMoment {
    pub const KIND: &str = "second-moment";

    fn lattice(&self) -> Lattice {
        Lattice::for_products(self.norm, self.transform.width())
    }
}

impl Query for SecondMoment {
    fn outputs(&self) -> Vec<Output> {
        let width = self.transform.width();
        let sensitivity = self.lattice().product_sensitivity(width);
        vec![Output::Sum { len: width * (width + 1) / 2, sensitivity }]
    }

    fn add(&self, rows: &Rows<'_>, cache: &mut Cache, totals: &mut [i128]) {
        let (lattice, threads) = (self.lattice(), rows.threads);
        let sum = match self.transform.is_cached() {
            true => {
                assert!(rows.members.is_none(), "second moments of cached rows are those of all");
                second_moment(transformed(rows, cache, &self.transform), &lattice, threads)
            }
            false => second_moment(&mapped(rows, &self.transform.affine()), &lattice, threads),
        };
        add_to(totals, &sum, &[]);
    }

    fn encode(&self) -> Vec<u8> {
        encoded(Self::KIND, self)
    }

    fn is_served_by(&self, cache: &Cache) -> bool {
        self.transform.is_cached() && holds(cache, &self.transform)
    }
}

/// The sum of clipped gradients, and a histogram of their norms before they are clipped: one of the two, or both.
///
/// A transformed row z with target y has the gradient c·z, where c is its residual at ⟨z, weights⟩ and y; or z itself,
/// without a residual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClippedGradients {
    pub transform: RowTransform,
    pub weights: Vec<f64>,
    pub residual: Option<Residual>,
    pub unit: TargetScaling,
    /// What is taken from a target, in its units.
    pub centre: f64,
    /// The norm that gradients are clipped to; without one there is no sum.
    pub clip: Option<f64>,
    /// The clipping norm whose lattice is used, if not that of `clip`: so that sums with several clipping norms add up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lattice_clip: Option<f64>,
    /// The ends of the bins of norms; without them there is no histogram.
    pub thresholds: Option<Vec<f64>>,
}

impl ClippedGradients {
    pub const KIND: &str = "clipped-gradients";

    /// The histogram of the norms of transformed rows.
    pub fn norms(transform: RowTransform, thresholds: Vec<f64>) -> Self {
        ClippedGradients {
            weights: vec![0.0; transform.width()],
            transform,
            residual: None,
            unit: TargetScaling::ITSELF,
            centre: 0.0,
            clip: None,
            lattice_clip: None,
            thresholds: Some(thresholds),
        }
    }

    fn lattice(&self) -> Option<Lattice> {
        let width = self.weights.len();
        self.clip.map(|clip| match self.lattice_clip {
            None => Lattice::for_sums(clip, width),
            Some(base) => Lattice::for_sums(base, width).with_clip(clip, width),
        })
    }

    fn pass(
        &self,
        rows: &Rows<'_>,
        cache: &mut Cache,
        residual: impl Fn(f64, f64) -> f64 + Sync,
    ) -> Totals {
        let (clip, grid) = (self.lattice(), self.thresholds.clone().map(Bins::new));
        let (clip, grid) = (clip.as_ref(), grid.as_ref());
        let query = LinearQuery { weights: &self.weights, residual, clip, grid };
        match (self.transform.is_cached(), rows.members) {
            (true, None) => transformed(rows, cache, &self.transform).pass(&query, rows.threads),
            (true, Some(members)) => {
                let some = transformed_members(rows, members, cache, &self.transform);
                some.pass(&query, rows.threads)
            }
            (false, _) => mapped(rows, &self.transform.affine()).pass(&query, rows.threads),
        }
    }
}

impl Query for ClippedGradients {
    fn outputs(&self) -> Vec<Output> {
        let sum = |lattice: Lattice| Output::Sum {
            len: self.weights.len(),
            sensitivity: lattice.sensitivity(),
        };
        let counts = self.thresholds.as_ref().map(|t| Output::Counts { bins: t.len() + 1 });
        self.lattice().map(sum).into_iter().chain(counts).collect()
    }

    fn add(&self, rows: &Rows<'_>, cache: &mut Cache, totals: &mut [i128]) {
        let (unit, centre) = (self.unit, self.centre);
        let tally = match self.residual {
            None => self.pass(rows, cache, |_, _| 1.0),
            Some(residual) => {
                self.pass(rows, cache, |u, raw| residual.of(u, unit.encode(raw) - centre))
            }
        };
        add_to(totals, &tally.sum, &tally.counts);
    }

    fn encode(&self) -> Vec<u8> {
        encoded(Self::KIND, self)
    }

    fn is_served_by(&self, cache: &Cache) -> bool {
        self.transform.is_cached() && holds(cache, &self.transform)
    }
}

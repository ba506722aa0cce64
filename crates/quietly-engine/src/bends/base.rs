//! The model that bends are added to, and what it leaves over.
use std::{ops::Range, sync::Mutex};

use quietly_data::Table;
use serde::{Deserialize, Serialize};

use crate::{
    column_map::{ColumnMap, Tail},
    kernels::in_blocks,
    linalg::dot,
    target_scaling::TargetScaling,
};

/// A released linear model of features that were cut to their intervals, and of tails beyond these. Its predictions are held to
/// the range of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// The units of targets.
    pub unit: TargetScaling,
    /// The intervals; without them features come in as they are.
    pub map: Option<ColumnMap>,
    /// The tails that have weights, behind the features.
    pub tails: Vec<Tail>,
    /// In these units.
    pub intercept: f64,
    /// In these units, one for each feature and each tail.
    pub weights: Vec<f64>,
}

impl Base {
    /// What it predicts of a row, in these units.
    pub fn predict(&self, row: &[f64]) -> f64 {
        let sum = match &self.map {
            Some(map) => dot(&self.weights, &map.winsorised(row, &self.tails)),
            None => dot(&self.weights, row),
        };
        (self.intercept + sum).clamp(-1.0, 1.0)
    }

    /// What it leaves over of every target of a table, in these units.
    pub(crate) fn left_over(&self, table: &Table, threads: usize) -> Vec<f64> {
        const BLOCK: usize = 1024;
        let width = table.width();
        let mut left = table.target().to_vec();
        let blocks: Vec<_> = left.chunks_mut(BLOCK).map(Mutex::new).collect();
        let work = |(): &mut (), taken: Range<usize>| {
            for at in taken {
                let mut targets = blocks[at].lock().expect("a worker has its blocks alone");
                let rows = table.features()[at * BLOCK * width..].chunks_exact(width);
                for (y, row) in targets.iter_mut().zip(rows) {
                    *y = self.unit.encode(*y) - self.predict(row);
                }
            }
        };
        in_blocks(blocks.len(), 1, threads, || (), work);
        drop(blocks);
        left
    }
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;
    use crate::{
        bends::Bends,
        column_map::MappedColumn,
        link::Link,
        query::{Cache, ClippedGradients, Dataset, Query, Rows, column_tree::CELLS},
        residual::Residual,
        transform::RowTransform,
    };

    const RANGE: (f64, f64) = (0.0, 10.0);

    fn bends() -> Bends {
        let ranks = (0..=CELLS).map(|k| k as f64 / CELLS as f64).collect();
        let column =
            MappedColumn { low: -0.5, high: 0.5, centre: 0.0, sd: 0.4, ranks, constant: false };
        let map = ColumnMap { columns: vec![Some(column), None] };
        Bends::new(map, 2, vec![], vec![])
    }

    fn base() -> Base {
        let map = Some(bends().map);
        let unit = TargetScaling::new(Link::Linear, RANGE);
        let tails = vec![Tail { feature: 0, above: true }];
        Base { unit, map, tails, intercept: 0.1, weights: vec![0.5, -0.25, 0.3] }
    }

    fn table(rows: usize) -> Table {
        let mut random = Random(2);
        let features = (0..2 * rows).map(|_| random.number()).collect();
        let target = (0..rows).map(|_| 5.0 + 5.0 * random.number()).collect();
        Table::new(2, features, target)
    }

    fn gradients(transform: RowTransform) -> ClippedGradients {
        let width = transform.width();
        ClippedGradients {
            transform,
            weights: (0..width).map(|k| 0.1 * k as f64 - 0.2).collect(),
            residual: Some(Residual::Squared),
            unit: TargetScaling::ITSELF,
            centre: 0.0,
            clip: Some(0.7),
            lattice_clip: None,
            thresholds: Some(vec![0.1, 0.5, 1.0]),
        }
    }

    fn sums(
        query: &ClippedGradients,
        table: &Table,
        cache: &mut Cache,
        threads: usize,
    ) -> Vec<i128> {
        let mut totals = (query as &dyn Query).zeros();
        query.add(&Rows::all(Dataset::Dense(table), 0, threads), cache, &mut totals);
        totals
    }

    #[test]
    fn what_is_left_over_is_the_target_less_the_prediction() {
        let (base, table) = (base(), table(3000));
        for (x, (y, left)) in table
            .features()
            .chunks_exact(2)
            .zip(table.target().iter().zip(base.left_over(&table, 3)))
        {
            let tail = (x[0] - 0.5).max(0.0) / 0.5;
            let u = 0.1 + 0.5 * x[0].clamp(-0.5, 0.5) - 0.25 * x[1] + 0.3 * tail;
            assert!((left - ((y - 5.0) / 5.0 - u.clamp(-1.0, 1.0))).abs() < 1e-12);
        }
    }

    /// The same sums for any number of threads and any blocks, whatever was cached before: a cache whose targets were turned into
    /// residuals must not hand them to another query of the same width.
    #[test]
    fn bent_rows_give_the_same_sums_however_they_are_read() {
        let table = table(2500);
        let width = bends().width();
        let mut random = Random(3);
        let matrix: Vec<f64> = (0..width * width).map(|_| random.number()).collect();
        let bent = gradients(RowTransform::bent(bends(), matrix.clone(), Some(base())));
        let plain = gradients(RowTransform::bent(bends(), matrix, None));
        let alone = [&bent, &plain].map(|query| sums(query, &table, &mut Cache::reused(), 1));
        assert_ne!(alone[0], alone[1]);
        let cache = &mut Cache::reused();
        for (query, want) in [(&bent, 0), (&plain, 1), (&plain, 1), (&bent, 0)] {
            assert_eq!(sums(query, &table, cache, 3), alone[want]);
        }
        let (first, rest) = table.features().split_at(2 * 700);
        let (y, z) = table.target().split_at(700);
        let parts = [(first, y), (rest, z)].map(|(x, y)| {
            let part = Table::new(2, x.to_vec(), y.to_vec());
            sums(&bent, &part, &mut Cache::once(), 1)
        });
        let both: Vec<i128> = parts[0].iter().zip(&parts[1]).map(|(a, b)| a + b).collect();
        assert_eq!(both, alone[0]);
        // A worker decodes what it is sent.
        let bytes = bent.encode();
        let (_, fields) = crate::query::kind_and_fields(&bytes).unwrap();
        assert_eq!(crate::query::fields::<ClippedGradients>(fields).unwrap(), bent);
    }
}

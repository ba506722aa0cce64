//! The centre of the target: a mean, within its public range or within released bounds.
use quietly_core::{privacy_plan::PrivacyPlan, release::Releaser};
use quietly_engine::{
    algorithm::Shape,
    backend::{Backend, Batch, run_query},
    column_map::{MappedColumn, cut, rank_noise, tree_noise},
    error::Error,
    query::{
        ClippedGradients, ColumnTree, Combined, Query, TargetBins, TargetHistogram, TreeColumns,
    },
    residual::Residual,
    target_scaling::TargetScaling,
    transform::RowTransform,
};

use super::{MEAN, TARGET};
use crate::budget_split::Centre;

/// What is asked of the target: the first question of a run, which counts rows as well.
pub(super) struct TargetQuestions<'a> {
    pub plan: &'a PrivacyPlan,
    pub shape: Shape,
    pub unit: TargetScaling,
    /// The public range, in these units.
    pub range: (f64, f64),
    pub backend: &'a mut dyn Backend,
    pub releaser: &'a mut Releaser,
}

impl TargetQuestions<'_> {
    /// The centre of the target, in its units, and the standard deviation of its noise if it is a mean.
    pub(super) fn centre(&mut self, from: Centre) -> Result<(f64, Option<f64>), Error> {
        let (low, high) = self.range;
        let tree = || ColumnTree {
            columns: TreeColumns::Target(self.unit),
            neighbours: self.plan.budget.neighbours(),
        };
        match from {
            Centre::Mean => self.mean(self.range, true),
            Centre::Tree => {
                let column = self.tree(tree())?;
                Ok((column.centre.clamp(low, high), None))
            }
            Centre::MeanWithinTree => {
                let column = self.tree(tree())?;
                self.mean((column.low.max(low), column.high.min(high)), false)
            }
        }
    }

    fn tree(&mut self, tree: ColumnTree) -> Result<MappedColumn, Error> {
        let sum = self.counting(Box::new(tree))?;
        let sd = tree_noise(1, self.plan.budget.neighbours(), self.releaser.noise(TARGET));
        let (counts, _) = self.releaser.sum(TARGET, sum)?;
        Ok(MappedColumn::from_tree(&counts, sd, cut(rank_noise(sd, self.shape.rows as f64))))
    }

    /// The mean of the target, held to this interval. Where noise is large it is drawn to the middle: the mean of what is likely, if
    /// all means in the interval are equally likely at first.
    fn mean(&mut self, (low, high): (f64, f64), counts: bool) -> Result<(f64, Option<f64>), Error> {
        let (middle, half) = (0.5 * (low + high), (0.5 * (high - low)).max(1e-9));
        // A row that is its constant alone: its gradient at no weights is the target less the middle.
        let constant = (0..=self.shape.width).map(|j| f64::from(u8::from(j == self.shape.width)));
        let query = ClippedGradients {
            transform: RowTransform::linear(constant.collect(), self.shape.width),
            weights: vec![0.0],
            residual: Some(Residual::Squared),
            unit: self.unit,
            centre: middle,
            clip: Some(half),
            lattice_clip: None,
            thresholds: None,
        };
        let sum = match counts {
            true => self.counting(Box::new(query))?,
            false => run_query(self.backend, self.releaser, &Batch::All, &query)?.sum(),
        };
        let (sum, std) = self.releaser.sum(MEAN, sum)?;
        let rows = self.shape.rows as f64;
        let (variance, prior) = ((std / rows).powi(2), half * half / 3.0);
        let mean = middle + sum[0] / rows * (prior / (prior + variance));
        Ok((mean.clamp(low.min(high), high), Some(std / rows)))
    }

    /// The sum of a query, asked together with the number of rows.
    fn counting(
        &mut self,
        query: Box<dyn Query>,
    ) -> Result<quietly_core::release::BoundedSum, Error> {
        // Every row has its target in one of the bins.
        let bins = TargetBins::Sizes(vec![1.0]);
        let rows = TargetHistogram { unit: self.unit, bins };
        let both = Combined::new(vec![query, Box::new(rows)]);
        let sum = run_query(self.backend, self.releaser, &Batch::All, &both)?;
        let (sums, counts) = sum.split();
        let count = counts.into_iter().next().expect("one histogram").total();
        self.releaser.count_rows(self.plan, self.shape.rows, count)?;
        Ok(sums.into_iter().next().expect("one sum"))
    }
}

//! How many rows a fit used, released with noise.
//!
//! A row that does not hold what the schema declares is a null record: it adds to no sum, and no
//! message may tell of it. A table of such rows would spend its budget on a model of pure noise. So
//! every plan has one more release, the number of rows that are not null records.
//!
//! # Proof: sensitivity one
//!
//! 1. Whether a row is a null record depends on that row and public values alone (`Encoding`).
//! 2. The count is Σ 1\[row is not a null record\]. One row more or less changes it by at most 1, and so does
//!    a replaced row. The accountant prices a sum at its bound under add-remove and at twice that under
//!    replace-one, so that the bound is 1 and 1/2.
//! 3. In one pass the count is of the first step's rows, and one of that step's releases. The theorem
//!    of random allocation prices the step as a whole, by a row that is there or not under either
//!    relation: the bound is 1.
//!
//! The count is an integer on a lattice of unit one, so that nothing is rounded. What is told of it
//! (an estimate, a warning) is computed from the release and public numbers. It never decides
//! whether a fit succeeds.
use quietly_accounting::{Neighbours, gaussian_mu};
use quietly_private::Private;
use serde::{Deserialize, Serialize};

use crate::{
    budget::Budget,
    error::Error,
    mechanism::{Mechanism, PlannedRelease, Sampler, Stage},
    privacy_plan::{PrivacyPlan, UncheckedPlan},
    release::{BoundedSum, Releaser, Sensitivity},
};

/// The name of the release.
pub const ROWS_USED: &str = "number of rows used";

/// The share of μ² that it takes: all other noise grows by the factor 1.0025.
const SHARE: f64 = 0.005;
/// The share of ε that it takes where no Gaussian is allowed.
pub const PURE_SHARE: f64 = 0.01;

/// About how many rows a fit used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowsUsed {
    /// The noisy number, not below 0.
    pub about: u64,
    /// The standard deviation of its noise, and of the sample where one was counted.
    pub deviation: f64,
    /// How many rows the schema declares.
    pub declared: u64,
    /// Whether the noise is Laplace noise, whose tails are heavier than those of Gaussian noise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub laplace: bool,
}

impl RowsUsed {
    pub fn new(about: f64, deviation: f64, declared: u64, laplace: bool) -> Self {
        RowsUsed { about: about.round().max(0.0) as u64, deviation, declared, laplace }
    }

    /// What to look into, if the number is far from what was declared.
    ///
    /// No verdict is given where a standard deviation is more than a quarter of the declared rows (a fourteenth for Laplace
    /// noise). With all of them in use, a false warning therefore takes noise beyond 5 standard deviations (10 for Laplace
    /// noise): less than once in 1.7 million tables.
    pub fn warning(&self) -> Option<String> {
        let (about, declared) = (self.about as f64, self.declared as f64);
        // P(z < -5) = 2.9e-7 = e^(-10√2)/2 for z of deviation one; three of the deviations are in the comparison below.
        let deviations = if self.laplace { 14.4 } else { 4.0 };
        if deviations * self.deviation > declared {
            return None;
        }
        if about + 3.0 * self.deviation < 0.5 * declared {
            return Some(format!(
                "about {} of the declared {} rows were used: the table does not match the schema. Check the types \
                 of the columns, the decimal and thousands separators, the spelling of categories, and `missing`; \
                 `quietly check` finds the column.",
                spaced(self.about),
                spaced(self.declared)
            ));
        }
        (about - 3.0 * self.deviation > 1.5 * declared).then(|| {
            format!(
                "about {} rows were used, but the schema declares {}: is a file or a row repeated? If not, correct `rows`, as \
                 the fit was planned for that many.",
                spaced(self.about),
                spaced(self.declared)
            )
        })
    }
}

impl std::fmt::Display for RowsUsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (about, declared) = (spaced(self.about), spaced(self.declared));
        if self.deviation == 0.0 {
            return write!(f, "{about} of the declared {declared} rows were used");
        }
        // ln 20 scales of Laplace noise, each of which is a deviation over √2.
        let deviations = if self.laplace { 2.12 } else { 1.96 };
        let within = spaced((deviations * self.deviation).ceil() as u64);
        write!(f, "about {about} of the declared {declared} rows were used (± {within}, 95 %)")
    }
}

/// 20 000 for 20000.
fn spaced(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits"))
        .collect();
    groups.join(" ")
}

/// The release over all rows, for a share of the budget that depends on the budget alone.
pub fn stage(budget: Budget, sampler: Sampler) -> Result<Stage, Error> {
    // A replaced row moves a Gaussian sum twice as far.
    let factor = if budget.neighbours() == Neighbours::ReplaceOne { 2.0 } else { 1.0 };
    let mu = gaussian_mu(budget.epsilon(), budget.delta())? / factor;
    // No accountant knows of noise above 1e5; a tiny budget spends more of itself on the count.
    let noise = (1.0 / (SHARE.sqrt() * mu)).min(5e4);
    Ok(over_all_rows(PlannedRelease::sum(ROWS_USED, noise), sampler))
}

/// The same with Laplace noise: for δ = 0, and beside mechanisms that use all of δ.
pub fn pure_stage(epsilon: f64, neighbours: Neighbours, sampler: Sampler) -> Stage {
    over_all_rows(PlannedRelease::laplace(ROWS_USED, epsilon, neighbours), sampler)
}

fn over_all_rows(charge: PlannedRelease, sampler: Sampler) -> Stage {
    let stage = Stage::new("rows used", 1, vec![charge]);
    if sampler == Sampler::FullBatch { stage } else { stage.of_all_rows() }
}

/// The stages before the count, if that is the last one.
pub fn without(stages: &[Stage]) -> &[Stage] {
    let counts = |stage: &Stage| match &stage.releases[..] {
        [PlannedRelease { purpose, times: 1, mechanism }] if purpose == ROWS_USED => {
            matches!(mechanism, Mechanism::Gaussian { .. } | Mechanism::Laplace { .. })
                && stage.steps == 1
        }
        _ => false,
    };
    match stages {
        [rest @ .., last] if counts(last) => rest,
        all => all,
    }
}

impl UncheckedPlan {
    /// Whether a certificate of this plan may say so much of the rows: something if and only if it was
    /// released, with the noise that was planned, and of the `rows` that were declared.
    pub fn counts_as(&self, rows: u64, used: Option<&RowsUsed>) -> bool {
        let mut releases = self.stages.iter().flat_map(|stage| &stage.releases);
        let released = releases.find(|charge| charge.purpose == ROWS_USED);
        match (used, released) {
            (Some(used), _) if !self.budget.is_private() => used.declared == rows,
            (Some(used), Some(charge)) => {
                let (deviation, laplace) = self.count_noise(rows, &charge.mechanism);
                let near = (used.deviation - deviation).abs() <= 1e-3 * deviation;
                near && used.declared == rows && used.laplace == laplace
            }
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// Of how many equal shares of the table one is counted.
    fn counted_shares(&self) -> f64 {
        let counts = |stage: &&Stage| stage.releases.iter().any(|c| c.purpose == ROWS_USED);
        let sampled = self.stages.iter().find(counts).is_some_and(|stage| !stage.all_rows);
        match self.sampler {
            Sampler::RandomAllocation { steps } if sampled => steps as f64,
            _ => 1.0,
        }
    }

    /// The most that one row changes the count by, as the accountant prices sums.
    fn count_bound(&self) -> f64 {
        let replaced = self.budget.neighbours() == Neighbours::ReplaceOne;
        if replaced && self.counted_shares() == 1.0 { 0.5 } else { 1.0 }
    }

    /// The standard deviation of the number of rows by noise and sample, and whether the noise is Laplace noise.
    fn count_noise(&self, rows: u64, mechanism: &Mechanism) -> (f64, bool) {
        let (noise, laplace) = match mechanism {
            Mechanism::Laplace { scale } => (std::f64::consts::SQRT_2 * scale, true),
            Mechanism::Gaussian { noise, .. } => (*noise, false),
            _ => (f64::INFINITY, false),
        };
        let (share, noise) = (self.counted_shares(), noise * self.count_bound());
        // A share of the table is a sample of its rows.
        let sampling = rows as f64 / share * (1.0 - 1.0 / share);
        (share * (noise * noise + sampling).sqrt(), laplace)
    }
}

impl Releaser {
    /// Releases how many rows were used: of `rows`, which are all of them, or those of the first step in
    /// one pass. Plans of earlier versions do not have it.
    pub fn count_rows(
        &mut self,
        plan: &PrivacyPlan,
        declared: u64,
        rows: Private<u64>,
    ) -> Result<(), Error> {
        let (about, (deviation, laplace)) = match self.planned_for(ROWS_USED) {
            _ if !plan.budget.is_private() => {
                (self.non_private(rows, |rows| rows as f64), (0.0, false))
            }
            None => return Ok(()),
            Some(mechanism) => {
                let sum = rows.map(|rows| vec![i64::try_from(rows).unwrap_or(i64::MAX)]);
                let what = BoundedSum::new(sum, Sensitivity::l1(plan.count_bound(), 1.0));
                let noise = plan.count_noise(declared, &mechanism);
                let (value, _) = self.sum(ROWS_USED, what)?;
                (value[0], noise)
            }
        };
        let about = plan.counted_shares() * about;
        self.rows_used = Some(RowsUsed::new(about, deviation, declared, laplace));
        Ok(())
    }
}

//! Random allocation to k of t steps; `random_allocation.rs` has the pair for k = 1 and its proof.
use super::Branch;
use crate::{composition::Composition, dominating_pair::DominatingPair};

/// Random allocation to k of t steps: a mixture, over partitions into k blocks, of one step per
/// block. So it costs at most k allocations in sequence.
pub(super) fn bound(steps: u64, select: u64, noise: f64, gap: f64) -> Branch {
    let unamplified = Composition::gaussian(gap * (select as f64).sqrt() / noise);
    if select == steps {
        let absent = Composition::gaussian((select as f64).sqrt() / noise);
        return Branch::exact(unamplified, absent, "Gaussian, exact");
    }
    let (short, long) = (steps / select, steps.div_ceil(select));
    let mut amplified = Composition::default();
    for (block, times) in [(short, select - steps % select), (long, steps % select)] {
        if times > 0 {
            let mut one = match block {
                1 => Composition::gaussian(1.0 / noise),
                _ => {
                    Composition::of(DominatingPair::RandomAllocation { steps: block, sigma: noise })
                }
            };
            one.repeat(times);
            amplified.join(&one);
        }
    }
    // An instance: the sum of all steps is shifted by `select`, against √steps times the noise.
    let sum = Composition::gaussian(gap * select as f64 / (noise * (steps as f64).sqrt()));
    let mut lower = vec![sum];
    if select == 1 {
        lower.push(amplified.clone());
    }
    let method = "random allocation";
    let absent = vec![(amplified.clone(), method)];
    // There is no amplified theorem for replace-one: it is removal and addition.
    let mut direct = vec![(unamplified, "Gaussian, no amplification")];
    if gap == 1.0 {
        direct.insert(0, (amplified, method));
    }
    Branch { direct, absent, lower, through_absence: true }
}

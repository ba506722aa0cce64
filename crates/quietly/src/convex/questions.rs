//! What a convex method asks of the data.
use quietly_accounting::Neighbours;

use super::{
    bolt_on::{self, POINT},
    descent::GRADIENT,
    perturb,
    phases::PHASE,
    planning::phases,
    run, scaling, shift,
};
use crate::{
    charge::{Charge, Sampler, Stage},
    method::Method,
    plan::Plan,
    rows_used::PURE_SHARE,
};

/// The share of μ² that a bound on the rows takes.
const RADIUS_SHARE: f64 = 0.002;
/// The share of ε that it takes where δ is 0.
const PURE_RADIUS_SHARE: f64 = 0.05;

/// The questions of a method, where the whole budget is worth `mu`.
pub(super) fn stages(plan: &Plan, mu: f64, noise: f64) -> Vec<Stage> {
    let (budget, mut stages) = (plan.budget, Vec::new());
    // What a row that is there or not may cost: a replaced one moves sums twice as far.
    let each = if budget.neighbours() == Neighbours::ReplaceOne { 0.5 * mu } else { mu };
    if plan.program().scales {
        stages.extend(scaling::stages(each, budget.neighbours()));
    } else if plan.program().finds_radius {
        stages.push(run::radius_stage(plan, RADIUS_SHARE.sqrt() * mu));
    }
    match (plan.method, plan.sampler) {
        (Method::Amp | Method::ScaledAmp, _) => {
            stages.extend(perturb::stages(plan, each, noise));
            stages.extend(shift::stage(plan, mu));
        }
        (_, Sampler::Places { steps }) => {
            stages.push(Stage::new("phases", steps, vec![Charge::sum(PHASE, noise)]));
        }
        (Method::ScPsgd | Method::GdOp, _) => {
            stages.push(Stage::new("point", 1, vec![Charge::sum(POINT, noise)]));
        }
        _ => {
            let steps = plan.program().steps.unwrap_or(1);
            stages.push(Stage::new("descent", steps, vec![Charge::sum(GRADIENT, noise)]));
        }
    }
    stages
}

/// The same where δ is 0 and ε's add up, for methods that have it.
pub(super) fn pure_stages(plan: &Plan) -> Vec<Stage> {
    let (budget, mut stages) = (plan.budget, Vec::new());
    let neighbours = budget.neighbours();
    // What is divided and added up again may round.
    let mut left = (1.0 - PURE_SHARE) * budget.epsilon() * (1.0 - 1e-12);
    if plan.program().finds_radius {
        let share = PURE_RADIUS_SHARE * left;
        stages.push(run::pure_radius_stage(plan, share));
        left -= share;
    }
    match (plan.method, plan.sampler) {
        (Method::Amp, _) => {
            let shift = shift::pure_stage(plan, left, neighbours);
            left -= shift.as_ref().map_or(0.0, |(_, share)| *share);
            stages.extend(perturb::pure_stages(left, neighbours));
            stages.extend(shift.map(|(stage, _)| stage));
        }
        (_, Sampler::Places { steps }) => {
            let charge = Charge::laplace(PHASE, left, neighbours);
            stages.push(Stage::new("phases", steps, vec![charge]));
        }
        _ => {
            let charge = Charge::laplace(POINT, left, neighbours);
            stages.push(Stage::new("point", 1, vec![charge]));
        }
    }
    stages
}

/// The questions of a plan, whatever their noise; none if it does not go together.
pub(crate) fn questions(plan: &Plan) -> Option<Vec<Stage>> {
    let program = plan.convex.as_ref()?;
    let replaced = plan.budget.neighbours() == Neighbours::ReplaceOne;
    let pure = plan.budget.is_pure();
    program.check(plan.width).ok()?;
    // Rows are scaled before the method is asked for.
    if program.scales != (plan.method == Method::ScaledAmp) {
        return None;
    }
    let right = match (plan.method, plan.sampler) {
        (Method::Amp, Sampler::Full) => !program.scales && plan.perturb().is_ok(),
        (Method::ScaledAmp, Sampler::Full) => program.scales && !pure && plan.perturb().is_ok(),
        (Method::ScPsgd | Method::GdOp, Sampler::Full) => {
            replaced && bolt_on::plan(&mut plan.clone()).is_ok()
        }
        (Method::DpGd | Method::FrankWolfe, Sampler::Full) => !pure && program.steps.is_some(),
        (Method::DpSgd, Sampler::Poisson { steps, .. }) => !pure && program.steps == Some(steps),
        (_, Sampler::Places { steps }) if replaced => {
            let ground = program.ground(plan.width, program.longest, 1.0).ok()?;
            let phases = phases(plan, &ground).ok()?;
            ground.distance.is_finite()
                && phases.len() as u64 == steps
                && phases.iter().all(|phase| phase.is_sound() && phase.suits(&ground))
        }
        _ => false,
    };
    right.then(|| if pure { pure_stages(plan) } else { stages(plan, plan.mu(), 1.0) })
}

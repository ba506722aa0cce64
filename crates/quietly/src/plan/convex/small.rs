//! Small tables of classes with more features than are centred and scaled: a descent along gradients that are all clipped to one norm.
//!
//! Where a budget hides all but the coarsest of what rows say, questions about their scale cost more than they bring, and the ridge of a
//! perturbed objective is not the one that noise asks for. A descent that stops early needs neither. T steps of η along means of
//! gradients of norm at most 1 end with noise of η·√T·(√T/μ)/n = ηT/(nμ) in every weight, whatever T is: so ηT = ¾·nμ leaves noise of ¾,
//! and the mean of the last half of the points less.
//!
//! All of it is public. On two small tables and at three budgets (the contest of `quietly-lab reproduce kan`) a quarter to one of nμ
//! did about as well, and steps longer than [`LONGEST_STEP`] do not settle where classes overlap.
use quietly_core::budget::Budget;
use quietly_glm::Loss;

use super::Convex;
use crate::methods::Method;

/// ηT over nμ.
const REACH: f64 = 0.75;
/// Where gradients are cut: at that of a row of nothing but its constant.
const CLIP: f64 = 1.0;
const STEPS: f64 = 100.0;
const MOST_STEPS: f64 = 400.0;
const LONGEST_STEP: f64 = 6.0;
/// nμ of two classes from which on a perturbed objective does better.
const FEW_FOR_TWO_CLASSES: f64 = 200.0;
/// Rows from which on so many passes are slow.
const MANY_ROWS: u64 = 100_000;

impl Convex {
    /// The descent that serves this fit better than a perturbed objective, if one does.
    pub(super) fn for_small_table(&self, rows: u64, budget: Budget) -> Option<Convex> {
        let asked = self.clip.is_some() || self.steps.is_some() || self.step_size.is_some();
        if self.method != Method::Auto || asked || !self.is_plain() {
            return None;
        }
        if budget.is_pure() || !budget.is_private() || rows > MANY_ROWS {
            return None;
        }
        let mu = quietly_accounting::gaussian_mu(budget.epsilon(), budget.delta()).ok()?;
        let reach = REACH * rows as f64 * mu;
        let steps = (reach / LONGEST_STEP).ceil().max(STEPS);
        let most = match self.loss {
            Loss::Logistic if reach > REACH * FEW_FOR_TWO_CLASSES => return None,
            Loss::Logistic | Loss::Softmax { .. } => MOST_STEPS,
            _ => return None,
        };
        let descent = || self.clone().method(Method::DpGd).known_radius().clip(CLIP);
        (steps <= most).then(|| descent().steps(steps as u64).step_size(reach / steps))
    }
}

#[cfg(test)]
mod tests {
    use quietly_glm::Set;

    use super::*;
    use crate::plan::Plan;

    fn plan(convex: Convex, rows: u64, epsilon: f64) -> Plan {
        convex.plan(rows, 2500, Budget::new(epsilon, 1e-5).unwrap()).unwrap()
    }

    #[test]
    fn small_tables_are_descended_and_large_ones_are_not() {
        let (two, ten) = (Convex::new(Loss::Logistic), Convex::new(Loss::Softmax { classes: 10 }));
        for (convex, rows, epsilon, steps) in [(&two, 426, 1.0, 100), (&ten, 1347, 4.0, 156)] {
            let plan = plan(convex.clone(), rows, epsilon);
            assert_eq!(plan.method(), Method::DpGd);
            assert!(plan.epsilon() <= epsilon && plan.epsilon() > 0.99 * epsilon);
            let problem = plan.problem();
            assert_eq!((problem.clip, problem.steps), (Some(1.0), Some(steps)));
            assert!(problem.step_size.unwrap() <= LONGEST_STEP && plan.warnings.is_empty());
        }
        for (convex, rows, epsilon) in [
            (two.clone(), 2000, 1.0),
            (ten.clone(), 200_000, 0.001),
            (ten.clone(), 90_000, 4.0),
            (Convex::new(Loss::SmoothHinge { width: 0.5 }), 426, 1.0),
        ] {
            assert_eq!(plan(convex, rows, epsilon).method(), Method::Amp, "{rows}");
        }
        // A larger budget takes another method.
        let within = ten.clone().within(Set::L2 { radius: 1.0 });
        assert_eq!(plan(within, 1347, 1.0).method(), Method::Amp);
        assert!(ten.steps(50).plan(1347, 2500, Budget::new(1.0, 1e-5).unwrap()).is_err());
    }
}

//! Private selection among candidates, at a cost that hardly depends on their number.
//!
//! A trial draws a candidate, fits it and scores it on rows that it has not seen. A random number of trials is made, and the best model is
//! released with its score: nothing else, not even how many there were. [`TrialCount`] has the theorem. What it asks of a trial:
//!
//! * Every candidate is planned within one budget (ε, δ), and is put in order within `order`.
//! * The score is private, too: one noisy sum over the rows of validation, within the same (ε, δ) and `order`; or those rows are public.
//! * Rows of validation are not among those of training. Each row of the table has a coin of its own, thrown before anything is read.
//!   Given all coins, a row is in one of the two parts on both of two neighbouring tables, and the other part is the same: a trial
//!   costs what the more expensive part costs, not their sum. (Which coin is whose does not matter: they are independent and alike.)
use quietly_accounting::{Neighbours, TrialCount};
use quietly_core::{
    budget::Budget,
    certificate::SELECTION,
    charge::Charge,
    mechanism::{event, one_sum},
    private_selection::PrivateSelection,
    progress::{Progress, ProgressCallback},
};
use quietly_data::{Encoding, Source};
use quietly_engine::error::Error;
use quietly_noise::Bits;

use crate::{
    evaluate::{evaluate, evaluate_classes, evaluate_classes_privately, evaluate_privately},
    model::Model,
    plan::{FitInput, FitOptions, Plan, watching},
    spec::ModelSpec,
};

#[cfg(test)]
mod tests;

/// How often a budget for trials is tried.
const ROUNDS: usize = 4;

/// Which rows tell how good a candidate is.
#[derive(Clone, Copy)]
pub enum Validation<'a> {
    /// Rows of the same table that are not trained with: scores have noise.
    Private(&'a Source),
    /// Public rows: scores are exact.
    Public(&'a Source),
}

/// Candidates, planned so that the best of them can be released within a budget.
#[derive(Clone, Debug)]
pub struct Tuning {
    asked: Budget,
    /// What one trial may cost.
    once: Budget,
    plans: Vec<Plan>,
    tuned: PrivateSelection,
}

impl Tuning {
    /// Plans `candidates` for about `rows` rows of training, with so many `trials` in the mean, within `budget` in all.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] without candidates, without privacy or with δ = 0, and as [`ModelSpec::plan`] and [`TrialCount::with_mean`].
    pub fn plan(
        candidates: &[ModelSpec],
        encoding: &Encoding,
        rows: u64,
        budget: Budget,
        trials: f64,
        public: bool,
    ) -> Result<Self, Error> {
        // Units of several rows pay for a trial what group privacy makes of one row's price.
        let (asked, budget) = (budget, budget.of_one_row()?);
        Error::ensure(!candidates.is_empty(), "candidates", "at least one", "none")?;
        let want = "finite, and delta above 0: without privacy, use any search";
        let private = budget.is_private() && !budget.is_pure();
        Error::ensure(private, "epsilon of tuning", want, budget.epsilon())?;
        let law = TrialCount::with_mean(trials)?;
        let delta = budget.delta() / law.mean() * (1.0 - 1e-9);
        let want = "at least 1e-12 times the trials: use a larger delta or fewer trials";
        Error::ensure(delta >= 1e-12, "delta of tuning", want, budget.delta())?;
        let within = |epsilon: f64| {
            let once = Budget::new(epsilon, delta)?.under(budget.neighbours());
            let plan = |asked: &ModelSpec| asked.plan(encoding, rows, once);
            let plans = candidates.iter().map(plan).collect::<Result<Vec<Plan>, Error>>()?;
            let score_noise = if public { None } else { Some(noise(once)?) };
            let (candidates, order) = (candidates.len(), 0.0);
            let mut tuned =
                PrivateSelection { candidates, trials, epsilon, delta, order, score_noise };
            tuned.order = Tuning::least_order(&tuned, law, &plans, budget.neighbours())?;
            Ok::<_, Error>(Tuning { asked, once, plans, tuned })
        };
        // To put trials in order costs less than a trial, as it needs no small δ; how much less, the plans tell.
        let mut epsilon = 0.55 * budget.epsilon();
        let mut best: Option<Tuning> = None;
        for _ in 0..ROUNDS {
            let tuning = within(epsilon)?;
            let used = tuning.tuned.total(law) / budget.epsilon();
            let better = best.as_ref().is_none_or(|b| b.once.epsilon() < epsilon);
            if used <= 1.0 && better {
                best = Some(tuning);
            }
            if (0.99..=1.0).contains(&used) {
                break;
            }
            epsilon *= 0.996 / used;
        }
        match best {
            Some(tuning) => Ok(tuning),
            // By the theorem with a = b: never more expensive, if not always allowed.
            None => {
                let tuning = within(0.499 * budget.epsilon())?;
                let fits = tuning.tuned.total(law) <= budget.epsilon();
                let want = "larger, so that it covers at least one trial";
                Error::ensure(fits, "epsilon of tuning", want, budget.epsilon())?;
                Ok(tuning)
            }
        }
    }

    /// What the whole costs, and of what that is made.
    pub fn tuned(&self) -> &PrivateSelection {
        &self.tuned
    }

    /// The plans of all candidates, each within the budget of one trial.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Tries candidates until the coin says stop; gives the place of the best, its score, and its model with the certificate of the whole.
    ///
    /// The score is R² or, of a classifier, the share of rows that are right.
    ///
    /// # Errors
    ///
    /// As [`Plan::fit`]. No row can cause one.
    pub fn run(
        &self,
        train: &Source,
        encoding: &Encoding,
        validation: Validation<'_>,
        unit_of_privacy: &str,
        options: FitOptions<'_>,
    ) -> Result<(usize, f64, Model), Error> {
        let FitOptions { charge, threads, watch, public: public_rows, checkpoint } = options;
        let want = "left out: trials are not resumed";
        Error::ensure(checkpoint.is_none(), "checkpoint", want, "given")?;
        let mut watch = watching(watch);
        let public = matches!(validation, Validation::Public(_));
        let want = "as it was planned: of public rows, or of private ones";
        let same = public == self.tuned.score_noise.is_none();
        Error::ensure(same, "validation", want, "of the other kind")?;
        let law = TrialCount::with_mean(self.tuned.trials)?;
        let key = charge.spend(self.asked)?;
        let mut bits = key.stream("which candidates, and how many trials").bits(0)?;
        let stopping = law.stop_probability(uniform(&mut bits)?);
        let mut best: Option<((f64, u64), usize, Model)> = None;
        for trial in 0_u64.. {
            let place = bits.below(self.plans.len() as u64)? as usize;
            // All trials together are within the charge.
            let own =
                |what: &[u8]| Charge::without_ledger(key.bound_to([what, &trial.to_le_bytes()]));
            // The number of trials is secret: the callback may interrupt, but gets no progress.
            let mut quiet = |_: Progress| watch(Progress { doing: "trying", done: 0, of: 1 });
            let input = FitInput::source(train, encoding);
            let options = FitOptions::new(own(b"trial")).threads(threads);
            let options = options.watch(&mut quiet).public(public_rows);
            let model = self.plans[place].fit(input, options)?.model(unit_of_privacy)?;
            let score = self.score(&model, validation, own(b"score"), threads, &mut watch)?;
            let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
            // Equals are told apart by a number that depends on nothing.
            let rank = (score, bits.word()?);
            if best.as_ref().is_none_or(|(known, ..)| rank > *known) {
                best = Some((rank, place, model));
            }
            if uniform(&mut bits)? < stopping {
                break;
            }
        }
        let ((score, _), place, mut model) = best.expect("at least one trial");
        let certificate = &mut model.certificate;
        certificate.budget = self.asked;
        certificate.epsilon = self.asked.group().epsilon(self.tuned.total(law));
        certificate.curve = vec![(self.asked.delta(), certificate.epsilon)];
        certificate.theorem = format!("{SELECTION}{}", certificate.theorem);
        certificate.selection = Some(self.tuned.clone());
        certificate.not_covered.push(
            "anyone who sees how long the run takes: the number of trials must stay unknown".into(),
        );
        Ok((place, score, model))
    }

    fn score(
        &self,
        model: &Model,
        validation: Validation<'_>,
        charge: Charge,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<f64, Error> {
        let on = &mut |_: u64| watch(Progress { doing: "trying", done: 0, of: 1 });
        let classes = model.link.is_classifier();
        Ok(match validation {
            Validation::Public(rows) if classes => {
                evaluate_classes(model, rows, threads, on)?.accuracy.unwrap_or(0.0)
            }
            Validation::Public(rows) => evaluate(model, rows, threads, on)?.r2,
            Validation::Private(rows) if classes => {
                let scores =
                    evaluate_classes_privately(model, rows, threads, self.once, charge, on)?;
                scores.0.accuracy.unwrap_or(0.0)
            }
            Validation::Private(rows) => {
                evaluate_privately(model, rows, threads, self.once, charge, on)?.0.r2
            }
        })
    }
}

impl Tuning {
    /// The least order that all plans and the score keep within.
    fn least_order(
        tuned: &PrivateSelection,
        law: TrialCount,
        plans: &[Plan],
        neighbours: Neighbours,
    ) -> Result<f64, Error> {
        let mut order = 1e-3_f64;
        let planned = plans.iter().filter(|plan| !plan.stages().is_empty());
        let mut events =
            planned.map(|p| event(p.sampler(), p.stages())).collect::<Result<Vec<_>, _>>()?;
        events.extend(tuned.score_event()?);
        for event in &events {
            // Most candidates cost the same.
            if !law.selection_epsilon_at_most(event, neighbours, order)? {
                order = order.max(law.selection_epsilon(event, neighbours)?);
            }
        }
        Ok(order)
    }
}

/// A number from 0 up to but not 1, of 53 bits.
fn uniform(bits: &mut Bits) -> Result<f64, Error> {
    Ok((bits.word()? >> 11) as f64 / (1_u64 << 53) as f64)
}

/// The noise of one sum within the budget.
fn noise(budget: Budget) -> Result<f64, Error> {
    Ok(one_sum("score", budget)?[0].releases[0].multiplier())
}

//! The certificate of a model: its budget, its releases, their certified cost and the theorem behind it.
use std::fmt;

use quietly_accounting::Neighbours;
use quietly_noise::Source;
use serde::{Deserialize, Serialize};

use crate::{
    allocation::Allocation,
    budget::Budget,
    calibration_cache,
    error::Error,
    mechanism::{Mechanism, PlannedRelease, Sampler, Stage, event, goes_with, pure_epsilon},
    private_selection::PrivateSelection,
    rows_used::RowsUsed,
};

/// What was released, what it cost, and the theorem behind the cost.
///
/// It holds no data: everything in it is known before the first row is read, but for where the
/// randomness came from and for [`rows_used`](Self::rows_used), which is a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// The budget: what the release may spend.
    pub budget: Budget,
    /// The certified upper bound on ε, at the δ of the budget.
    #[serde(with = "crate::budget::endless")]
    pub epsilon: f64,
    /// What one row is: the unit of privacy.
    pub unit: String,
    /// Which rows each step saw.
    #[serde(flatten)]
    pub sampler: Sampler,
    /// Every release, stage by stage.
    pub stages: Vec<Stage>,
    /// The theorem behind ε.
    pub theorem: String,
    /// (δ, ε): the whole curve.
    pub curve: Vec<(f64, f64)>,
    /// The private selection among trials, if there was one: the stages are then those of one trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<PrivateSelection>,
    /// About how many rows were used: one of the releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_used: Option<RowsUsed>,
    /// Of stages of which one runs instead of the other, those that ran: what was released chose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<String>,
    /// What was taken to be public.
    pub public: Vec<String>,
    /// Where the noise came from.
    pub randomness: String,
    /// How rows were allocated to steps, where the table was partitioned beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// Made with a fixed seed, or without any noise: not for release.
    pub test_only: bool,
    /// What this certificate does not cover.
    pub not_covered: Vec<String>,
    /// The version that made it.
    pub made_by: String,
}

/// What differential privacy does not cover.
const NOT_COVERED: [&str; 4] = [
    "facts about the population that hold with or without any one of its members",
    "more rows than the unit has: k units cost k times epsilon, at a larger delta",
    "other releases from the same table: their epsilons and deltas add up",
    "who can read the table, or the machine's memory or clock during the fit",
];

/// The same in files of earlier versions, which are still read.
const NOT_COVERED_BEFORE: [&str; 4] = [
    NOT_COVERED[0],
    "several rows of one person, unless the unit says so: k rows cost k times epsilon, at a larger delta",
    NOT_COVERED[2],
    "who can read the table, the machine's memory or its clock while the model is made",
];

/// The theorem of a certificate where none is needed, and the simplest ones.
const NO_NOISE: &str = "none: no noise was added";
const NO_RELEASES: &str = "none needed: nothing was asked of the data";
const PURE: &str = "pure epsilons add up; of disjoint parts the largest counts";
/// The same in files of earlier versions, which are still read.
const PURE_BEFORE: &str = "pure epsilons add up; of parts the dearest counts";
/// What stands before the theorem of a trial.
pub const SELECTION: &str = "private selection over ";

/// How wide the text is.
const WIDTH: usize = 80;

impl Certificate {
    /// The certificate of a run that went through `stages` under `sampler`.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if no theorem covers it.
    pub fn new(
        budget: Budget,
        sampler: Sampler,
        stages: &[Stage],
        public: Vec<String>,
        unit: &str,
        source: Option<Source>,
    ) -> Result<Self, Error> {
        Self::priced(budget, sampler, stages, None, public, unit, source)
    }

    /// The same where the accountant has already computed ε and its theorem.
    pub fn priced(
        budget: Budget,
        sampler: Sampler,
        stages: &[Stage],
        price: Option<(f64, &'static str)>,
        public: Vec<String>,
        unit: &str,
        source: Option<Source>,
    ) -> Result<Self, Error> {
        let mut certificate = Certificate {
            budget,
            epsilon: f64::INFINITY,
            unit: unit.into(),
            sampler,
            stages: stages.to_vec(),
            theorem: NO_NOISE.into(),
            curve: Vec::new(),
            selection: None,
            rows_used: None,
            ran: Vec::new(),
            public,
            randomness: source.map_or("none".into(), |s| s.to_string()),
            allocation: None,
            test_only: !source.is_some_and(|s| s.is_private()),
            not_covered: NOT_COVERED.map(String::from).to_vec(),
            made_by: concat!("quietly ", env!("CARGO_PKG_VERSION")).into(),
        };
        // The stages are those of one row, of which a unit may have several.
        let (one, group) = (budget.of_one_row()?, budget.group());
        if budget.is_private() && stages.is_empty() {
            certificate.epsilon = 0.0;
            certificate.theorem = NO_RELEASES.into();
        } else if budget.is_pure() {
            let price = pure_epsilon(sampler, stages, budget.neighbours());
            let price = group.epsilon(price.expect("a plan with delta 0 asks nothing else"));
            assert!(price <= budget.epsilon(), "a plan never costs more than its budget");
            certificate.epsilon = price;
            certificate.theorem = PURE.into();
            certificate.curve = vec![(0.0, price)];
        } else if budget.is_private() {
            let (epsilon, theorem) = match price {
                Some(price) => price,
                None => {
                    let event = event(sampler, stages)?;
                    let price = quietly_accounting::epsilon(&event, one.neighbours(), one.delta())?;
                    (price.upper, price.method)
                }
            };
            let epsilon = group.epsilon(epsilon);
            assert!(epsilon <= budget.epsilon(), "a plan never costs more than its budget");
            (certificate.epsilon, certificate.theorem) = (epsilon, theorem.into());
            let curve = calibration_cache::curve(sampler, stages, budget.neighbours())?;
            let curve = curve.into_iter().map(|point| group.point(point));
            certificate.curve = curve.filter(|(d, e)| *d < 1.0 && e.is_finite()).collect();
        }
        Ok(certificate)
    }

    /// Says that names of features came from the table.
    pub fn add_header(&mut self) {
        self.public.push("the names in the table's first line".into());
    }

    /// Says which files were read. Names are without folders and hold no hidden character.
    ///
    /// Sizes are left out: they are exact functions of the rows.
    pub fn add_files(&mut self, names: &[String]) {
        const MOST: usize = 20;
        let mut files: Vec<String> = names.iter().take(MOST).cloned().collect();
        if names.len() > MOST {
            files.push(format!("and {} more", names.len() - MOST));
        }
        if !files.is_empty() {
            self.public.push(format!("the files that were read: {}", files.join(", ")));
        }
    }

    /// Records how rows came to their steps.
    pub fn record(&mut self, allocation: &Allocation) {
        self.test_only |= allocation.test_only;
        self.allocation = Some(allocation.clone());
        self.not_covered.push(
            "anyone who can distinguish the steps of rows from random ones, by reading the partitioned table or by breaking ChaCha20"
                .into(),
        );
    }

    /// Whether the listed releases cost the certified ε, computed again by the accountant, and whether the other fields agree:
    /// a file can be edited.
    ///
    /// This is consistency, not a signature: a consistent edit of all fields is not detected.
    pub fn is_consistent(&self) -> bool {
        let Certificate { budget, sampler, stages, .. } = self;
        let Ok(one) = budget.of_one_row() else { return false };
        let known = |price: Option<f64>, theorem: &'static str| price.map(|price| (price, theorem));
        let price = if !budget.is_private() {
            known(Some(f64::INFINITY), NO_NOISE)
        } else if let Some(tuned) = &self.selection {
            let price = match stages.is_empty() {
                true => tuned.price(None, &one),
                false => event(*sampler, stages).ok().and_then(|e| tuned.price(Some(e), &one)),
            };
            known(price, SELECTION)
        } else if stages.is_empty() {
            known(Some(0.0), NO_RELEASES)
        } else if budget.is_pure() {
            known(pure_epsilon(*sampler, stages, budget.neighbours()), PURE)
        } else {
            let price =
                |event| quietly_accounting::epsilon(&event, one.neighbours(), one.delta()).ok();
            let answer = event(*sampler, stages).ok().and_then(price);
            answer.map(|answer| (answer.upper, answer.method))
        };
        let names = |theorem: &str| match &self.selection {
            Some(_) => self.theorem.starts_with(theorem),
            None => self.theorem == theorem || theorem == PURE && self.theorem == PURE_BEFORE,
        };
        let fits = |price: f64| {
            let price = budget.group().epsilon(price);
            price <= self.epsilon * (1.0 + 1e-6) && self.epsilon <= budget.epsilon()
        };
        let possible = !budget.is_private() || goes_with(*sampler, budget.neighbours());
        possible
            && price.is_some_and(|(price, theorem)| fits(price) && names(theorem))
            && self.has_its_curve()
            && self.contradiction().is_none()
    }

    /// Whether its fields agree with each other, as far as that can be checked without an accountant.
    pub fn has_no_contradiction(&self) -> bool {
        let within = !self.budget.is_private() || self.epsilon <= self.budget.epsilon();
        within && self.contradiction().is_none()
    }

    /// The field that contradicts the others, if any, found without an accountant.
    pub fn contradiction(&self) -> Option<&'static str> {
        let (private, seed) = (Source::OperatingSystem.to_string(), |text: &str| {
            let number =
                text.strip_prefix("ChaCha20, fixed seed ")?.strip_suffix(": NOT PRIVATE")?;
            number.parse::<u64>().ok()
        });
        let known = |text: &str| text == private || text == "none" || seed(text).is_some();
        let allocation = self.allocation.as_ref();
        let mut sources = allocation.map(|a| &a.randomness).into_iter().chain([&self.randomness]);
        let lines = |built_in: &[&str]| {
            let found = self.not_covered.iter().map(String::as_str).take(built_in.len());
            found.eq(built_in.iter().copied())
        };
        let for_tests = self.randomness != private
            || allocation.is_some_and(|a| a.randomness != private || a.test_only);
        if !sources.all(|text| known(text)) {
            Some("its \"randomness\" is unknown")
        } else if self.test_only != for_tests {
            Some("its \"test_only\" contradicts its \"randomness\"")
        } else if allocation.is_some_and(|a| a.test_only != (a.randomness != private)) {
            Some("its \"allocation\" contradicts itself")
        } else if !lines(&NOT_COVERED) && !lines(&NOT_COVERED_BEFORE) {
            Some("its \"not_covered\" does not begin with what no certificate covers")
        } else if !self.ran.iter().all(|name| self.is_branch(name)) {
            Some("its \"ran\" names a stage that nothing runs instead of")
        } else if self.budget.is_private()
            && self.stages.is_empty()
            && self.epsilon != 0.0
            && self.selection.is_none()
        {
            Some("it has a cost, but lists no release")
        } else {
            None
        }
    }

    /// Whether a stage of this name is one of two of which one runs.
    fn is_branch(&self, name: &str) -> bool {
        let branches = self.stages.iter().filter_map(|s| Some((&s.name, s.instead_of.as_ref()?)));
        branches.into_iter().any(|(stage, other)| stage == name || other == name)
    }

    /// Whether no point of the curve is below the cost of the releases.
    fn has_its_curve(&self) -> bool {
        let Certificate { budget, sampler, stages, curve, .. } = self;
        let alone =
            curve.iter().all(|(d, e)| *d >= budget.delta() && *e >= self.epsilon * (1.0 - 1e-6));
        if !budget.is_private() || self.selection.is_some() || budget.is_pure() || stages.is_empty()
        {
            return alone;
        }
        let Ok(right) = event(*sampler, stages)
            .and_then(|event| Ok(quietly_accounting::curve(&event, budget.neighbours())?))
        else {
            return false;
        };
        let right: Vec<_> = right.into_iter().map(|point| budget.group().point(point)).collect();
        let kept = |(delta, epsilon): &(f64, f64)| {
            let holds = |(at, least): &(f64, f64)| {
                *at <= delta * (1.0 + 1e-9) && *epsilon >= least * (1.0 - 1e-6)
            };
            right.iter().any(holds)
        };
        curve.iter().all(kept)
    }

    /// What the price means for one unit, in words.
    ///
    /// (ε, δ) bounds the accuracy of any guess from even odds by (e^ε + δ)/(1 + e^ε).
    pub fn odds(&self) -> String {
        self.odds_of(&self.unit)
    }

    pub fn odds_of(&self, unit: &str) -> String {
        let right = 100.0 * (1.0 + self.budget.delta() * (-self.epsilon).exp())
            / (1.0 + (-self.epsilon).exp());
        if !self.budget.is_private() || right > 99.94 {
            return "this model gives no meaningful protection to anyone in the table.".into();
        }
        let right = (10.0 * right * (1.0 - 1e-12)).ceil() / 10.0;
        let unit = if self.budget.rows_per_unit() == 1 { "row" } else { unit };
        let guess = match self.budget.neighbours() {
            Neighbours::AddRemove => format!("whether a certain {unit} is in the table"),
            Neighbours::ReplaceOne => format!("which of two values a certain {unit} has"),
        };
        format!(
            "if someone's guess {guess} was 50 : 50 before, then after seeing the model it is right at most {right:.1} times \
             in 100."
        )
    }

    /// What was spent, as it is printed: four places, never below.
    pub fn rounded(&self) -> f64 {
        (self.epsilon * 1e4).ceil() / 1e4
    }

    /// How a question was answered, in words.
    pub fn how(&self, charge: &PlannedRelease) -> String {
        match (charge.mechanism, self.budget.neighbours()) {
            (Mechanism::Gaussian { noise }, _) => {
                format!("Gaussian mechanism, noise multiplier {noise:.4}")
            }
            (Mechanism::CorrelatedGaussian { noise, correlation }, _) => {
                format!("correlated Gaussian mechanism, noise multiplier {noise:.4}, {correlation}")
            }
            (Mechanism::Laplace { scale }, _) => {
                format!("Laplace mechanism, scale {scale:.4} times the 1-norm sensitivity")
            }
            (Mechanism::Exponential { add_remove: epsilon, .. }, Neighbours::AddRemove)
            | (Mechanism::Exponential { replace_one: epsilon, .. }, Neighbours::ReplaceOne) => {
                format!("exponential mechanism, epsilon {epsilon:.4}")
            }
            (Mechanism::ObjectivePerturbation { noise, .. }, _) => {
                format!("objective perturbation, noise multiplier {noise:.4}")
            }
            (Mechanism::ApproximateDp { epsilon, delta }, _) => {
                format!("(ε, δ)-private mechanism, epsilon {epsilon:.4}, delta {delta:e}")
            }
        }
    }

    /// How it was chosen among other models, if it was.
    pub fn chosen(&self) -> Option<String> {
        let tuned = self.selection.as_ref()?;
        let by = match tuned.score_noise {
            Some(noise) => {
                format!("a sum with Gaussian noise, noise multiplier {noise:.4}")
            }
            None => "public rows".into(),
        };
        Some(format!(
            "the releases above are one trial, and this model is the best of a random number of trials, {} on average, of {} candidates: \
             epsilon {:.4} for a trial and {:.4} for the selection, which uses {by}",
            tuned.trials, tuned.candidates, tuned.epsilon, tuned.order
        ))
    }

    /// What is protected: "whether one row is in the table" and the like.
    pub fn relation(&self) -> String {
        self.relation_of(&self.unit)
    }

    pub fn relation_of(&self, unit: &str) -> String {
        match (self.budget.neighbours(), self.budget.rows_per_unit()) {
            (Neighbours::AddRemove, 1) => "whether one row is in the table".into(),
            (Neighbours::AddRemove, k) => {
                format!("whether one {unit}, with up to {k} rows, is in the table")
            }
            (Neighbours::ReplaceOne, 1) => {
                "the values of one row; the number of rows is public".into()
            }
            (Neighbours::ReplaceOne, k) => {
                format!("the values of one {unit} in up to {k} rows; the number of rows is public")
            }
        }
    }

    /// What the unit is, and who is not protected.
    pub fn scope(&self) -> String {
        self.scope_of(&self.unit)
    }

    pub fn scope_of(&self, unit: &str) -> String {
        match self.budget.rows_per_unit() {
            1 => {
                let named = if unit == "row" { String::new() } else { format!(" (called {unit})") };
                format!(
                    "one row{named}; if a person has several rows, they are NOT protected at this epsilon"
                )
            }
            k => format!(
                "one {unit}, up to {k} rows each, as the schema declares; a {unit} with more rows is NOT protected at \
                 this epsilon"
            ),
        }
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.budget.is_private() {
            return writeln!(
                f,
                "NO PRIVACY: epsilon was infinite. This model may reveal any row of its table.\nmade by {}",
                self.made_by
            );
        }
        if self.test_only {
            writeln!(
                f,
                "TEST ONLY: made with a fixed seed; anyone who knows the seed can remove the noise.\n"
            )?;
        }
        writeln!(
            f,
            "epsilon  {} of a budget of {}, at delta {}",
            self.rounded(),
            self.budget.epsilon(),
            self.budget.delta_in_words()
        )?;
        writeln!(f, "protects {} ({})", self.relation(), self.budget.neighbours().name())?;
        paragraph(f, "unit     ", &self.scope())?;
        paragraph(f, "in words ", &self.odds())?;
        let each = if self.budget.rows_per_unit() == 1 { "" } else { "; the noise is for one row" };
        writeln!(f, "releases {}{each}:", self.sampler)?;
        for stage in &self.stages {
            for charge in &stage.releases {
                let how = self.how(charge);
                writeln!(
                    f,
                    "         {:>4} x {}{}: {how}",
                    stage.steps,
                    charge.purpose,
                    stage.whom(charge)
                )?;
            }
        }
        if !self.ran.is_empty() {
            let ran = self.ran.join(", ");
            let text = format!(
                "of stages of which one runs instead of the other, as releases say: {ran}; the cost covers both"
            );
            paragraph(f, "ran      ", &text)?;
        }
        if let Some(chosen) = self.chosen() {
            paragraph(f, "chosen   ", &chosen)?;
        }
        if let Some(used) = &self.rows_used {
            writeln!(f, "rows     {used}")?;
        }
        writeln!(
            f,
            "theorem  {}, a certified upper bound; noise rounded to a lattice, exactly",
            self.theorem
        )?;
        writeln!(f, "random   {}", self.randomness)?;
        if let Some(allocation) = &self.allocation {
            writeln!(f, "steps    {allocation}")?;
        }
        for (heading, items) in [("Public", &self.public), ("Not covered", &self.not_covered)] {
            writeln!(f, "{heading}")?;
            items.iter().try_for_each(|item| paragraph(f, "  - ", item))?;
        }
        write!(f, "made by  {}", self.made_by)
    }
}

/// A paragraph after `label`, its further lines indented alike.
fn paragraph(f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    let (mut line, mut words) = (String::from(label), 0);
    for word in text.split_whitespace() {
        if words > 0 && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{line}")?;
            (line, words) = (" ".repeat(label.len()), 0);
        }
        let gap = if words > 0 { " " } else { "" };
        line += &format!("{gap}{word}");
        words += 1;
    }
    writeln!(f, "{line}")
}

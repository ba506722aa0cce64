//! The ladder of additive models: how many bends a budget can carry, by public numbers alone.
//!
//! Rung 0 is the linear model. Rungs 1 to 3 bend every numeric column, rungs 4 to 6 every pair of them as well. The rung is
//! the highest that rows, budget and work allow; [`Choice::why`] names the number that decided. docs/spec/default.md#6
use quietly_accounting::Neighbours;
use quietly_engine::{
    column_map::{MOST_RANK_NOISE, rank_noise, tree_noise},
    whitening::WIDEST,
};
use serde::{Deserialize, Serialize};

use crate::budget_split::TREES;

/// The share of μ² of the linear model, without the trees.
const LINEAR: f64 = 0.40;
/// That of the gradients of bends, where the linear model has its usual share.
const GRADIENTS: f64 = 0.31;
/// Of those, that of the first steps.
const FIRST: f64 = 0.3;
/// A linear model that needs more than this gets all.
const MOST_LINEAR: f64 = 0.7;
/// Rows for each feature.
const ROWS_PER_FEATURE: f64 = 25.0;
/// The most noise in the eigenvalues of the second moment.
const MOST_NOISE: f64 = 0.6;
/// The most multiplications.
const MOST_WORK: f64 = 2e10;
/// How many of them a core does in a second, about: measured on the machine that the defaults were measured on.
const SPEED: f64 = 2e9;
/// Pairs are taken of so many columns at most.
pub const MOST_PAIRED: usize = 20;
/// Rows are cut at so many times the root of what their squared norm is expected to be.
pub(crate) const CUT: f64 = 1.2;

/// What bends on a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Rung(u32);

impl Rung {
    /// From few bends to many.
    pub const ALL: [Rung; 6] = [Rung(1), Rung(2), Rung(3), Rung(4), Rung(5), Rung(6)];

    /// 1 to 6.
    pub fn number(self) -> u32 {
        self.0
    }

    /// How many cosines a column has.
    pub fn functions(self) -> usize {
        [2, 4, 8, 4, 4, 8][self.0 as usize - 1]
    }

    /// Which cosines of a pair are multiplied.
    pub fn products(self) -> &'static [(usize, usize)] {
        const ALL: [(usize, usize); 6] = [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1)];
        &ALL[..[0, 0, 0, 1, 3, 6][self.0 as usize - 1]]
    }

    /// All pairs of these columns, if this rung has any.
    pub fn pairs(self, numbers: &[usize]) -> Vec<(usize, usize)> {
        let all = if self.products().is_empty() { &[] } else { numbers };
        let mut pairs = Vec::new();
        for (k, i) in all.iter().enumerate() {
            pairs.extend(all[k + 1..].iter().map(|j| (*i, *j)));
        }
        pairs
    }

    /// How many features a row has with the bends of `numbers` of its `own` features, the constant among these.
    fn width(self, own: usize, numbers: usize) -> f64 {
        let pairs = if self.products().is_empty() { 0.0 } else { pairs(numbers) };
        own as f64
            + (2 + self.functions()) as f64 * numbers as f64
            + pairs * self.products().len() as f64
    }

    /// What the squared norm of a bent row is expected to be: of so many of its own features, `bent` columns and `pairs` pairs.
    pub(crate) fn squared_norm(self, own: usize, bent: usize, pairs: f64) -> f64 {
        let column: f64 = (1..=self.functions()).map(|k| 1.0 / (k * k) as f64).sum();
        let product = |&(k, l): &(usize, usize)| 0.25 / ((k * l) as f64).powi(2);
        let pair: f64 = self.products().iter().map(product).sum();
        own as f64 + bent as f64 * (column + 0.1) + pairs * pair
    }

    /// What it bends, in words.
    pub fn in_words(self) -> String {
        let columns = format!("{} functions of every numeric column", self.functions());
        match self.products().len() {
            0 => columns,
            1 => format!("{columns}, and a product of every pair of them"),
            products => format!("{columns}, and {products} products of every pair of them"),
        }
    }
}

impl TryFrom<u32> for Rung {
    type Error = &'static str;

    fn try_from(number: u32) -> Result<Self, &'static str> {
        Rung::ALL.into_iter().find(|rung| rung.0 == number).ok_or("a rung is a number from 1 to 6")
    }
}

impl From<Rung> for u32 {
    fn from(rung: Rung) -> u32 {
        rung.0
    }
}

fn pairs(columns: usize) -> f64 {
    0.5 * columns as f64 * (columns as f64 - 1.0)
}

/// Shares of μ², for all questions of a kind together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the questions bear these names")]
pub struct LadderShares {
    /// The trees of all columns and the linear model.
    pub linear: f64,
    pub linear_moment: f64,
    pub moment: f64,
    pub norms: f64,
    pub first: f64,
    pub last: f64,
    pub gate: f64,
}

impl LadderShares {
    /// The shares where the linear model has this one without its trees.
    fn new(linear: f64) -> Self {
        let gradients = GRADIENTS - (linear - LINEAR);
        LadderShares {
            linear: TREES + linear,
            linear_moment: 0.05,
            moment: 0.12,
            norms: 0.02,
            first: FIRST * gradients,
            last: (1.0 - FIRST) * gradients,
            gate: 0.04,
        }
    }

    pub fn total(&self) -> f64 {
        let moments = self.linear_moment + self.moment;
        self.linear + moments + self.norms + self.first + self.last + self.gate
    }
}

/// What a ladder is chosen for: public numbers.
#[derive(Clone, Copy, Debug)]
pub struct LadderInput {
    pub rows: u64,
    /// How many features a row has, without the constant.
    pub width: usize,
    /// How many of them are numeric columns.
    pub numbers: usize,
    /// What the budget is worth for a row that is there or not.
    pub mu: f64,
    pub neighbours: Neighbours,
}

/// A rung, or none for the linear model alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub rung: Option<(Rung, LadderShares)>,
    /// Which number decided.
    pub why: String,
    /// How long the bends take, about.
    pub seconds: f64,
}

impl LadderInput {
    /// The highest rung that these numbers allow.
    pub fn choose(&self) -> Choice {
        let linear = |why: String| {
            let why = format!("linear regression (rung 0 of 6): {why}");
            Choice { rung: None, why, seconds: 0.0 }
        };
        let (n, m) = (self.rows as f64, self.numbers);
        if m == 0 {
            return linear("no column is a number that could bend".into());
        }
        let noise = tree_noise(m, self.neighbours, 1.0 / (self.mu * TREES.sqrt()));
        let blurred = rank_noise(noise, n);
        if blurred > MOST_RANK_NOISE {
            return linear(format!(
                "the ranks of {} over {} rows would have noise {blurred:.2}, more than {MOST_RANK_NOISE}",
                numeric(m),
                self.rows
            ));
        }
        let d = (self.width + 1) as f64;
        let excess = 13.0 * (d / (n * self.mu)).powi(2);
        let share = (excess / (excess + 0.003)).max(LINEAR);
        if share > MOST_LINEAR {
            return linear(format!(
                "its weights alone need {:.0} % of the budget, more than {:.0} %",
                100.0 * share,
                100.0 * MOST_LINEAR
            ));
        }
        let shares = LadderShares::new(share);
        let obstacle = |rung: Rung| self.obstacle(rung, shares.moment);
        let highest = Rung::ALL.into_iter().rev().find(|rung| obstacle(*rung).is_none());
        let next = Rung::ALL[highest.map_or(0, |rung| rung.0 as usize).min(5)];
        let obstacle = obstacle(next);
        let Some(rung) = highest else { return linear(obstacle.expect("no rung is allowed")) };
        let (number, what) = (rung.0, rung.in_words());
        let why = match obstacle {
            None => format!("additive regression, rung 6 of 6 ({what}): rows and budget allow all"),
            Some(obstacle) => {
                format!("additive regression, rung {number} of 6 ({what}): {obstacle}")
            }
        };
        let work = work(n, rung.width(self.width + 1, m));
        Choice { rung: Some((rung, shares)), why, seconds: work / SPEED }
    }

    /// What keeps these numbers from a rung.
    fn obstacle(&self, rung: Rung, moment: f64) -> Option<String> {
        let (n, own, m) = (self.rows as f64, self.width + 1, self.numbers);
        let (width, number) = (rung.width(own, m), rung.0);
        if !rung.products().is_empty() && m > MOST_PAIRED {
            return Some(format!(
                "pairs of columns are left out where there are more than {MOST_PAIRED}; here are {m}"
            ));
        }
        let least = ROWS_PER_FEATURE * width;
        if n < least {
            return Some(format!(
                "rung {number} has {width} features, and {} rows are fewer than the {least} that it needs",
                self.rows
            ));
        }
        if width > WIDEST as f64 {
            return Some(format!("rung {number} has {width} features, more than {WIDEST}"));
        }
        let paired = if rung.products().is_empty() { 0.0 } else { pairs(m) };
        let square = CUT * CUT * rung.squared_norm(own, m, paired);
        let noise = square * width.sqrt() / (n * self.mu * moment.sqrt());
        if noise > MOST_NOISE {
            return Some(format!(
                "at rung {number} the second moment of {width} features would have noise {noise:.2}, more than {MOST_NOISE}"
            ));
        }
        let work = work(n, width);
        (work > MOST_WORK).then(|| {
            format!(
                "rung {number} with {width} features would take {work:.1e} multiplications, more than {MOST_WORK:.0e}"
            )
        })
    }
}

/// So many numeric columns, in words.
fn numeric(columns: usize) -> String {
    match columns {
        1 => "one numeric column".into(),
        columns => format!("{columns} numeric columns"),
    }
}

/// The multiplications of a second moment and of 25 passes over so many features.
fn work(rows: f64, width: f64) -> f64 {
    rows * width * (0.5 * width + 50.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(rows: u64, width: usize, numbers: usize, mu: f64) -> Choice {
        let neighbours = Neighbours::AddRemove;
        LadderInput { rows, width, numbers, mu, neighbours }.choose()
    }

    fn rung(choice: &Choice) -> u32 {
        choice.rung.map_or(0, |(rung, _)| rung.number())
    }

    /// The table of docs/spec/default.md#5.3, for eight columns and the constant.
    #[test]
    fn rungs_have_the_widths_of_the_specification() {
        let widths = Rung::ALL.map(|rung| rung.width(9, 8));
        assert_eq!(widths, [41.0, 57.0, 89.0, 85.0, 141.0, 257.0]);
        assert_eq!(Rung::ALL[3].pairs(&[0, 2, 5]), [(0, 2), (0, 5), (2, 5)]);
        assert!(Rung::ALL[2].pairs(&[0, 2, 5]).is_empty());
    }

    #[test]
    fn shares_add_up() {
        for rows in [50, 3000, 20_000, 1_000_000] {
            for mu in [0.03, 0.27, 0.7, 5.0] {
                if let Some((_, shares)) = choose(rows, 8, 8, mu).rung {
                    assert!((shares.total() - 1.0).abs() < 1e-12);
                    assert!(shares.first > 0.0 && shares.linear <= TREES + MOST_LINEAR);
                }
            }
        }
    }

    /// California, gas turbines and wine at ε = 1, a small table, one of categories, one of 5,000 columns, a large one: each
    /// names what decided.
    #[test]
    fn public_numbers_decide() {
        let mu = 0.268;
        for (asked, want, why) in [
            (choose(16_512, 8, 8, mu), 6, "allow all"),
            (choose(29_387, 9, 9, mu), 6, "allow all"),
            (choose(3_919, 11, 11, mu), 0, "second moment"),
            (choose(300, 8, 8, mu), 0, "ranks"),
            (choose(16_512, 8, 0, mu), 0, "no column"),
            (choose(1_000_000, 5_000, 5_000, 5.0), 0, "features"),
            (choose(1_000_000, 20, 20, mu), 2, "multiplications"),
            (choose(200_000, 30, 30, mu), 3, "pairs"),
            (choose(2_000, 3, 3, 5.0), 6, "allow all"),
            (choose(1_500, 3, 3, 5.0), 6, "allow all"),
            (choose(1_100, 3, 3, 5.0), 5, "fewer than"),
        ] {
            assert_eq!(rung(&asked), want, "{}", asked.why);
            assert!(asked.why.contains(why), "{}", asked.why);
        }
    }
}

//! Checks a table against its schema: one noisy count per kind of problem and column.
//!
//! A cell is *missing or undeclared* if it is no number where the schema has a range, or none of the
//! values that it lists. It is *at an end* if it lies at an end of its range or beyond. A row is *usable* if a
//! fit would not leave it out.
//!
//! # Proof: sensitivity √(2 + columns)
//!
//! 1. A row adds the vector (1, usable, m₁, e₁, m₂, e₂, …) of zeros and ones, which depends on that row and the
//!    schema alone. mᵢ says that its i-th cell is missing or undeclared, eᵢ that it is at an end.
//! 2. A missing cell is at no end: mᵢ + eᵢ ≤ 1. So the vector's squared norm is at most 2 + columns.
//! 3. The sum is over integers, and exact. One Gaussian release of it spends the whole budget.
//!
//! The cells are read once, through an encoding that is derived from the schema: ranges are widened to three
//! times their width, so that ends can be told from what is beyond, and what is missing becomes a number
//! that is all but impossible otherwise. A cell that happens to be that number is counted as missing: an
//! error of the count, bounded as any other.
use std::collections::HashMap;

use quietly_core::{
    budget::Budget,
    certificate::Certificate,
    charge::Charge,
    progress::{Progress, ProgressCallback},
    release::Sensitivity,
    rows_used::RowsUsed,
};
use quietly_data::{Encoding, Feature, Kind, Missing, Rule, Schema, Source};
use quietly_engine::error::Error;
use serde::Serialize;

use crate::one_sum::{OneSum, blocks};

const PURPOSE: &str = "usable rows and cells";

/// Where the number that stands for a missing one lies, in widths of the range below its lower end.
const HOLE: f64 = 0.512_345_678_9;

/// How well a table fits its schema, with noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TableCheck {
    /// About how many rows a fit would use.
    pub usable: RowsUsed,
    /// About how many rows there are.
    pub rows: u64,
    /// The columns of the schema, in its order.
    pub columns: Vec<ColumnCheck>,
    /// The standard deviation of the noise in every share.
    pub deviation: f64,
}

/// The same of one column. Shares are of all rows, and within [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnCheck {
    /// Its name, if the schema says it; its place in the table where `*` stands for it.
    pub column: String,
    /// About the share of cells that are missing or undeclared.
    pub missing: f64,
    /// About the share of cells at the ends of the range or beyond; none for categories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_ends: Option<f64>,
}

/// How a column is looked at.
struct Look {
    column: String,
    /// The encoded number that stands for a missing cell; none for categories.
    hole: Option<f64>,
    /// The feature of the number, or of "none of the declared values".
    at: usize,
    /// Whether a missing cell makes the row unusable.
    needed: bool,
}

impl TableCheck {
    /// Refuses a schema that does not go with the table's header and types: before anything is charged.
    ///
    /// # Errors
    ///
    /// [`Error::Data`], as a fit would have it.
    pub fn refuse(source: &Source, schema: &Schema, target: Option<&str>) -> Result<(), Error> {
        let encoding = Encoding::new(schema, source.columns(), None, target)?;
        Ok(source.check(&encoding, Some(schema))?)
    }

    /// Checks a table against a schema, within `budget`; `target` is the column that a fit would predict.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] if the table cannot be read or lacks columns, [`Error::Accounting`] if the budget is
    /// refused, [`Error::Interrupted`] if `watch` said so. No row can cause an error.
    pub fn of(
        source: &Source,
        schema: &Schema,
        target: Option<&str>,
        budget: Budget,
        charge: Charge,
        threads: usize,
        watch: &mut ProgressCallback<'_>,
    ) -> Result<(Self, Certificate), Error> {
        let budget = budget.for_units_of_at_least(schema.rows_per_unit)?;
        let (encoding, looks) = looks(source, schema, target)?;
        let plan = OneSum::plan_or_plain(PURPOSE, budget)?;
        let key = charge.spend(budget)?;
        let mut sums = vec![0_i128; 2 + 2 * looks.len()];
        let bytes = source.bytes();
        blocks(source, &encoding, threads, &mut |block| {
            block
                .features
                .chunks_exact(block.width.max(1))
                .for_each(|row| add(&mut sums, &looks, row));
            watch(Progress { doing: "reading", done: block.position, of: bytes })
        })?;
        let public = vec!["the schema: names, ranges and values of the columns".into()];
        let sensitivity = Sensitivity::l2((2.0 + looks.len() as f64).sqrt(), 1.0);
        let (sums, noise, certificate) =
            plan.release(sums, sensitivity, (key, threads), public, &schema.unit)?;
        Ok((told(schema.rows, &looks, &sums, noise), certificate))
    }
}

/// The encoding that shows what is wrong with a cell, and where to look for it.
fn looks(
    source: &Source,
    schema: &Schema,
    target: Option<&str>,
) -> Result<(Encoding, Vec<Look>), Error> {
    // A target that the schema lacks is refused as for a fit.
    Encoding::new(schema, source.columns(), None, target)?;
    let columns = schema.columns.iter().map(|(name, rule)| (name.clone(), shown(rule))).collect();
    let derived = Schema { columns, ..schema.clone() };
    let encoding = Encoding::new(&derived, source.columns(), None, None)?;
    let rules: HashMap<&str, &Rule> =
        schema.columns.iter().map(|(name, rule)| (&**name, rule)).collect();
    let places: HashMap<&str, usize> =
        source.columns().iter().enumerate().map(|(place, name)| (&**name, place)).collect();
    let mut looks: Vec<Look> = Vec::new();
    let features: Vec<&Feature> = encoding.features().iter().collect();
    for (at, feature) in features.iter().enumerate() {
        // Only the last feature of a category says that no value was found.
        if matches!(feature.kind, Kind::Category { .. }) {
            continue;
        }
        let own = rules.get(&*feature.column);
        let rule = *own.or(rules.get("*")).expect("the encoding was made of the schema");
        let is_target = target == Some(&feature.column);
        // A value that is not declared is a class of its own where the rule has others.
        let needed = match rule {
            Rule::Range { missing, .. } => {
                is_target || missing.unwrap_or(schema.missing) == Missing::Drop
            }
            Rule::Values { other, .. } => !other,
        };
        let hole = match (&feature.kind, shown(rule)) {
            (
                Kind::Number { centre, half_width },
                Rule::Range { missing: Some(Missing::Number(x)), .. },
            ) => Some(((x - centre) / half_width).clamp(-1.0, 1.0)),
            _ => None,
        };
        // A name that only the file says may be a cell.
        let column = match own {
            Some(_) => feature.column.clone(),
            None => format!("column {} (*)", places.get(&*feature.column).unwrap_or(&0) + 1),
        };
        looks.push(Look { column, hole, at, needed });
    }
    Ok((encoding, looks))
}

/// A rule under which trouble shows.
fn shown(rule: &Rule) -> Rule {
    match rule {
        Rule::Range { lo, hi, .. } => {
            // Where the sum would overflow, ends are told less well.
            let width = (hi - lo).min(1e300);
            let hole = Missing::Number(lo - HOLE * width);
            Rule::Range { lo: lo - width, hi: hi + width, missing: Some(hole) }
        }
        Rule::Values { values, .. } => Rule::Values { values: values.clone(), other: true },
    }
}

fn add(sums: &mut [i128], looks: &[Look], row: &[f64]) {
    let mut usable = true;
    for (pair, look) in sums[2..].chunks_exact_mut(2).zip(looks) {
        let x = row[look.at];
        let missing = match look.hole {
            Some(hole) => x == hole,
            None => x == 1.0,
        };
        // A third of the widened range lies within the declared one.
        let end = look.hole.is_some() && !missing && x.abs() >= 1.0 / 3.0 - 1e-12;
        pair[0] += i128::from(missing);
        pair[1] += i128::from(end);
        usable &= !(missing && look.needed);
    }
    sums[0] += 1;
    sums[1] += i128::from(usable);
}

fn told(declared: u64, looks: &[Look], sums: &[f64], noise: f64) -> TableCheck {
    let rows = sums[0].round().max(1.0);
    let share = |sum: f64| (sum / rows).clamp(0.0, 1.0);
    let column = |(look, pair): (&Look, &[f64])| ColumnCheck {
        column: look.column.clone(),
        missing: share(pair[0]),
        at_ends: look.hole.map(|_| share(pair[1])),
    };
    TableCheck {
        usable: RowsUsed::new(sums[1], noise, declared, false),
        rows: sums[0].round().max(0.0) as u64,
        columns: looks.iter().zip(sums[2..].chunks_exact(2)).map(column).collect(),
        deviation: noise / rows,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    const SCHEMA: &str = r#"
        rows = 4
        [columns]
        a = { range = [0, 10] }
        b = { range = [0, 10], missing = "drop" }
        c = { values = ["x", "y"] }
        d = { values = ["x"], other = true }
        y = { range = [-1, 1] }
    "#;

    fn check(text: &str, budget: Budget) -> TableCheck {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let source = Source::open([&path], &Default::default()).unwrap();
        let schema = Schema::parse(SCHEMA).unwrap();
        let quiet = &mut |_: Progress| ControlFlow::Continue(());
        let charge = Charge::without_ledger(quietly_noise::Key::from_seed(1));
        TableCheck::of(&source, &schema, Some("y"), budget, charge, 2, quiet).unwrap().0
    }

    /// By hand: one trouble of each kind, in one row each, and one good row.
    #[test]
    fn every_trouble_is_counted_where_it_is() {
        let text = "a,b,c,d,y\n5,5,x,x,0\n,5,X,z,0\n11,,y,x,0\n0,10,y,x,none\n";
        let found = check(text, Budget::new(f64::INFINITY, 1e-6).unwrap());
        assert_eq!((found.rows, found.usable.about, found.deviation), (4, 1, 0.0));
        let shares: Vec<(&str, f64, Option<f64>)> =
            found.columns.iter().map(|c| (&*c.column, c.missing, c.at_ends)).collect();
        assert_eq!(
            shares,
            [
                ("a", 0.25, Some(0.5)),
                ("b", 0.25, Some(0.25)),
                ("c", 0.25, None),
                ("d", 0.25, None),
                ("y", 0.25, Some(0.0)),
            ]
        );
    }

    /// No row's vector is longer than the bound, and the worst one is as long.
    #[test]
    fn the_bound_is_tight() {
        let look = |hole, at| Look { column: String::new(), hole, at, needed: false };
        let looks = [look(Some(-0.7), 0), look(None, 1), look(Some(0.1), 2)];
        let mut worst = 0_i128;
        for a in [-1.0, -0.7, -0.2, 1.0 / 3.0, 1.0] {
            for b in [0.0, 1.0] {
                for c in [0.1, 0.5, 0.0] {
                    let mut sums = vec![0; 8];
                    add(&mut sums, &looks, &[a, b, c]);
                    worst = worst.max(sums.iter().map(|s| s * s).sum());
                }
            }
        }
        assert_eq!(worst, 2 + 3);
    }
}

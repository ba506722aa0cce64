//! The algorithms of the papers.
use quietly_data::{Private, Table};
use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    plan::{Plan, Wishes},
    progress::Watch,
    release::Door,
    unit::Unit,
};

pub(crate) mod adassp;
pub(crate) mod boosted_adassp;
mod deep;
#[cfg(test)]
mod trial;
pub(crate) mod tukey_em;

/// A descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {}

/// Plans a method of the papers; false if it is not one.
pub(crate) fn plan(_plan: &mut Plan, _wishes: &Wishes, _mu: f64) -> Result<bool, Error> {
    Ok(false)
}

pub(crate) fn sound(_plan: &Plan) -> bool {
    false
}

/// A run of a recipe.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) table: &'a Private<Table>,
    pub(crate) public: Option<&'a Table>,
    pub(crate) unit: &'a Unit,
    pub(crate) door: &'a mut Door,
    pub(crate) threads: usize,
}

impl Run<'_> {
    pub(crate) fn fit(&mut self, _watch: &mut Watch<'_>) -> Result<(f64, Vec<f64>), Error> {
        Err(Error::Stopped)
    }
}

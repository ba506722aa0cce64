//! What is summed over the rows of a step: clipped gradients of a network, or how many rows have a label.
//!
//! One row adds a vector of integers of norm at most that of [`Network::sensitivity`], as [`clipped_gradient`](super::clipped_gradient)
//! certifies; sums are exact.
use std::borrow::Cow;

use quietly_data::Table;
use quietly_engine::{
    link::Link,
    query::{Cache, Output, Query, Rows, Sensitivity, add_to, encoded},
    target_scaling::TargetScaling,
};

use super::{KanModel, architecture::NetworkLoss, network::Network, quantized_rows::QuantizedRows};

/// A sum of clipped gradients, or a count.
pub struct NetworkQuery<'a> {
    network: Cow<'a, Network>,
    /// The public range of the target; of classes, their first and last number.
    range: (f64, f64),
    /// The clipping norm; without one, rows with a label are counted.
    clip: Option<f64>,
}

/// Rows as small integers.
struct CachedRows(QuantizedRows);

impl<'a> NetworkQuery<'a> {
    pub const KIND: &'static str = "network";

    /// The sum of the gradients at the weights of this network, each clipped to this norm.
    pub fn gradients(network: &'a Network, range: (f64, f64), clip: f64) -> Self {
        NetworkQuery { network: Cow::Borrowed(network), range, clip: Some(clip) }
    }

    /// How many rows have a label.
    pub fn count(network: &'a Network, range: (f64, f64)) -> Self {
        NetworkQuery { network: Cow::Borrowed(network), range, clip: None }
    }

    /// The rows of a table in the form in which the network reads them.
    pub fn quantized(&self, table: &Table) -> QuantizedRows {
        let labels: Vec<f64> = table.target().iter().map(|y| self.label(*y)).collect();
        QuantizedRows::new(self.network.shape(), table.features(), &labels)
    }

    fn label(&self, raw: f64) -> f64 {
        label(self.network.shape().loss, raw, self.range)
    }
}

impl NetworkQuery<'static> {
    /// From the fields that [`Query::encode`] wrote.
    pub fn decode(fields: &[u8]) -> Option<Box<dyn Query>> {
        let (network, range, clip): (KanModel, _, Option<f64>) =
            quietly_engine::query::fields(fields)?;
        let fits = clip.is_none_or(|clip| (1e-9..=1e9).contains(&clip));
        fits.then(|| {
            Box::new(NetworkQuery { network: Cow::Owned(network.network), range, clip }) as _
        })
    }
}

impl Query for NetworkQuery<'_> {
    fn outputs(&self) -> Vec<Output> {
        vec![match self.clip {
            None => Output::Counts { bins: 1 },
            Some(clip) => {
                let of_row = self.network.sensitivity(clip);
                let sensitivity = Sensitivity::l2(of_row.bound, of_row.unit);
                Output::Sum { len: self.network.shape().weights(), sensitivity }
            }
        }]
    }

    fn add(&self, rows: &Rows<'_>, cache: &mut Cache, totals: &mut [i128]) {
        let table = rows.data.dense();
        let Some(clip) = self.clip else {
            let labelled = rows.targets().iter().filter(|y| !self.label(**y).is_nan()).count();
            return add_to(totals, &[], &[labelled as u64]);
        };
        let mut sum = vec![0; totals.len()];
        let all = |quantized: &QuantizedRows| (0..quantized.count() as u32).collect::<Vec<_>>();
        let mut add = |quantized: &QuantizedRows, which: &[u32]| {
            self.network.clipped_sum(quantized, which, clip, rows.threads, &mut sum);
        };
        match rows.members {
            // Rows that come once are quantized for themselves.
            Some(members) if !cache.is_reused() => {
                let quantized = self.quantized(&members.table(table));
                add(&quantized, &all(&quantized));
            }
            members => {
                if cache.get::<CachedRows>().is_none() {
                    cache.put(CachedRows(self.quantized(table)));
                }
                let CachedRows(quantized) = cache.get().expect("just made");
                match members {
                    Some(members) => add(quantized, members.rows()),
                    None => add(quantized, &all(quantized)),
                }
            }
        }
        add_to(totals, &sum, &[]);
    }

    fn encode(&self) -> Vec<u8> {
        let network = KanModel::new(self.network.clone().into_owned());
        encoded(Self::KIND, &(network, self.range, self.clip))
    }

    fn is_served_by(&self, cache: &Cache) -> bool {
        self.clip.is_some() && cache.get::<CachedRows>().is_some()
    }
}

/// The label as the loss wants it: ±1, the number of a class, or in units of the range. What is no class is no number.
fn label(loss: NetworkLoss, raw: f64, range: (f64, f64)) -> f64 {
    match loss {
        NetworkLoss::Logistic if raw == range.0 => -1.0,
        NetworkLoss::Logistic if raw == range.1 => 1.0,
        NetworkLoss::Logistic => f64::NAN,
        NetworkLoss::Softmax { classes } => {
            if raw >= 0.0 && raw < classes as f64 && raw.fract() == 0.0 { raw } else { f64::NAN }
        }
        NetworkLoss::Huber { .. } => {
            TargetScaling::new(Link::Linear, range).encode(raw).clamp(-1.0, 1.0)
        }
    }
}

//! What mixed noise gains: the cost J of a sampler and a noise, by the accountant alone.
use quietly::{
    Budget, Correlation,
    kan::{Input, Kan, NetworkLoss, NetworkNoise, NetworkSampler, NetworkShape},
    svg::{Axis, Chart, Point, Series},
};
use quietly_cli::{error::Failure, terminal::Progress, trial};

use super::{
    contest::LAMBDAS,
    runs::{Cell, DELTA, Outcomes, Way},
};
use crate::reproduce::{
    Draw, Size,
    claim::{Check, Claim},
    report::{Entry, Grid},
};

const ROWS: u64 = 4000;
const OURS: &str = "our analysis of the paper";

/// κ√V/T that a prototype found for Poisson and λ = 0, 0.3, 0.6, 0.9 on bins, by batches, passes and ε.
const KNOWN: [(u64, u64, f64, [f64; 5]); 9] = [
    (8, 8, 1.0, [0.507, 0.575, 0.510, 0.507, 0.677]),
    (8, 8, 4.0, [0.176, 0.270, 0.205, 0.153, 0.197]),
    (8, 8, 8.0, [0.118, 0.177, 0.131, 0.094, 0.108]),
    (8, 25, 1.0, [0.487, 0.575, 0.509, 0.498, 0.566]),
    (8, 25, 4.0, [0.150, 0.270, 0.199, 0.150, 0.164]),
    (8, 25, 8.0, [0.093, 0.177, 0.130, 0.092, 0.090]),
    (20, 10, 1.0, [0.205, 0.277, 0.227, 0.209, 0.236]),
    (20, 10, 4.0, [0.078, 0.152, 0.113, 0.079, 0.066]),
    (20, 10, 8.0, [0.056, 0.104, 0.077, 0.053, 0.037]),
];

/// What is priced.
pub(super) struct Lambdas {
    lines: Vec<(u64, u64, f64, [f64; 5])>,
    size: Size,
}

impl Lambdas {
    pub(super) fn new(size: Size) -> Lambdas {
        let lines = match size {
            Size::Full => KNOWN.to_vec(),
            Size::Quick => KNOWN[3..].to_vec(),
            Size::Tiny => vec![(4, 3, 4.0, [f64::NAN; 5])],
        };
        Lambdas { lines, size }
    }

    /// Runs of the synthetic task, which are compared with the costs.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let (rows, seeds) = match self.size {
            Size::Full => (ROWS as usize, 10),
            Size::Quick => (ROWS as usize, 3),
            Size::Tiny => (200, 1),
        };
        let wanted = |line: &&(u64, u64, f64, [f64; 5])| line.1 == 25 || self.size == Size::Tiny;
        let mut cells = vec![];
        for &(batches, passes, epsilon, _) in self.lines.iter().filter(wanted) {
            for way in ways(batches, passes) {
                cells.push(Cell { task: "product".into(), rows, way, epsilon, seeds });
            }
        }
        cells
    }

    /// κ√V/T of every line.
    pub(super) fn price(&self, draw: Draw, progress: &Progress) -> Result<Vec<[f64; 5]>, Failure> {
        let each = |line: &(u64, u64, f64, [f64; 5])| ways(line.0, line.1).map(|way| (way, line.2));
        let jobs: Vec<(Way, f64)> = self.lines.iter().flat_map(each).collect();
        let say = |done: usize| progress.say(&format!("pricing noise: {done} of {}", jobs.len()));
        let found = trial::all(&jobs, draw.threads, &say, |(way, epsilon)| cost(*way, *epsilon));
        let found: Vec<f64> = found.into_iter().collect::<Result<_, _>>()?;
        Ok(found.as_chunks::<5>().0.to_vec())
    }

    pub(super) fn grid(&self, prices: &[[f64; 5]]) -> Grid {
        let mut columns = vec!["batches, passes".to_string(), "epsilon".into()];
        columns.extend(ways(1, 1).map(|way| way.name()));
        columns.push("best lambda over Poisson".into());
        let row = |(line, found): (&(u64, u64, f64, [f64; 5]), &[f64; 5])| {
            let mut row = vec![
                Entry::Word(format!("{}, {}", line.0, line.1)),
                Entry::Word(line.2.to_string()),
            ];
            row.extend(found.map(|cost| Entry::Word(format!("{cost:.3}"))));
            row.push(Entry::Word(format!("{:.2}", gain(found))));
            row
        };
        let note = "kappa sqrt(V)/T: what all steps' noise leaves in the last weights, over what T steps can learn. Less is better. The last \
                    column is below 1 where mixed noise gains over the right baseline.";
        Grid {
            title: "What a sampler and its noise cost".into(),
            note: note.into(),
            columns,
            rows: self.lines.iter().zip(prices).map(row).collect(),
        }
    }

    pub(super) fn claims(&self, prices: &[[f64; 5]], outcomes: &Outcomes) -> Vec<Claim> {
        let lines = || self.lines.iter().zip(prices);
        let name =
            |line: &(u64, u64, f64, [f64; 5])| format!("{} x {}, eps {}:", line.0, line.1, line.2);
        let mut known = vec![];
        for (line, found) in lines() {
            for ((way, found), said) in ways(line.0, line.1).iter().zip(found).zip(line.3) {
                let what = format!("{} {}", name(line), way.name());
                // A test of the command has nothing to compare with.
                let ratio = Some(found / said).filter(|ratio| ratio.is_finite());
                known.push(Check::within(what, ratio, 0.95, 1.1));
            }
        }
        let far = |line: &(u64, u64, f64, [f64; 5])| line.0 >= 20 && line.2 >= 4.0;
        let wins = lines().filter(|(line, _)| far(line));
        let wins = wins.map(|(line, found)| Check::below(name(line), Some(gain(found)), 1.0));
        let none = lines().filter(|(line, _)| line.2 <= 1.0);
        let none = none.map(|(line, found)| Check::above(name(line), Some(gain(found)), 0.97));
        vec![
            Claim::new("costs are those of our analysis, which were not certified", OURS, known),
            Claim::new(
                "mixed noise gains over Poisson samples for 20 batches from eps 4 on",
                OURS,
                wins.collect(),
            ),
            Claim::new("it gains nothing that counts at eps 1", OURS, none.collect()),
            self.predicted(prices, outcomes),
        ]
    }

    /// Of two ways whose costs are apart, the cheaper one is the better one.
    fn predicted(&self, prices: &[[f64; 5]], outcomes: &Outcomes) -> Claim {
        let cells = self.cells();
        let mut checks = vec![];
        for (line, found) in self.lines.iter().zip(prices) {
            let of = |way: &Way| {
                let cell = cells.iter().find(|c| c.way == *way && c.epsilon == line.2)?;
                outcomes.mean(cell)
            };
            let ways = ways(line.0, line.1);
            for (a, cheap) in ways.iter().enumerate() {
                for (b, dear) in ways.iter().enumerate() {
                    let Some((better, worse)) = of(cheap).zip(of(dear)) else { continue };
                    if found[b] > 1.15 * found[a] {
                        let what = format!("eps {}: {} over {}", line.2, cheap.name(), dear.name());
                        checks.push(Check::above(what, Some(better - worse), -0.01));
                    }
                }
            }
        }
        Claim::new(
            "on the synthetic task a way that costs 15 % less is never worse: the cost predicts which is better",
            "docs/networks.md",
            checks,
        )
    }

    pub(super) fn picture(&self, prices: &[[f64; 5]]) -> (String, String, String) {
        let point = |x: f64, y: f64| Point { x, y, low: y, high: y };
        let mut grids: Vec<(u64, u64)> = self.lines.iter().map(|l| (l.0, l.1)).collect();
        grids.dedup();
        let mut series = vec![];
        for (batches, passes) in grids {
            let lines =
                || self.lines.iter().zip(prices).filter(|(l, _)| (l.0, l.1) == (batches, passes));
            for (k, lambda) in LAMBDAS.iter().enumerate().skip(1) {
                let points =
                    lines().map(|(line, found)| point(line.2, found[k + 1] / found[0])).collect();
                let name = format!("{lambda}, {batches} x {passes}");
                series.push(Series { name, points, reference: false });
            }
        }
        let ends = [1.0, 8.0].map(|x| point(x, 1.0)).to_vec();
        series.push(Series { name: "Poisson, lambda 0".into(), points: ends, reference: true });
        let title = "cost of mixed noise on bins, over Poisson samples".to_string();
        let y = Axis { log: false, ..Axis::log("cost over Poisson") };
        let chart = Chart { title: title.clone(), x: Axis::log("epsilon"), y, series };
        ("cost.svg".into(), title, chart.svg())
    }
}

/// The best λ above 0, over Poisson.
fn gain(found: &[f64; 5]) -> f64 {
    found[2..].iter().copied().fold(f64::INFINITY, f64::min) / found[0]
}

fn ways(batches: u64, passes: u64) -> [Way; 5] {
    let bins = LAMBDAS.map(|lambda| Way::Bins { lambda, batches, passes });
    [Way::Poisson { batches, passes }, bins[0], bins[1], bins[2], bins[3]]
}

/// κ√V/T: it does not hang on the network.
fn cost(way: Way, epsilon: f64) -> Result<f64, Failure> {
    let kan = Kan::new(NetworkShape::new(vec![Input::Spline], NetworkLoss::Logistic));
    let (kan, batches) = match way {
        Way::Bins { lambda, batches, passes } => {
            let noise = match lambda {
                0.0 => NetworkNoise::Independent,
                lambda => NetworkNoise::Mixed { correlation: Correlation::lambda(lambda)? },
            };
            let kan = kan.sampler(NetworkSampler::BallsAndBins).noise(noise);
            (kan.batches(batches).passes(passes), batches)
        }
        Way::Poisson { batches, passes } => {
            let kan = kan.sampler(NetworkSampler::Poisson).noise(NetworkNoise::Independent);
            (kan.batches(batches).passes(passes), batches)
        }
        Way::Default | Way::Logistic | Way::Twin => return Ok(f64::NAN),
    };
    let plan = quietly::Plan::kan(&kan, ROWS, Budget::new(epsilon, DELTA)?)?;
    Ok(plan.noise_over_signal().unwrap_or(f64::NAN) / batches as f64)
}

//! Comparisons of methods: the candidates, many fits in parallel, and a summary of their results.
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use quietly::{Budget, Error, Link, Method, Plan, Regression};
use serde_json::{Value, json};

use crate::format;

/// A method with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// Its name in tables and charts.
    pub name: String,
    /// The algorithm.
    pub method: Method,
    /// How many steps it takes; planned if none.
    pub steps: Option<u64>,
    /// The bound on the weights, for methods that need one.
    pub radius: Option<f64>,
}

impl Entrant {
    /// A method with its default parameters.
    pub fn new(method: Method) -> Entrant {
        Entrant { name: method.name().into(), method, steps: None, radius: None }
    }

    /// The fit without noise.
    pub fn plain() -> Entrant {
        Entrant { name: "least squares".into(), ..Entrant::new(Method::Exact) }
    }

    /// Whether it needs public rows with the same columns.
    pub fn needs_public_rows(&self) -> bool {
        self.method.wants_public_rows()
    }

    /// Whether it needs a bound on the weights.
    pub fn needs_radius(&self) -> bool {
        self.method == Method::DpPgd
    }

    /// Its plan for such a table.
    pub fn plan(&self, link: Link, rows: u64, width: usize, budget: Budget) -> Result<Plan, Error> {
        let mut regression = Regression::new(link).method(self.method);
        if let Some(steps) = self.steps {
            regression = regression.steps(steps);
        }
        if let Some(radius) = self.radius {
            regression = regression.radius(radius);
        }
        if self.needs_public_rows() {
            regression = regression.with_public_rows();
        }
        regression.plan(rows, width, budget)
    }

    /// The method of a plan, if it differs from the one that was asked for.
    pub fn stand_in(&self, plan: &Plan) -> Option<&'static str> {
        let same = plan.method() == self.method || self.method == Method::Auto;
        (!same).then(|| plan.method().name())
    }
}

/// Does all jobs on so many threads; results are in the order of the jobs. `told` is called with the
/// number of jobs that are done.
pub fn all<J: Sync, T: Send>(
    jobs: &[J],
    threads: usize,
    told: &(impl Fn(usize) + Sync),
    work: impl Fn(&J) -> T + Sync,
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<T>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    *results[at].lock().expect("written once") = Some(work(job));
                    told(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    results.into_iter().map(|r| r.into_inner().expect("written").expect("done")).collect()
}

/// The median of some results and their quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lower quartile.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
}

impl Spread {
    /// The summary of at least one value. NaN counts as the worst.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted: Vec<f64> =
            values.iter().map(|v| if v.is_nan() { f64::INFINITY } else { *v }).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (sorted.len().max(1) - 1) as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            let get = |i: usize| sorted.get(i).copied().unwrap_or(f64::INFINITY);
            let part = place - place.floor();
            if part == 0.0 { get(below) } else { get(below) * (1.0 - part) + get(above) * part }
        };
        Spread { median: at(0.5), low: at(0.25), high: at(0.75) }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let [median, low, high] = [self.median, self.low, self.high].map(format::json);
        json!({ "median": median, "lower_quartile": low, "upper_quartile": high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        for threads in [1, 3, 200] {
            let count = AtomicUsize::new(0);
            let told = |_| {
                count.fetch_add(1, Ordering::Relaxed);
            };
            let found = all(&jobs, threads, &told, |j| j * j);
            assert_eq!(found, jobs.iter().map(|j| j * j).collect::<Vec<_>>());
            assert_eq!(count.into_inner(), 100);
        }
        assert!(all(&[] as &[u8], 2, &|_| (), |j| *j).is_empty());
    }

    #[test]
    fn spreads_bear_wild_values() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!(spread, Spread { median: 3.0, low: 2.0, high: 4.0 });
        assert_eq!(Spread::of(&[1.0, 2.0]).median, 1.5);
        assert_eq!(Spread::of(&[f64::NAN, 1.0, f64::INFINITY]).median, f64::INFINITY);
        assert_eq!(Spread::of(&[]).median, f64::INFINITY);
    }

    #[test]
    fn a_plan_of_another_method_is_noticed() {
        let budget = Budget::new(1.0, 1e-5).unwrap();
        let entrant = Entrant::new(Method::OnePass);
        let plan = entrant.plan(Link::Linear, 100_000, 5, budget).unwrap();
        assert_eq!(entrant.stand_in(&plan), None);
        assert_eq!(Entrant::new(Method::DpSsgd).stand_in(&plan), Some("one-pass"));
        assert_eq!(Entrant::new(Method::Auto).stand_in(&plan), None);
    }
}

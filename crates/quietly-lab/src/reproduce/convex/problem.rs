//! The three problems of the paper, and the methods that are tried on them.
use quietly::{Budget, Convex, Error, Loss, Method, Neighbours, Plan, Set, Sparse};

/// What is minimised, over rows of 1-norm at most 1 and targets ±1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// (5): squares on the L1 ball.
    Linear,
    /// (6): logistic with a ridge on the L2 ball.
    Logistic,
    /// (7): fourth powers on the L1 ball.
    Fourth,
}

impl Problem {
    pub(super) const ALL: [Problem; 3] = [Problem::Linear, Problem::Logistic, Problem::Fourth];

    pub(super) fn name(self) -> &'static str {
        match self {
            Problem::Linear => "linear",
            Problem::Logistic => "logistic",
            Problem::Fourth => "fourth",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Problem::Linear => "linear regression, L1 ball",
            Problem::Logistic => "logistic regression with a ridge, L2 ball",
            Problem::Fourth => "L4 regression, L1 ball",
        }
    }

    pub(super) fn loss(self) -> Loss {
        match self {
            Problem::Linear => Loss::Squared,
            Problem::Logistic => Loss::Logistic,
            Problem::Fourth => Loss::Fourth,
        }
    }

    pub(super) fn set(self) -> Set {
        match self {
            Problem::Logistic => Set::L2 { radius: 1.0 },
            _ => Set::L1 { radius: 1.0 },
        }
    }

    pub(super) fn ridge(self) -> f64 {
        if self == Problem::Logistic { 1e-3 } else { 0.0 }
    }

    /// Whether a method is for this problem: some need strong convexity, and one corners.
    pub(super) fn suits(self, base: &str) -> bool {
        match self {
            Problem::Logistic => base != "frank-wolfe",
            _ => ![SC, "faster-dpsgd-sc"].contains(&base),
        }
    }

    /// L and β as the paper has them: of the whole loss, ridge included.
    pub(super) fn published_constants(self) -> (f64, f64) {
        match self {
            Problem::Linear => (4.0, 2.0),
            Problem::Logistic => (1.001, 0.251),
            Problem::Fourth => (32.0, 48.0),
        }
    }

    /// How the objective is said to grow around its minimum: proven for the ridge (λ/2), a guess for the others.
    pub(super) fn growth(self) -> (f64, f64) {
        match self {
            Problem::Linear => (2.0, 0.05),
            Problem::Logistic => (2.0, 5e-4),
            Problem::Fourth => (4.0, 0.05),
        }
    }

    /// The mean loss of these weights over rows, with the ridge.
    pub(super) fn risk(self, weights: &[f64], rows: &Sparse) -> f64 {
        let loss = self.loss();
        let one = |i: usize| loss.value(score(weights, rows.row(i)), rows.target[i]);
        let sum: f64 = (0..rows.rows()).map(one).sum();
        let square: f64 = weights.iter().map(|w| w * w).sum();
        sum / rows.rows() as f64 + 0.5 * self.ridge() * square
    }
}

pub(super) fn score(weights: &[f64], (index, values): (&[u32], &[f64])) -> f64 {
    index.iter().zip(values).map(|(j, x)| weights[*j as usize] * x).sum()
}

/// How a method's noise comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The minimiser itself.
    Plain,
    /// A simulation with the paper's constants.
    Printed,
    /// A plan of this library for the rows' public norm, 1.
    Known,
    /// The same after a private bound on the rows' norm.
    Found,
    /// The same with one of many settings, of which the test rows choose: no release.
    Tuned,
}

/// What one tunes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    /// Or passes.
    pub(super) steps: u64,
    pub(super) step_size: f64,
    pub(super) clip: Option<f64>,
}

/// A row of the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entrant {
    pub(super) kind: Kind,
    /// Without its kind.
    pub(super) base: &'static str,
    pub(super) method: Method,
    /// θ̄ of Iterated Phased-SGD.
    theta: Option<f64>,
    /// None for the defaults.
    pub(super) setting: Option<Setting>,
}

pub(super) const PHASED: &str = "phased-sgd";
pub(super) const PSA: &str = "psa";
pub(super) const SC: &str = "phased-sgd-sc";
pub(super) const ITERATED: [&str; 2] = ["iterated-1.5", "iterated-2"];
pub(super) const ERM: &str = "phased-erm";
pub(super) const AMP: &str = "amp";

/// The paper's methods that are simulated as printed, and planned with and without a private bound on rows.
pub(super) const THREEFOLD: [&str; 5] = [PHASED, PSA, SC, ITERATED[0], ITERATED[1]];

/// All that localise: phases of rows, each around the point that the last one left.
pub(super) const LOCAL: [&str; 8] =
    [PHASED, PSA, SC, ITERATED[0], ITERATED[1], "psa-ii", "faster-dpsgd-sc", ERM];

const PLANNED: [&str; 14] = [
    PHASED,
    PSA,
    SC,
    ITERATED[0],
    ITERATED[1],
    "psa-ii",
    "faster-dpsgd-sc",
    ERM,
    "dp-sgd",
    "dp-gd",
    "sc-psgd",
    "gd-op",
    "frank-wolfe",
    AMP,
];

impl Entrant {
    pub(super) fn new(kind: Kind, base: &'static str) -> Option<Entrant> {
        let theta = [1.5, 2.0][usize::from(base == ITERATED[1])];
        let iterated = ITERATED.contains(&base);
        let name = if iterated { "iterated-phased-sgd" } else { base };
        let method = Method::named(name)?;
        Some(Entrant { kind, base, method, theta: iterated.then_some(theta), setting: None })
    }

    pub(super) fn set(self, setting: Setting) -> Entrant {
        Entrant { setting: Some(setting), ..self }
    }

    pub(super) fn plain() -> Entrant {
        let (kind, method) = (Kind::Plain, Method::Exact);
        Entrant { kind, base: "no noise", method, theta: None, setting: None }
    }

    /// All that take part in a problem.
    pub(super) fn all(problem: Problem) -> Vec<Entrant> {
        let mut all = vec![Entrant::plain()];
        let fits = |base: &&&str| problem.suits(base);
        for kind in [Kind::Printed, Kind::Known] {
            all.extend(THREEFOLD.iter().filter(fits).filter_map(|base| Entrant::new(kind, base)));
        }
        all.extend(PLANNED.iter().filter(fits).filter_map(|base| Entrant::new(Kind::Found, base)));
        all
    }

    pub(super) fn name(&self) -> String {
        match self.kind {
            Kind::Plain | Kind::Found => self.base.into(),
            Kind::Printed => format!("{} as printed", self.base),
            Kind::Known => format!("{}, known radius", self.base),
            Kind::Tuned => format!("{}, oracle-tuned", self.base),
        }
    }

    /// The plan, for those that have one.
    pub(super) fn plan(
        &self,
        problem: Problem,
        rows: usize,
        width: usize,
        epsilon: f64,
    ) -> Option<Result<Plan, Error>> {
        if self.kind == Kind::Printed {
            return None;
        }
        let (theta, rate) = problem.growth();
        let mut convex = Convex::new(problem.loss())
            .method(self.method)
            .within(problem.set())
            .ridge(problem.ridge())
            .constant(0.0)
            .rows_within_l1(1.0);
        // A growth also makes Phased-SGD-SC follow a falling distance, which the paper does not print.
        if self.base == "psa-ii" {
            convex = convex.growing(theta, rate);
        }
        if let Some(theta) = self.theta {
            convex = convex.growing(theta, 1.0);
        }
        if let Some(Setting { steps, step_size, clip }) = self.setting {
            convex = convex.steps(steps).step_size(step_size);
            convex = clip.into_iter().fold(convex, Convex::clip);
        }
        if self.kind == Kind::Known {
            convex = convex.known_radius();
        }
        let budget = Budget::new(epsilon, delta(rows));
        Some(
            budget
                .map_err(Into::into)
                .and_then(|b| convex.plan(rows as u64, width, b.under(Neighbours::ReplaceOne))),
        )
    }
}

/// δ = n^-1.1.
pub(super) fn delta(rows: usize) -> f64 {
    (rows as f64).powf(-1.1)
}

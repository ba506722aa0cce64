//! Tables and arithmetic that several tests share. Nothing here is taken from the library.

use quietly::{
    Budget, Charge, FitInput, FitOptions, Key, Link, Method, Neighbours, Plan, Private, Regression,
    Table,
};

/// SplitMix64: Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let r = (-2.0 * self.uniform().ln()).sqrt();
        r * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Rows in plain sight.
#[derive(Clone)]
pub(crate) struct Plain {
    pub(crate) width: usize,
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
}

impl Plain {
    pub(crate) fn private(&self) -> Private<Table> {
        Private::new(Table::new(self.width, self.x.clone(), self.y.clone()))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.x.chunks_exact(self.width).zip(self.y.iter().copied())
    }

    /// The mean of (f(u) - y)².
    pub(crate) fn squared_error(&self, link: Link, (intercept, w): &(f64, Vec<f64>)) -> f64 {
        let error = |(x, y): (&[f64], f64)| (link.apply(dot(x, w) + intercept) - y).powi(2);
        self.rows().map(error).sum::<f64>() / self.y.len() as f64
    }

    pub(crate) fn variance(&self) -> f64 {
        let n = self.y.len() as f64;
        let mean = self.y.iter().sum::<f64>() / n;
        self.y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n
    }

    pub(crate) fn shuffled(&self, seed: u64) -> Plain {
        let mut random = Random(seed);
        let mut order: Vec<usize> = (0..self.y.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (random.word() % (i as u64 + 1)) as usize);
        }
        let x = order.iter().flat_map(|&i| &self.x[i * self.width..][..self.width]).copied();
        Plain { width: self.width, x: x.collect(), y: order.iter().map(|&i| self.y[i]).collect() }
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// x ~ N(0, I/9), held to [-1, 1]; y = f(⟨x, w⟩ + 0.3) + noise, with w of norm 3 (so that ⟨x, w⟩ has variance one).
pub(crate) fn gaussian(n: usize, width: usize, noise: f64, link: Link, seed: u64) -> Plain {
    let mut random = Random(seed);
    let w: Vec<f64> = (0..width).map(|_| random.normal()).collect();
    let norm = dot(&w, &w).sqrt() / 3.0;
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let x: Vec<f64> = (0..width).map(|_| (random.normal() / 3.0).clamp(-1.0, 1.0)).collect();
        ys.push(link.apply(dot(&x, &w) / norm + 0.3) + noise * random.normal());
        xs.extend(x);
    }
    Plain { width, x: xs, y: ys }
}

pub(crate) fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-6).unwrap()
}

pub(crate) fn plan(link: Link, method: Method, rows: u64, width: usize, budget: Budget) -> Plan {
    Regression::new(link).method(method).plan(rows, width, budget).unwrap()
}

pub(crate) fn run(
    plan: &Plan,
    table: &Plain,
    range: (f64, f64),
    seed: u64,
    threads: usize,
) -> (f64, Vec<f64>) {
    let rows = table.private();
    let fit = plan.fit(FitInput::table(&rows, range), options(seed, threads));
    fit.unwrap().coefficients().unwrap()
}

pub(crate) fn options<'a>(seed: u64, threads: usize) -> FitOptions<'a> {
    FitOptions::new(Charge::without_ledger(Key::from_seed(seed))).threads(threads)
}

pub(crate) fn bits((intercept, weights): &(f64, Vec<f64>)) -> Vec<u64> {
    weights.iter().chain([intercept]).map(|w| w.to_bits()).collect()
}

pub(crate) fn is_finite((intercept, weights): &(f64, Vec<f64>)) -> bool {
    weights.iter().chain([intercept]).all(|w| w.is_finite())
}

pub(crate) const RELATIONS: [Neighbours; 2] = [Neighbours::AddRemove, Neighbours::ReplaceOne];
pub(crate) const METHODS: [Method; 2] = [Method::FullBatch, Method::OnePass];
pub(crate) const LINKS: [Link; 2] = [Link::Linear, Link::Relu];

/// Two JSON texts with the same fields and, to fifteen digits, the same numbers: serde_json reads the last digit wrongly at
/// times unless it is built with `float_roundtrip`.
pub(crate) fn alike(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (a, b) {
        (Number(a), Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 4e-16 * a.abs()
        }
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Object(a), Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| alike(v, w)))
        }
        _ => a == b,
    }
}

/// A value, as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

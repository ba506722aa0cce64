//! Different mechanisms together, by quadrature; and the laws of repetition, order and
//! disjointness.
mod common;
use common::*;
use quietly_accounting::{Event, epsilon};

/// One of two steps: S = (Y + Y')/2, under the law with the record (`removed`) or without.
struct Pass {
    sigma: f64,
    removed: bool,
}

impl Release for Pass {
    fn delta(&self, _: f64) -> f64 {
        unreachable!("never the last")
    }

    fn nodes(&self, count: usize) -> Vec<(f64, f64)> {
        let s2 = self.sigma * self.sigma;
        let ratio = |z: f64| (z / self.sigma - 0.5 / s2).exp();
        let mut all = vec![];
        for (a, v) in normal_nodes(count) {
            for (b, w) in normal_nodes(count) {
                let s = 0.5 * (ratio(a) + ratio(b));
                all.push(if self.removed { (v * w * s, s.ln()) } else { (v * w, -s.ln()) });
            }
        }
        all
    }
}

/// An allocation, a Poisson sample, a selection of two, and Gaussian noise on everything.
#[test]
fn different_mechanisms_cost_together_what_quadrature_says() {
    let (gaussian, rate, poisson, pass, scale) = (3.0, 0.3, 1.5, 2.0, 2.0);
    let run = Event::laplace(scale)
        .unwrap()
        .then(Event::random_allocation(2, 1, pass).unwrap())
        .then(Event::poisson(rate, poisson).unwrap())
        .then(Event::gaussian(gaussian).unwrap());
    for eps in [0.5, 1.5, 3.0] {
        let truth = |removed: bool| {
            let sampled = if removed {
                Normals::removed(rate, poisson)
            } else {
                Normals::added(rate, poisson)
            };
            let last = Normals::gaussian(gaussian);
            composed(&[&Coarse, &Pass { sigma: pass, removed }, &sampled, &last], eps, 31)
        };
        let answer = asked(&run, AddRemove, eps);
        holds(&format!("{eps}"), answer, truth(true).max(truth(false)), 1e-4);
        assert!(answer.relative_width() < 0.06, "{answer:?}");
    }
}

/// Laplace noise of scale 2 by ten-point midpoints: what follows is smooth, so few do.
struct Coarse;

impl Release for Coarse {
    fn delta(&self, _: f64) -> f64 {
        unreachable!("never the last")
    }

    fn nodes(&self, _: usize) -> Vec<(f64, f64)> {
        let mut nodes = vec![(0.5, 0.5), (0.5 * (-0.5_f64).exp(), -0.5)];
        for i in 0..10 {
            let loss = -0.5 + (i as f64 + 0.5) * 0.1;
            nodes.push((0.025 * (0.5 * (loss - 0.5)).exp(), loss));
        }
        nodes
    }
}

#[test]
fn gaussian_and_poisson_cost_together_what_quadrature_says() {
    for (gaussian, rate, noise) in [(1.0, 0.2, 0.8), (5.0, 0.5, 1.0), (2.0, 0.05, 0.5)] {
        let run = Event::gaussian(gaussian).unwrap().then(Event::poisson(rate, noise).unwrap());
        for eps in [0.2, 1.0, 4.0] {
            let last = Normals::gaussian(gaussian);
            let truth = |one: Normals| composed(&[&one, &last], eps, 2001);
            let both = truth(Normals::removed(rate, noise)).max(truth(Normals::added(rate, noise)));
            holds(&format!("{gaussian} {rate} {eps}"), asked(&run, AddRemove, eps), both, 1e-6);
            // Twice the gap for what is not sampled.
            let last = Normals::gaussian(0.5 * gaussian);
            let both = composed(&[&Normals::replaced(rate, noise), &last], eps, 2001);
            holds(
                &format!("replaced {gaussian} {rate} {eps}"),
                asked(&run, ReplaceOne, eps),
                both,
                1e-6,
            );
        }
    }
}

fn parts() -> Vec<Event> {
    vec![
        Event::gaussian(4.0).unwrap(),
        Event::laplace(5.0).unwrap(),
        Event::poisson(0.1, 1.0).unwrap().repeat(10).unwrap(),
        Event::exponential(0.2).unwrap(),
        Event::fixed_size(1000, 10, 2.0).unwrap().repeat(3).unwrap(),
    ]
}

/// Two intervals for one number must meet.
fn agree(what: &str, a: &Event, b: &Event) {
    for relation in [AddRemove, ReplaceOne] {
        let (a, b) = (epsilon(a, relation, 1e-5).unwrap(), epsilon(b, relation, 1e-5).unwrap());
        assert!(a.lower <= b.upper && b.lower <= a.upper, "{what} {a:?} {b:?}");
        assert!((a.upper / b.upper - 1.0).abs() < 0.01, "{what} {a:?} {b:?}");
    }
}

#[test]
fn order_and_grouping_do_not_matter() {
    let forth = parts().into_iter().reduce(Event::then).unwrap();
    let back = parts().into_iter().rev().reduce(Event::then).unwrap();
    agree("order", &forth, &back);
    let [a, b] = [Event::poisson(0.05, 1.0).unwrap(), Event::laplace(3.0).unwrap()];
    let inner = a.clone().then(b.clone()).repeat(6).unwrap();
    let outer = a.clone().repeat(6).unwrap().then(b.repeat(6).unwrap());
    agree("grouping", &inner, &outer);
    agree(
        "product",
        &a.clone().repeat(7).unwrap().repeat(11).unwrap(),
        &a.clone().repeat(77).unwrap(),
    );
    let summed = a.clone().repeat(30).unwrap().then(a.clone().repeat(47).unwrap());
    agree("sum", &summed, &a.clone().repeat(77).unwrap());
    // And a real difference is seen.
    let more = epsilon(&a.clone().repeat(85).unwrap(), AddRemove, 1e-5).unwrap();
    assert!(more.lower > epsilon(&a.repeat(77).unwrap(), AddRemove, 1e-5).unwrap().upper);
}

#[test]
fn disjoint_events_cost_as_much_as_the_largest() {
    for relation in [AddRemove, ReplaceOne] {
        let each: Vec<_> = parts().iter().map(|e| epsilon(e, relation, 1e-5).unwrap()).collect();
        let all = epsilon(&Event::disjoint(parts()).unwrap(), relation, 1e-5).unwrap();
        assert_eq!(all.upper, each.iter().map(|a| a.upper).fold(0.0, f64::max));
        assert_eq!(all.lower, each.iter().map(|a| a.lower).fold(0.0, f64::max));
        // On top of something common, a record pays for that and for its own.
        let common = Event::gaussian(3.0).unwrap();
        let both = epsilon(&common.clone().then(Event::disjoint(parts()).unwrap()), relation, 1e-5)
            .unwrap();
        let own: Vec<_> = parts()
            .into_iter()
            .map(|e| epsilon(&common.clone().then(e), relation, 1e-5).unwrap().upper)
            .collect();
        assert_eq!(both.upper, own.into_iter().fold(0.0, f64::max));
    }
}

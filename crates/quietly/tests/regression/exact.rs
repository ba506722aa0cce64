//! ε = ∞ is least squares.
use quietly::{Budget, Link, Method};

use crate::common::{Plain, Random, bits, dot, gaussian, plan, run};

fn fitted(table: &Plain, link: Link, threads: usize) -> (f64, Vec<f64>) {
    let none = Budget::new(f64::INFINITY, 1e-6).unwrap();
    let plan = plan(link, Method::Auto, (table.y.len() as u64).max(1), table.width, none);
    assert_eq!((plan.method(), plan.epsilon()), (Method::Exact, f64::INFINITY));
    run(&plan, table, (-1.0, 1.0), 1, threads)
}

/// Least squares by Householder's QR on the raw columns and a constant: the intercept and the weights.
fn householder(table: &Plain) -> (f64, Vec<f64>) {
    let (n, d) = (table.y.len(), table.width + 1);
    let mut columns: Vec<Vec<f64>> = (0..table.width)
        .map(|j| (0..n).map(|i| table.x[i * table.width + j]).collect())
        .chain([vec![1.0; n]])
        .collect();
    let mut b = table.y.clone();
    for k in 0..d {
        let norm = dot(&columns[k][k..], &columns[k][k..]).sqrt();
        let mut v = columns[k][k..].to_vec();
        v[0] += norm.copysign(v[0]);
        let square = dot(&v, &v);
        let reflect = |x: &mut [f64]| {
            let twice = 2.0 * dot(&v, x) / square;
            x.iter_mut().zip(&v).for_each(|(x, v)| *x -= twice * v);
        };
        columns.iter_mut().skip(k).for_each(|c| reflect(&mut c[k..]));
        reflect(&mut b[k..]);
    }
    let mut w = vec![0.0; d];
    for k in (0..d).rev() {
        let rest: f64 = (k + 1..d).map(|j| columns[j][k] * w[j]).sum();
        w[k] = (b[k] - rest) / columns[k][k];
    }
    (w.pop().unwrap(), w)
}

/// The largest distance between predictions, over the largest prediction.
fn apart(table: &Plain, a: &(f64, Vec<f64>), b: &(f64, Vec<f64>), wide: &Plain) -> f64 {
    let (mut worst, mut most) = (0.0_f64, 0.0_f64);
    for ((x, _), (z, _)) in table.rows().zip(wide.rows()) {
        let (p, q) = (dot(x, &a.1) + a.0, dot(z, &b.1) + b.0);
        worst = worst.max((p - q).abs());
        most = most.max(p.abs());
    }
    worst / most
}

#[test]
fn without_privacy_a_linear_model_is_least_squares_to_rounding() {
    for (n, width, seed) in [(5, 2, 1), (40, 3, 2), (3000, 12, 3), (9000, 30, 4)] {
        let mut table = gaussian(n, width, 0.7, Link::Linear, seed);
        // Columns far from the middle and of very different sizes.
        for row in table.x.chunks_exact_mut(width) {
            row[0] = 0.9 + 0.01 * row[0];
            row[1] *= 1e-4;
        }
        let (ours, theirs) = (fitted(&table, Link::Linear, 2), householder(&table));
        let off = apart(&table, &theirs, &ours, &table);
        assert!(off < 1e-9, "{n} {width}: {off}");
        // The control: a weight that is wrong by one part in ten million is seen.
        let mut wrong = theirs.clone();
        wrong.1.iter_mut().for_each(|w| *w *= 1.0 + 1e-7);
        assert!(apart(&table, &theirs, &wrong, &table) > 1e-9);
    }
}

#[test]
fn repeated_and_constant_columns_change_no_prediction() {
    let narrow = gaussian(2000, 4, 0.5, Link::Linear, 5);
    let x = narrow.x.chunks_exact(4).flat_map(|r| [r[0], r[1], r[1], 0.25, r[2], -r[0], r[3], 0.0]);
    let wide = Plain { width: 8, x: x.collect(), y: narrow.y.clone() };
    let (one, other) = (householder(&narrow), fitted(&wide, Link::Linear, 3));
    let off = apart(&narrow, &one, &other, &wide);
    assert!(off < 1e-9, "{off}");
}

/// Targets that all lie on the active side once made GLMtron swing between 0 and twice the answer for ever.
#[test]
fn a_relu_model_of_positive_targets_is_the_linear_one() {
    let x: Vec<f64> = (0..64).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let table = Plain { width: 1, x, y: vec![8.0; 64] };
    let (intercept, weights) = fitted(&table, Link::Relu, 1);
    assert!((intercept - 8.0).abs() < 1e-9 && weights[0].abs() < 1e-9, "{intercept} {weights:?}");

    let mut table = gaussian(500, 3, 0.2, Link::Linear, 6);
    table.y.iter_mut().for_each(|y| *y += 20.0);
    let off = apart(&table, &householder(&table), &fitted(&table, Link::Relu, 1), &table);
    assert!(off < 1e-9, "{off}");
}

/// GLMtron by gradient steps with a step that is surely short enough.
fn glmtron(table: &Plain) -> (f64, Vec<f64>) {
    let n = table.y.len() as f64;
    let most = table.rows().map(|(x, _)| dot(x, x) + 1.0).fold(0.0, f64::max);
    let (mut intercept, mut w) = (0.0, vec![0.0; table.width]);
    for _ in 0..3000 {
        let mut gradient = vec![0.0; table.width + 1];
        for (x, y) in table.rows() {
            let c = y - (dot(x, &w) + intercept).max(0.0);
            gradient.iter_mut().zip(x.iter().chain([&1.0])).for_each(|(g, x)| *g += c * x);
        }
        let step = |g: f64| g / n / most.min(2.0);
        w.iter_mut().zip(&gradient).for_each(|(w, g)| *w += step(*g));
        intercept += step(gradient[table.width]);
    }
    (intercept, w)
}

/// Where a row with a negative target has u = 0 exactly, the loss has a kink that a minimum can lie in: there the gradient is
/// zero but for what those rows could add. And no step to anywhere near helps.
#[test]
fn without_privacy_a_relu_model_is_stationary_and_no_worse_than_glmtron() {
    let (mut smooth, mut kinks) = (0, 0);
    for (n, width, noise, seed) in
        [(300, 2, 0.1, 7), (2000, 5, 0.5, 8), (1000, 3, 2.0, 9), (5000, 4, 0.05, 10)]
    {
        let table = gaussian(n, width, noise, Link::Relu, seed);
        let model = fitted(&table, Link::Relu, 2);
        let mut gradient = vec![0.0; width + 1];
        let (mut size, mut slack) = (0.0, 0.0);
        for (x, y) in table.rows() {
            let u = dot(x, &model.1) + model.0;
            if u.abs() < 1e-5 && y < 0.0 {
                slack += y.abs();
            } else if u > 0.0 {
                gradient
                    .iter_mut()
                    .zip(x.iter().chain([&1.0]))
                    .for_each(|(g, x)| *g += (y - u) * x);
                size += (y - u).abs();
            }
        }
        let worst = gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        println!("{n} {width} {noise}: {worst:e} of {size}, slack {slack}");
        assert!(worst < 1e-9 * size + slack, "{n}: {worst} of {size}, {slack}");
        if slack == 0.0 {
            smooth += 1
        } else {
            kinks += 1
        }

        let ours = table.squared_error(Link::Relu, &model);
        let start = glmtron(&table);
        let theirs = table.squared_error(Link::Relu, &start);
        assert!(ours <= theirs * (1.0 + 1e-12), "{ours} {theirs}");
        let mut random = Random(seed);
        let mut best = ours;
        for k in 0..2000 {
            let by = 10.0_f64.powi(-1 - k % 6);
            let near = (
                model.0 + by * random.normal(),
                model.1.iter().map(|w| w + by * random.normal()).collect(),
            );
            best = best.min(table.squared_error(Link::Relu, &near));
        }
        println!("  {ours} best near {best} glmtron {theirs}");
        assert!(best > ours * (1.0 - 1e-7), "{ours} {best}");
    }
    assert!(smooth > 0, "{smooth} {kinks}");
}

#[test]
fn without_privacy_the_bits_do_not_depend_on_threads() {
    for link in [Link::Linear, Link::Relu] {
        let table = gaussian(20_000, 5, 0.3, link, 10);
        let one = bits(&fitted(&table, link, 1));
        for threads in [2, 3, 64] {
            assert_eq!(bits(&fitted(&table, link, threads)), one, "{threads}");
        }
    }
}

#[test]
fn without_privacy_tables_that_say_nothing_give_numbers() {
    let mut random = Random(11);
    for link in [Link::Linear, Link::Relu] {
        for n in [0, 1, 2] {
            let x = (0..3 * n).map(|_| random.uniform()).collect();
            let table = Plain { width: 3, x, y: vec![-2.0; n] };
            let model = fitted(&table, link, 2);
            assert!(crate::common::is_finite(&model), "{model:?}");
        }
    }
}

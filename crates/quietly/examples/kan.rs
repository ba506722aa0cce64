#![allow(missing_docs)]
//! usage: kan FILE.csv classes eps m p clip steps c seeds [sampling] [lambda]
use quietly::{Budget, Key, Mixing, Private, Table, kan::*};
use std::{env, fs, ops::ControlFlow};

fn main() {
    let a: Vec<String> = env::args().collect();
    let f = |k: usize| a[k].parse::<f64>().unwrap();
    let (classes, eps, m, p, clip, steps, c, seeds) =
        (f(2) as usize, f(3), f(4) as usize, f(5) as usize, f(6), f(7) as u64, f(8), f(9) as u64);
    // rows of numbers in [-1,1], class last
    let text = fs::read_to_string(&a[1]).unwrap();
    let rows: Vec<Vec<f64>> =
        text.lines().map(|l| l.split(',').map(|x| x.parse().unwrap()).collect()).collect();
    let d = rows[0].len() - 1;
    let mut accs = vec![];
    for seed in 0..seeds {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let mut s = seed * 7919 + 13;
        let mut r = || {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            s >> 33
        };
        for i in (1..order.len()).rev() {
            order.swap(i, (r() % (i as u64 + 1)) as usize);
        }
        let cut = rows.len() * 3 / 4;
        let take = |o: &[usize]| {
            let mut x = vec![];
            let mut y = vec![];
            for &i in o {
                x.extend_from_slice(&rows[i][..d]);
                y.push(rows[i][d]);
            }
            (x, y)
        };
        let (x, y) = take(&order[..cut]);
        let (tx, ty) = take(&order[cut..]);
        let loss =
            if classes == 2 { NetworkLoss::Logistic } else { NetworkLoss::Softmax { classes } };
        let mut shape = NetworkShape::new(vec![Input::Spline; d], loss);
        shape.hidden = vec![m];
        shape.basis = p;
        if a.get(12).is_some() {
            shape.last = LastLayer::Trainable;
        }
        let budget = if eps > 0.0 {
            Budget::new(eps, 1e-5).unwrap()
        } else {
            Budget::new(f64::INFINITY, 1e-5).unwrap()
        };
        let mu = if eps > 0.0 { quietly_accounting::gaussian_mu(eps, 1e-5).unwrap() } else { 1.0 };
        let n = y.len() as f64;
        let mut kan = Kan::new(shape).clip(Clip::At(clip)).seed(seed + 1);
        let eta = if eps > 0.0 { c * n * mu / steps as f64 } else { c };
        kan = kan.step_size(eta);
        match a.get(10).map(|s| s.as_str()) {
            Some("poisson") => {
                kan = kan
                    .sampling(Sampling::Poisson)
                    .batches(8)
                    .passes(steps / 8)
                    .noise(NetworkNoise::Independent)
            }
            Some("bins") => {
                kan = kan
                    .sampling(Sampling::Bins)
                    .batches(8)
                    .passes(steps / 8)
                    .noise(NetworkNoise::Mixed { mixing: Mixing::lambda(f(11)).unwrap() })
            }
            _ => kan = kan.sampling(Sampling::Full).passes(steps).noise(NetworkNoise::Independent),
        }
        let plan = kan.plan(y.len() as u64, budget).unwrap();
        let table = Private::new(Table::new(d, x, y));
        let net = plan
            .train(&table, (0.0, 1.0), Key::from_seed(seed + 77), 1, &mut |_| {
                ControlFlow::Continue(())
            })
            .unwrap();
        let mut right = 0;
        for (x, y) in tx.chunks(d).zip(&ty) {
            let s = net.scores(x);
            let class = if s.len() == 1 {
                usize::from(s[0] > 0.0)
            } else {
                (0..s.len()).max_by(|a, b| s[*a].total_cmp(&s[*b])).unwrap()
            };
            right += usize::from(class as f64 == *y);
        }
        accs.push(right as f64 / ty.len() as f64);
    }
    let mean = accs.iter().sum::<f64>() / accs.len() as f64;
    let sd = (accs.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
        / (accs.len() as f64 - 1.0).max(1.0))
    .sqrt()
        / (accs.len() as f64).sqrt();
    println!(
        "{} eps {eps} m {m} p {p} clip {clip} T {steps} c {c}: {mean:.4} +- {sd:.4}",
        a[1].rsplit('/').next().unwrap()
    );
}

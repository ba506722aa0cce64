//! Gradients against differences, sums against sums of single rows.
use quietly_core::random::Random;

use super::{
    architecture::{Input, LastLayer, NetworkLoss, NetworkShape},
    clipped_gradient::Sensitivity,
    gradient::{Factors, chunk},
    network::Network,
    quantized_rows::QuantizedRows,
    reference::Reference,
};

/// Networks of every kind, small enough to look at every weight.
fn shapes() -> Vec<NetworkShape> {
    let losses = [
        NetworkLoss::Logistic,
        NetworkLoss::Softmax { classes: 3 },
        NetworkLoss::Huber { width: 0.4 },
    ];
    let mixed = vec![Input::Spline, Input::Plain, Input::Spline, Input::Plain, Input::Spline];
    let mut shapes = vec![];
    for loss in losses {
        for last in [LastLayer::Fixed, LastLayer::Trainable] {
            for hidden in [vec![5], vec![19], vec![5, 3]] {
                for (basis, degree) in [(8, 3), (5, 3), (4, 2), (9, 5)] {
                    let inputs = mixed.clone();
                    shapes.push(NetworkShape {
                        inputs,
                        hidden: hidden.clone(),
                        basis,
                        degree,
                        loss,
                        last,
                    });
                }
            }
        }
    }
    shapes
}

fn rows(shape: &NetworkShape, count: usize, seed: u64) -> QuantizedRows {
    let mut random = Random(seed);
    let features: Vec<f64> =
        (0..count * shape.inputs.len()).map(|_| 1.1 * random.number()).collect();
    let labels: Vec<f64> = (0..count)
        .map(|i| match shape.loss {
            NetworkLoss::Huber { .. } => random.number(),
            NetworkLoss::Softmax { classes } => (i % classes) as f64,
            NetworkLoss::Logistic => [-1.0, 1.0][i % 2],
        })
        .collect();
    QuantizedRows::new(shape, &features, &labels)
}

fn clipped(
    network: &Network,
    rows: &QuantizedRows,
    which: &[u32],
    clip: f64,
) -> (Vec<i64>, Sensitivity) {
    let mut out = vec![0; network.shape().weights()];
    let sensitivity = network.clipped_sum(rows, which, clip, 2, &mut out);
    (out, sensitivity)
}

fn plain(network: &Network, rows: &QuantizedRows, which: &[u32]) -> Vec<f64> {
    let mut out = vec![0.0; network.shape().weights()];
    network.plain_sum(rows, which, 2, &mut out);
    out
}

fn squared(q: &[i64]) -> i128 {
    q.iter().map(|q| i128::from(*q) * i128::from(*q)).sum()
}

#[test]
fn scores_are_those_of_the_dense_network() {
    for shape in shapes() {
        let network = Network::new(shape.clone(), 3).unwrap();
        let (rows, mut reference) = (rows(&shape, 40, 9), Reference::of(&network));
        let which: Vec<u32> = (0..40).collect();
        let scores = network.scores(&rows, &which, 2);
        let outputs = shape.loss.outputs();
        let error = |reference: &Reference| {
            let of = |i: u32| reference.scores(rows.row(i));
            let exact = which.iter().flat_map(|i| of(*i));
            assert_eq!(scores.len(), 40 * outputs);
            exact.zip(&scores).map(|(a, b)| (a - f64::from(*b)).abs()).fold(0.0, f64::max)
        };
        assert!(error(&reference) < 3e-6, "{shape:?}: {}", error(&reference));
        *reference.weight(7) += 1.0;
        assert!(error(&reference) > 1e-4, "{shape:?}");
    }
}

/// Single precision and the tanh that goes with it err by a few 1e-7 in every layer, which the
/// slopes of the layers above multiply.
#[test]
fn gradients_are_those_of_differences() {
    for shape in shapes() {
        let tolerance = if shape.hidden.len() == 1 { 1e-6 } else { 1e-5 };
        let network = Network::new(shape.clone(), 5).unwrap();
        let (rows, mut reference) = (rows(&shape, 3, 11), Reference::of(&network));
        for i in 0..3 {
            let gradient = plain(&network, &rows, &[i]);
            let mut largest = 0f64;
            for (k, slope) in gradient.iter().enumerate() {
                let difference = reference.slope(rows.row(i), k);
                assert!(
                    (slope - difference).abs() < tolerance,
                    "{shape:?} {k}: {slope} {difference}"
                );
                largest = largest.max(difference.abs());
            }
            assert!(largest > 1e-4, "a gradient of zeros proves nothing");
        }
    }
}

/// The factors of a row, multiplied out in double precision.
#[test]
fn the_norm_is_the_product_of_the_norms() {
    for shape in shapes().into_iter().filter(|shape| shape.degree == 3) {
        let network = Network::new(shape.clone(), 6).unwrap();
        let rows = rows(&shape, 5, 12);
        for i in 0..5 {
            let mut factors = Factors::<4>::new(&network);
            factors.first(&network, &chunk(&rows, &[i])[..1]);
            factors.forward(&network, 0);
            factors.backward(&network, rows.row(i).label);
            let gradient = plain(&network, &rows, &[i]);
            let first = Reference::of(&network).first(rows.row(i));
            let (mut entries, mut product) = (0.0, 0.0);
            for (l, layer) in shape.layers().into_iter().enumerate().filter(|(_, l)| l.trainable) {
                let delta: Vec<f64> =
                    factors.deltas[l].as_flattened().iter().map(|x| f64::from(*x)).collect();
                let mut features = if l == 0 { first.clone() } else { vec![0.0; layer.rows] };
                let splines = &factors.splines[l];
                for (input, b) in splines.values.iter().enumerate() {
                    let start = input * shape.basis + usize::from(splines.intervals[input]);
                    (0..4).for_each(|k| features[start + k] = f64::from(b[k]));
                }
                let d = layer.inputs as f64;
                for (k, b) in features.iter().enumerate() {
                    for (j, delta) in delta[..layer.outputs].iter().enumerate() {
                        let entry = delta * b / d.sqrt();
                        entries += entry * entry;
                        let found = gradient[layer.offset + k * layer.outputs + j];
                        assert!((found - entry).abs() < 1e-6 * (1.0 + entry.abs()));
                    }
                }
                let squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
                product += squares(&delta) * squares(&features) / d;
            }
            assert!((entries / product - 1.0).abs() < 1e-12, "{entries} {product}");
        }
    }
}

#[test]
fn a_loose_clip_leaves_gradients_alone_and_a_tight_one_clips() {
    for shape in shapes() {
        let network = Network::new(shape.clone(), 7).unwrap();
        let rows = rows(&shape, 30, 13);
        for i in 0..30 {
            let gradient = plain(&network, &rows, &[i]);
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            for clip in [2.0 * norm, norm / 3.0] {
                let (sum, of) = clipped(&network, &rows, &[i], clip);
                let held = (clip / norm).min(1.0);
                let worst = sum.iter().zip(&gradient).map(|(q, g)| *q as f64 * of.unit - held * g);
                let error = worst.map(|e| e * e).sum::<f64>().sqrt();
                assert!(error < 0.01 * clip, "{shape:?}: {error} of {norm}, clip {clip}");
                let length = (squared(&sum) as f64).sqrt();
                assert!(length <= of.bound && of.bound * of.unit <= clip * (1.0 + 1e-12));
                assert_eq!(length > 0.99 * of.bound, clip < norm, "{length} {}", of.bound);
            }
        }
    }
}

#[test]
fn a_sum_is_the_sum_of_its_rows_in_any_order_on_any_threads() {
    let mut shapes = shapes();
    shapes.retain(|shape| shape.basis == 8 || shape.basis == 9);
    for shape in shapes {
        let network = Network::new(shape.clone(), 8).unwrap();
        let rows = rows(&shape, 1300, 14);
        let mut total = vec![0i128; shape.weights()];
        for i in 0..rows.count() as u32 {
            let (one, _) = clipped(&network, &rows, &[i], 0.1);
            total.iter_mut().zip(one).for_each(|(total, q)| *total += i128::from(q));
        }
        assert!(total.iter().any(|q| *q != 0));
        let mut which: Vec<u32> = (0..rows.count() as u32).collect();
        for threads in [1, 2, 5] {
            let mut out = vec![0; shape.weights()];
            // Two parts of different sizes, added to the same sums.
            let (a, b) = which.split_at(37 * threads);
            network.clipped_sum(&rows, a, 0.1, threads, &mut out);
            network.clipped_sum(&rows, b, 0.1, threads, &mut out);
            assert!(out.iter().map(|q| i128::from(*q)).eq(total.iter().copied()));
            which.reverse();
            which.rotate_left(411);
        }
        // One row less is another sum.
        assert!(
            clipped(&network, &rows, &which[1..], 0.1).0.iter().map(|q| i128::from(*q)).ne(total)
        );
    }
}

#[test]
fn the_plain_sum_does_not_depend_on_threads() {
    for shape in shapes() {
        let network = Network::new(shape.clone(), 8).unwrap();
        let rows = rows(&shape, 200, 15);
        let which: Vec<u32> = (0..200).collect();
        let mut alone = vec![0.0; shape.weights()];
        network.plain_sum(&rows, &which, 1, &mut alone);
        assert_eq!(alone, plain(&network, &rows, &which));
        assert_ne!(alone, plain(&network, &rows, &which[1..]));
    }
}

/// Weights of any size, rows of any content: no row is longer than the bound.
#[test]
fn no_row_is_longer_than_the_bound() {
    let mut random = Random(21);
    let (mut checked, mut tight, mut zero) = (0, 0, 0);
    for shape in shapes() {
        let mut network = Network::new(shape.clone(), 9).unwrap();
        let start = network.weights();
        let odd = [f64::NAN, f64::INFINITY, -1e300, 1e300, 5e-324, 0.0, 1.0, -1.0, 0.3];
        let count = 40;
        let features: Vec<f64> = (0..count * shape.inputs.len())
            .map(
                |i| if i < 100 { random.number() } else { odd[random.word() as usize % odd.len()] },
            )
            .collect();
        let labels: Vec<f64> =
            (0..count).map(|i| if i == 7 { f64::NAN } else { (i % 2) as f64 }).collect();
        let rows = QuantizedRows::new(&shape, &features, &labels);
        for round in 0..6 {
            let weights: Vec<f64> = match round {
                0 => start.clone(),
                1 => start.iter().map(|w| w * 1e30).collect(),
                2 => start.iter().map(|w| w * 1e-42).collect(),
                3 => vec![1.0; start.len()],
                4 => start.iter().map(|_| random.size()).collect(),
                _ => start
                    .iter()
                    .enumerate()
                    .map(|(i, w)| if i % 97 == 5 { f64::NAN } else { *w })
                    .collect(),
            };
            network.set_weights(&weights);
            for clip in [1e-9, 1e-3, 0.3, 1e9] {
                for i in 0..count as u32 {
                    let (sum, of) = clipped(&network, &rows, &[i], clip);
                    let most = of.bound as i128 * of.bound as i128;
                    let length = squared(&sum);
                    assert!(length <= most, "{shape:?} {round} {clip}");
                    checked += 1;
                    tight += usize::from(length as f64 > 0.98 * most as f64);
                    zero += usize::from(length == 0);
                    assert!(i != 7 || length == 0, "a row without a label counts as nothing");
                }
            }
        }
    }
    assert!(tight > checked / 10 && zero > checked / 40, "{tight}, {zero} of {checked}");
}

/// One unit and one input: δ̂ is as large as a word can be, and partial sums as large as they get.
#[test]
fn no_number_of_rows_overflows() {
    let mut shape = NetworkShape::new(vec![Input::Plain; 2], NetworkLoss::Logistic);
    shape.hidden = vec![1];
    let network = Network::new(shape.clone(), 10).unwrap();
    let rows = QuantizedRows::new(&shape, &[1.0, 0.0], &[1.0]);
    let (one, of) = clipped(&network, &rows, &[0], 1e-9);
    assert!(one[0].abs() > 32_760 * 255 && one[0].abs() as f64 <= of.bound, "{one:?}");
    let (many, _) = clipped(&network, &rows, &vec![0; 5000], 1e-9);
    assert_eq!(many[0], 5000 * one[0]);
    assert_eq!((many[1], one[1]), (0, 0));
}

#[test]
fn no_gradient_is_longer_than_the_longest() {
    for shape in shapes() {
        let network = Network::new(shape.clone(), 11).unwrap();
        let Some(longest) = network.longest_gradient() else {
            assert!(shape.hidden.len() > 1);
            continue;
        };
        let rows = rows(&shape, 300, 16);
        let norm = |i| plain(&network, &rows, &[i]).iter().map(|g| g * g).sum::<f64>().sqrt();
        let most = (0..300).map(norm).fold(0.0, f64::max);
        // It is for the worst of all rows, but not for something else altogether.
        assert!(most <= longest && longest < 60.0 * most, "{shape:?}: {most} {longest}");
    }
}

/// The prototype's numbers: m = 32, p = 8, about 2.05 for two classes.
#[test]
fn the_longest_gradient_is_about_what_was_measured() {
    let shape = NetworkShape::new(vec![Input::Spline; 30], NetworkLoss::Logistic);
    let shape = NetworkShape { hidden: vec![32], basis: 8, ..shape };
    let network = Network::new(shape, 12).unwrap();
    let longest = network.longest_gradient().unwrap();
    assert!((1.5..2.6).contains(&longest), "{longest}");
}

#[test]
fn weights_come_back_and_seeds_differ() {
    for shape in shapes() {
        let mut network = Network::new(shape.clone(), 1).unwrap();
        let weights = network.weights();
        assert_eq!(weights.len(), shape.weights());
        assert_eq!(Network::new(shape.clone(), 1).unwrap().weights(), weights);
        assert_ne!(Network::new(shape.clone(), 2).unwrap().weights(), weights);
        let new: Vec<f64> = (0..weights.len()).map(|i| i as f64 / 8.0).collect();
        network.set_weights(&new);
        assert_eq!(network.weights(), new);
    }
    let mut wide = NetworkShape::new(vec![Input::Spline; 40], NetworkLoss::Logistic);
    wide.hidden = vec![64];
    let weights = Network::new(wide, 4).unwrap().weights();
    let (n, mean) = (weights.len() as f64, weights.iter().sum::<f64>());
    let square = weights.iter().map(|w| w * w).sum::<f64>();
    // Five standard deviations of a mean of n numbers, and of their squares.
    assert!((mean / n).abs() < 5.0 / n.sqrt() && (square / n - 1.0).abs() < 7.1 / n.sqrt());
}

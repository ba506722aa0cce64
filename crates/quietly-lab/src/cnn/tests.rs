//! The layers against finite differences, and gradients on the lattice.
use std::{fs, ops::ControlFlow, time::Instant};

use quietly::Private;
use quietly_core::{budget::Budget, lattice::Lattice, progress::Progress, random::Random};
use quietly_engine::error::Error;
use quietly_noise::Key;

use super::{
    conv::Conv,
    dataset::{Pasted, Picture, Pictures},
    gradient::{add, clipped},
    group_norm::{GroupNorm, tanh},
    network::{ConvNet, ConvShape, Each, Pass, Walk},
    resume::Notebook,
    training::{ImagePlan, ImageTraining},
};

fn numbers(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.number() as f32).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn norm(a: &[f32]) -> f64 {
    dot(a, a).sqrt()
}

const SMALL: ConvShape =
    ConvShape { side: 8, channels: 3, widths: [4, 8, 8], group: 4, classes: 3 };

/// A network whose last layer is not zero, and pictures for it.
fn some(seed: u64, count: usize) -> (ConvNet, Pictures) {
    let mut random = Random(seed);
    let mut network = ConvNet::new(SMALL, seed).unwrap();
    let mut weights = network.weights().to_vec();
    weights.iter_mut().for_each(|w| *w += 0.3 * random.number() as f32);
    network.set_weights(&weights);
    let values = numbers(&mut random, count * 8 * 8 * 3);
    let labels = (0..count as u32).map(|at| at % 3).collect();
    (network, Pictures::new(8, 3, values, labels))
}

/// A convolution is linear in its weights and in its picture, so that its gradients are adjoint to it: exact up to rounding,
/// for all strides, paddings and odd numbers of channels. The answer itself is held against four loops.
#[test]
fn convolutions_and_their_gradients_agree_with_plain_loops() {
    let mut random = Random(1);
    for (stride, padding, ins, outs, side) in
        [(1, 1, 3, 16, 8), (1, 0, 4, 5, 7), (2, 1, 5, 17, 9), (2, 0, 16, 32, 8), (3, 2, 1, 1, 6)]
    {
        let conv = Conv { side, channels: (ins, outs), stride, padding };
        let picture = numbers(&mut random, side * side * ins);
        let weights = numbers(&mut random, conv.weights());
        let mut padded = vec![0.0; conv.padded().pow(2) * ins];
        conv.pad(&picture, &mut padded);
        let mut answer = vec![0.0; conv.out().pow(2) * outs];
        conv.answer(&padded, &weights, &mut answer);
        for (at, found) in answer.iter().enumerate() {
            let (y, x, out) = (at / outs / conv.out(), at / outs % conv.out(), at % outs);
            let mut wanted = 0.0;
            for tap in 0..9 * ins {
                let (ky, kx, c) = (tap / 3 / ins, tap / ins % 3, tap % ins);
                let (py, px) = (y * stride + ky, x * stride + kx);
                let inside = |p: usize| (padding..side + padding).contains(&p);
                if inside(py) && inside(px) {
                    let pixel = (py - padding) * side + px - padding;
                    wanted += picture[pixel * ins + c] * weights[tap * outs + out];
                }
            }
            assert!((found - wanted).abs() < 1e-4, "{conv:?} {at}: {found} {wanted}");
        }
        let by_answer = numbers(&mut random, answer.len());
        let mut by_weights = vec![7.0; weights.len()];
        conv.by_weights(&padded, &by_answer, &mut by_weights);
        let (mut turned, mut by_picture) = (vec![0.0; weights.len()], vec![7.0; picture.len()]);
        conv.turned(&weights, &mut turned);
        conv.by_picture(&turned, &by_answer, &mut padded.clone(), &mut by_picture);
        let value = dot(&answer, &by_answer);
        assert!((dot(&by_weights, &weights) - value).abs() < 1e-3, "{conv:?}");
        assert!((dot(&by_picture, &picture) - value).abs() < 1e-3, "{conv:?}");
        // Along single directions too, by differences of the linear answer.
        for _ in 0..20 {
            let k = (random.number().abs() * weights.len() as f64) as usize % weights.len();
            let mut one = vec![0.0; weights.len()];
            one[k] = 1.0;
            conv.answer(&padded, &one, &mut answer);
            assert!((dot(&answer, &by_answer) - f64::from(by_weights[k])).abs() < 1e-4, "{k}");
            let k = k % picture.len();
            let (mut one, mut around) = (vec![0.0; picture.len()], vec![0.0; padded.len()]);
            one[k] = 1.0;
            conv.pad(&one, &mut around);
            conv.answer(&around, &weights, &mut answer);
            assert!((dot(&answer, &by_answer) - f64::from(by_picture[k])).abs() < 1e-4, "{k}");
        }
    }
}

/// The norm of a convolution's gradient is also that of two Gram matrices: Σ_pp' (UUᵀ)_pp' (GGᵀ)_pp'
/// (docs/spec/networks.md#4.10).
#[test]
fn norms_are_those_of_gram_matrices() {
    let mut random = Random(4);
    for (stride, padding) in [(1, 1), (2, 0)] {
        let conv = Conv { side: 6, channels: (3, 5), stride, padding };
        let mut padded = vec![0.0; conv.padded().pow(2) * 3];
        conv.pad(&numbers(&mut random, 6 * 6 * 3), &mut padded);
        let pixels = conv.out().pow(2);
        let by_answer = numbers(&mut random, pixels * 5);
        let mut direct = vec![0.0; conv.weights()];
        conv.by_weights(&padded, &by_answer, &mut direct);
        let seen = |p: usize| -> Vec<f32> {
            let (y, x) = (p / conv.out() * stride, p % conv.out() * stride);
            let line = |ky: usize| &padded[((y + ky) * conv.padded() + x) * 3..][..9];
            [line(0), line(1), line(2)].concat()
        };
        let mut gram = 0.0;
        for p in 0..pixels {
            for q in 0..pixels {
                let along = dot(&by_answer[p * 5..][..5], &by_answer[q * 5..][..5]);
                gram += dot(&seen(p), &seen(q)) * along;
            }
        }
        assert!((gram.sqrt() / norm(&direct) - 1.0).abs() < 1e-5, "{gram}");
    }
}

/// Finite differences in double precision of the same formula, scale and shift included.
#[test]
fn group_norms_have_their_gradients() {
    let mut random = Random(2);
    let (group, pixels) = (GroupNorm { channels: 6, group: 3 }, 16);
    let values = numbers(&mut random, pixels * 6);
    let (scale, shift) = (numbers(&mut random, 6), numbers(&mut random, 6));
    let by_out = numbers(&mut random, pixels * 6);
    let value = |values: &[f64], scale: &[f64], shift: &[f64]| -> f64 {
        let mut total = 0.0;
        for first in [0, 3] {
            let of = |at: usize| (first..first + 3).contains(&(at % 6));
            let inside: Vec<f64> =
                values.iter().enumerate().filter(|(at, _)| of(*at)).map(|(_, v)| *v).collect();
            let square = inside.iter().map(|v| v * v).sum::<f64>() / 48.0;
            for at in (0..96).filter(|at| of(*at)) {
                let normal = values[at] / (square + f64::from(1e-5_f32)).sqrt();
                total += f64::from(by_out[at]) * (normal * scale[at % 6] + shift[at % 6]);
            }
        }
        total
    };
    let (mut normal, mut inverse) = (values.clone(), vec![0.0; 6]);
    group.normalise(&mut normal, &mut inverse);
    let mut by_values = by_out.clone();
    let (mut by_scale, mut by_shift) = (vec![0.0; 6], vec![0.0; 6]);
    group.back((&normal, &inverse), &scale, &mut by_values, (&mut by_scale, &mut by_shift));
    let wide = |v: &[f32]| -> Vec<f64> { v.iter().map(|x| f64::from(*x)).collect() };
    let all = [wide(&values), wide(&scale), wide(&shift)];
    for (part, found) in [by_values, by_scale, by_shift].iter().enumerate() {
        for at in 0..found.len() {
            let moved = |by: f64| {
                let mut all = all.clone();
                all[part][at] += by;
                value(&all[0], &all[1], &all[2])
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - f64::from(found[at])).abs() < 1e-4, "{part} {at} {slope}");
        }
    }
}

#[test]
fn tanh_is_tanh() {
    for k in -2000..=2000 {
        let x = k as f32 * 0.01;
        assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 1e-6, "{x}");
    }
    assert!(tanh(f32::NAN).is_nan());
    assert!((tanh(f32::INFINITY) - 1.0).abs() < 1e-6);
}

/// The whole network by finite differences of its loss, along random directions of every layer.
#[test]
fn the_gradient_of_a_network_is_the_slope_of_its_loss() {
    let (network, pictures) = some(3, 4);
    let loss = |network: &ConvNet, picture: Picture<'_>| {
        let mut pass = Pass::new(network);
        pass.look(network, picture);
        let scores: Vec<f64> = pass.scores().iter().map(|s| f64::from(*s)).collect();
        scores.iter().map(|s| s.exp()).sum::<f64>().ln() - scores[picture.label as usize]
    };
    let mut random = Random(9);
    for at in 0..4 {
        let picture = pictures.picture(at);
        let mut pass = Pass::new(&network);
        pass.look(&network, picture);
        assert!(pass.back(&network, picture.label));
        let width = network.weights().len();
        for from in (0..width).step_by(width / 12) {
            let range = from..(from + width / 12).min(width);
            let way: Vec<f32> = (0..width)
                .map(|k| if range.contains(&k) { random.number() as f32 } else { 0.0 })
                .collect();
            let moved = |by: f32| {
                let mut other = network.clone();
                let weights: Vec<f32> =
                    network.weights().iter().zip(&way).map(|(w, d)| by.mul_add(*d, *w)).collect();
                other.set_weights(&weights);
                loss(&other, picture)
            };
            let slope = (moved(0.01) - moved(-0.01)) / 0.02;
            let found = dot(&pass.gradient, &way);
            assert!((slope - found).abs() < 0.01 * (1.0 + found.abs()), "{from}: {slope} {found}");
        }
    }
}

/// Alone, in company, in any order and on any number of threads: the same integers.
#[test]
fn a_picture_adds_the_same_whoever_is_beside_it() {
    let (network, pictures) = some(5, 40);
    let lattice = Lattice::for_sums(0.5, network.weights().len());
    let alone: Vec<Vec<i64>> =
        (0..40).map(|at| clipped(&network, &pictures, &[at], &lattice, 1)).collect();
    let mut order: Vec<u32> = (0..40).map(|k| k * 7 % 40).collect();
    for threads in [1, 2, 3, 7] {
        let together = clipped(&network, &pictures, &order, &lattice, threads);
        for (k, sum) in together.iter().enumerate() {
            assert_eq!(*sum, alone.iter().map(|one| one[k]).sum::<i64>(), "{threads} {k}");
        }
        order.reverse();
    }
    assert!(clipped(&network, &pictures, &[], &lattice, 2).iter().all(|s| *s == 0));
    let unknown = Pictures::new(8, 3, vec![0.5; 192], vec![99]);
    assert!(clipped(&network, &unknown, &[0], &lattice, 2).iter().all(|s| *s == 0));
}

/// The bound holds in integers for gradients of any size, is often nearly met, and what is no number adds nothing.
#[test]
fn no_gradient_is_longer_than_the_clip() {
    let mut random = Random(6);
    let (mut tight, mut tried) = (0, 0);
    for clip in [1e-3, 0.7, 30.0] {
        for width in [1, 9, 1000] {
            let lattice = Lattice::for_sums(clip, width);
            for turn in 0..300 {
                // Any size there is, and three times in four one that is cut.
                let near = clip * (2.0 + 50.0 * random.number().abs());
                let size = if turn % 4 == 0 { random.size() } else { near } as f32;
                let gradient: Vec<f32> =
                    (0..width).map(|_| size * random.number() as f32).collect();
                let mut sum = vec![0; width];
                let count = add(&gradient, &lattice, &mut sum);
                let lowered = |s: &i64| i128::from(quietly_core::lattice::lowered(*s, count));
                let square: i128 = sum.iter().map(|s| lowered(s).pow(2)).sum();
                let most = i128::from(lattice.bound()).pow(2);
                assert!(square <= most, "{clip} {width} {square}");
                tight += usize::from(square as f64 > 0.99 * most as f64);
                tried += 1;
            }
        }
    }
    assert!(tight > tried / 2, "{tight} of {tried}");
    let lattice = Lattice::for_sums(1.0, 2);
    for bad in [[f32::NAN, 1.0], [f32::INFINITY, 0.0], [1.0, f32::NEG_INFINITY], [0.0, 0.0]] {
        let mut sum = vec![5, 5];
        let count = add(&bad, &lattice, &mut sum);
        assert!(sum.iter().all(|s| quietly_core::lattice::lowered(*s, count) == 5), "{bad:?}");
    }
}

fn plan(epsilon: f64) -> ImagePlan {
    let training = ImageTraining { shape: SMALL, steps: 12, batch: 10, ..ImageTraining::default() };
    training.plan(40, Budget::new(epsilon, 1e-5).unwrap()).unwrap()
}

fn quiet(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Broken off in the middle, after some steps that no page tells of, and continued with other threads: the same bits as
/// an uninterrupted run with the same random key.
#[test]
fn a_broken_run_goes_on_with_the_same_bits() {
    let pictures = Private::new(some(8, 40).1);
    let place = tempfile::tempdir().unwrap();
    let (whole, broken) = (place.path().join("whole"), place.path().join("broken"));
    let open = |folder| Notebook::open(folder, 5, Key::from_os);
    let notebook = open(&whole).unwrap();
    fs::create_dir(&broken).unwrap();
    fs::copy(whole.join("secret"), broken.join("secret")).unwrap();
    let (wanted, certificate) =
        plan(4.0).run_with(&notebook, &pictures, "picture", 1, &mut quiet).unwrap();
    assert!(!certificate.test_only && certificate.epsilon <= 4.0);

    for stop in [8, 9, 12] {
        let mut watch = |p: Progress| {
            if p.done >= stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let run = plan(4.0).run_with(&open(&broken).unwrap(), &pictures, "picture", 2, &mut watch);
        assert_eq!(matches!(run, Err(Error::Interrupted)), stop < 12);
        assert!(broken.join("page").exists());
    }
    let notebook = open(&broken).unwrap();
    let (found, _) = plan(4.0).run_with(&notebook, &pictures, "picture", 3, &mut quiet).unwrap();
    assert_eq!(found, wanted);
    // Another key gives other weights, so that the same ones mean something.
    let other = Key::from_os().unwrap();
    assert_ne!(plan(4.0).run(&pictures, "picture", other, 2, &mut quiet).unwrap().0, wanted);
    notebook.finish().unwrap();
    assert!(!broken.exists());
}

/// The key never meets other pictures or another plan, and is for its owner alone.
#[test]
fn a_notebook_is_for_one_run() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("notebook");
    let notebook = Notebook::open(&folder, 1, || Ok(Key::from_seed(3))).unwrap();
    #[cfg(unix)]
    {
        let mode =
            std::os::unix::fs::MetadataExt::mode(&fs::metadata(folder.join("secret")).unwrap());
        assert_eq!(mode & 0o777, 0o600);
    }
    let pictures = Private::new(some(8, 40).1);
    let (network, _) = plan(4.0).run_with(&notebook, &pictures, "picture", 2, &mut quiet).unwrap();
    let other = Private::new(some(9, 40).1);
    let refused = |plan: ImagePlan, pictures| {
        let run = plan.run_with(&notebook, pictures, "picture", 2, &mut quiet);
        matches!(run, Err(Error::File { .. }))
    };
    assert!(refused(plan(4.0), &other) && refused(plan(3.0), &pictures));
    // A page that was changed, in its step, a weight or a direction, would lead the same noise to other sums.
    let page = fs::read(folder.join("page")).unwrap();
    for at in [0, 16, 48, 56, page.len() - 1] {
        let mut changed = page.clone();
        changed[at] ^= 1;
        fs::write(folder.join("page"), changed).unwrap();
        assert!(refused(plan(4.0), &pictures), "byte {at}");
    }
    fs::write(folder.join("page"), &page).unwrap();
    assert!(!refused(plan(4.0), &pictures));
    // Nor is there room for two.
    assert!(Notebook::open(&folder, 1, Key::from_os).is_err());
    // Without the page nothing is refused, but the noise is another: with the same noise and few steps, runs on similar pictures
    // would end near each other.
    fs::remove_file(folder.join("page")).unwrap();
    let (again, _) = plan(4.0).run_with(&notebook, &pictures, "picture", 2, &mut quiet).unwrap();
    assert_eq!(again, network);
    fs::remove_file(folder.join("page")).unwrap();
    let mut nearly = some(8, 40).1;
    nearly.corrupt(1e6, &Key::from_seed(1)).unwrap();
    let nearly = Private::new(nearly);
    let (far, _) = plan(4.0).run_with(&notebook, &nearly, "picture", 2, &mut quiet).unwrap();
    let apart: Vec<f32> = far.weights().iter().zip(network.weights()).map(|(a, b)| a - b).collect();
    assert!(norm(&apart) > 0.5, "{}", norm(&apart));
    drop(notebook);
    fs::remove_file(folder.join("secret")).unwrap();
    let error = Notebook::open(&folder, 1, Key::from_os).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("key of this run is gone"), "{error}");
}

#[test]
fn plans_keep_their_budget_and_refuse_what_makes_no_sense() {
    let tight = |epsilon: f64| {
        plan(epsilon).epsilon() <= epsilon && plan(epsilon).epsilon() > 0.95 * epsilon
    };
    assert!(tight(1.0) && tight(8.0));
    assert!(plan(1.0).noise() > plan(8.0).noise());
    assert_eq!(plan(f64::INFINITY).noise(), None);
    let budget = Budget::new(1.0, 1e-5).unwrap();
    let bad = |training: ImageTraining| training.plan(1000, budget).is_err();
    let good = ImageTraining::default();
    assert!(bad(ImageTraining { batch: 1000, ..good }) && bad(ImageTraining { clip: 0.0, ..good }));
    assert!(
        bad(ImageTraining { momentum: 1.0, ..good }) && bad(ImageTraining { steps: 0, ..good })
    );
    let shape = ConvShape { side: 12, ..ConvShape::default() };
    assert!(bad(ImageTraining { shape, ..good }));
    assert!(good.plan(1000, budget.under(quietly_accounting::Neighbours::ReplaceOne)).is_err());
}

/// Without noise a network learns where the patch is: more than half of what it looks at lies inside, on pictures that it has
/// not seen. One that has learnt nothing looks anywhere.
#[test]
fn a_network_looks_at_the_pasted_patch() {
    let shape = ConvShape { side: 48, widths: [8, 8, 8], classes: 4, ..ConvShape::default() };
    let world = Pasted::new(48, 24, 4, 4.0, Key::from_seed(1)).unwrap();
    let training = ImageTraining { shape, steps: 60, batch: 60, ..ImageTraining::default() };
    let plan = training.plan(600, Budget::new(f64::INFINITY, 1e-5).unwrap()).unwrap();
    let pictures = Private::new(world.draw(0, 600).unwrap().0);
    let (network, _) = plan.run(&pictures, "picture", Key::from_seed(2), 2, &mut quiet).unwrap();
    let (fresh, places) = world.draw(1, 200).unwrap();
    let mass = |network: &ConvNet| {
        let share = |(at, place): (usize, &(usize, usize))| {
            network.attention(&fresh, at).share_within(*place, 24)
        };
        let shares: Vec<f64> = places.iter().enumerate().filter_map(share).collect();
        shares.iter().sum::<f64>() / shares.len() as f64
    };
    let accuracy = network.accuracy(&fresh, 2);
    assert!(accuracy > 0.9, "{accuracy}");
    assert!(mass(&network) > 0.5, "{}", mass(&network));
    let mut blind = ConvNet::new(shape, 1).unwrap();
    let mut weights = blind.weights().to_vec();
    let mut random = Random(1);
    weights.iter_mut().for_each(|w| *w += 0.1 * random.number() as f32);
    blind.set_weights(&weights);
    assert!(mass(&blind) < 0.4, "{}", mass(&blind));
}

/// For `cargo test --release`: how long one gradient takes.
#[test]
#[ignore = "a measurement"]
fn speed() {
    struct Back;
    impl Each for Back {
        #[inline(always)]
        fn picture(&mut self, network: &ConvNet, pass: &mut Pass, picture: Picture<'_>) {
            pass.look(network, picture);
            pass.back(network, picture.label);
        }
    }
    let network = ConvNet::new(ConvShape::default(), 1).unwrap();
    let (pictures, _) =
        Pasted::new(32, 12, 4, 1.0, Key::from_seed(1)).unwrap().draw(0, 500).unwrap();
    let which: Vec<u32> = (0..500).collect();
    let lattice = Lattice::for_sums(1.0, network.weights().len());
    for _ in 0..3 {
        let start = Instant::now();
        std::hint::black_box(clipped(&network, &pictures, &which, &lattice, 1));
        let full = start.elapsed().as_secs_f64();
        let start = Instant::now();
        pulp::Arch::new().dispatch(Walk {
            network: &network,
            pictures: &pictures,
            which: &which,
            each: Back,
        });
        let plain = start.elapsed().as_secs_f64();
        println!("{:.1} us a picture, {:.1} without lattice", full / 500e-6, plain / 500e-6);
        assert!(network.weights().len() == 19_546);
    }
}

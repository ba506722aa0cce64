use quietly_noise::Key;

use super::*;

fn stream() -> Stream {
    Key::from_seed(1).stream("test")
}

/// Every way to draw, by place and as networks do.
fn draws() -> Vec<BatchDraw> {
    let samplers = [
        Sampler::FullBatch,
        Sampler::Poisson { steps: 3, rate: 0.25 },
        Sampler::RandomAllocation { steps: 3 },
        Sampler::Partition { steps: 7 },
        Sampler::BallsAndBins { bins: 5, passes: 2 },
        Sampler::Cyclic { period: 4, passes: 2 },
        Sampler::FixedSize { steps: 3, batch: 700, rows: 20_001 },
    ];
    samplers.into_iter().map(|sampler| sampler.draw(stream())).collect()
}

/// χ² of `counts` against equal chances.
fn chi_square(counts: &[f64]) -> f64 {
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|n| (n - mean).powi(2) / mean).sum()
}

/// Wherever a table is split, and however it is read, each unit is in the steps that it is in as part of the whole. The
/// control is another key.
#[test]
fn any_split_has_the_members_of_the_whole() {
    for draw in draws() {
        let wire = serde_json::to_string(&draw).unwrap();
        let there: BatchDraw = serde_json::from_str(&wire).unwrap();
        assert!(there == draw);
        let mut batches = draw.batches(20_001);
        for step in 0..3 {
            let whole = draw.members(step, 0..20_001);
            assert!(whole.is_sorted());
            for cut in [0, 1, 2, 777, 8191, 8192, 8193, 20_001] {
                let mut parts = there.members(step, 0..cut);
                parts.extend(there.members(step, cut..20_001));
                assert!(parts == whole, "{draw:?} {cut}");
            }
            let mut batch: Vec<u64> = batches.step(step).iter().map(|&at| at.into()).collect();
            batch.sort_unstable();
            assert!(batch == whole, "{draw:?}");
            let other = draw.sampler.draw(Key::from_seed(2).stream("test"));
            let full = draw.sampler == Sampler::FullBatch;
            assert_eq!(other.members(step, 0..20_001) == whole, full, "{draw:?}");
        }
        if draw.groups().is_some() {
            for first in [0, 5, 8192, 10_000] {
                let all = draw.assignments(0).skip(first);
                assert!(all.zip(draw.assignments(first as u64)).take(9000).all(|(a, b)| a == b));
            }
        }
    }
}

#[test]
fn a_draw_is_not_printed() {
    let draw = Sampler::Poisson { steps: 3, rate: 0.25 }.draw(stream());
    assert_eq!(format!("{draw:?}"), "BatchDraw { sampler: Poisson { steps: 3, rate: 0.25 }, .. }");
    assert!(
        serde_json::from_str::<BatchDraw>(r#"{"sampler":{"sampler":"full"},"secret":[1]}"#)
            .is_err()
    );
}

/// Two neighbouring units in two steps are in or out independently: 16 outcomes of chances ¼ and ¾. 15 degrees of freedom
/// have the 1 - 10⁻⁶ quantile 56.5. The control is the law of a rate that is one part in thirty too large.
#[test]
fn poisson_draws_are_independent_and_have_their_rate() {
    for draw in [stream(), Key::from_seed(9).stream("test")]
        .map(|stream| Sampler::Poisson { steps: 2, rate: 0.25 }.draw(stream))
    {
        let units = 200_000_u64;
        let inside = [0, 1].map(|step| {
            let mut inside = vec![0; units as usize];
            draw.members(step, 0..units).iter().for_each(|&at| inside[at as usize] = 1);
            inside
        });
        let mut counts = [0.0; 16];
        for (a, b) in inside[0].chunks_exact(2).zip(inside[1].chunks_exact(2)) {
            counts[8 * a[0] + 4 * a[1] + 2 * b[0] + b[1]] += 1.0;
        }
        let chi_square = |rate: f64| -> f64 {
            let pairs = units as f64 / 2.0;
            let law = |k: usize| {
                let members = k.count_ones() as i32;
                pairs * rate.powi(members) * (1.0 - rate).powi(4 - members)
            };
            (0..16).map(|k| (counts[k] - law(k)).powi(2) / law(k)).sum()
        };
        assert!(chi_square(0.25) < 56.5, "{}", chi_square(0.25));
        assert!(chi_square(0.25 * 31.0 / 30.0) > 56.5);
    }
}

/// Groups of neighbours, 49 outcomes: 48 degrees of freedom have the 1 - 10⁻⁶ quantile 109.7. The control calls every
/// eighth draw of group 6 a 5.
#[test]
fn groups_are_uniform_and_independent() {
    let sampler = Sampler::RandomAllocation { steps: 7 };
    {
        let draw = sampler.draw(stream());
        let mut groups: Vec<usize> = draw.assignments(0).take(98_000).collect();
        let pairs = |groups: &[usize]| {
            let mut counts = [0.0; 49];
            groups.chunks_exact(2).for_each(|pair| counts[pair[0] * 7 + pair[1]] += 1.0);
            chi_square(&counts)
        };
        assert!(pairs(&groups) < 109.7);
        groups.iter_mut().step_by(8).for_each(|group| *group = (*group).min(5));
        assert!(pairs(&groups) > 109.7);
    }
}

/// Two of five units in each of two steps, 100 outcomes: 99 degrees of freedom have the 1 - 10⁻⁶ quantile 180.8. The control
/// is a step that repeats the one before once in ten times.
#[test]
fn steps_of_one_size_are_uniform_and_independent() {
    let mut batches =
        Sampler::FixedSize { steps: 100_000, batch: 2, rows: 5 }.draw(stream()).batches(5);
    let subset = |step: &[u32]| match (step[0].min(step[1]), step[0].max(step[1])) {
        (a, b) if a < b && b < 5 => (b * (b - 1) / 2 + a) as usize,
        _ => panic!("two units of five"),
    };
    let steps: Vec<usize> = (0..100_000).map(|t| subset(batches.step(t))).collect();
    let pairs = |steps: &[usize]| {
        let mut counts = [0.0; 100];
        steps.chunks_exact(2).for_each(|pair| counts[pair[0] * 10 + pair[1]] += 1.0);
        chi_square(&counts)
    };
    assert!(pairs(&steps) < 180.8);
    let stuck: Vec<usize> =
        (0..steps.len()).map(|t| if t % 20 == 1 { steps[t - 1] } else { steps[t] }).collect();
    assert!(pairs(&stuck) > 180.8);
}

/// Each epoch has the same groups, and every unit is in one of them.
#[test]
fn epochs_repeat_their_groups() {
    for sampler in
        [Sampler::BallsAndBins { bins: 8, passes: 2 }, Sampler::Cyclic { period: 8, passes: 2 }]
    {
        {
            let draw = sampler.draw(stream());
            let steps: Vec<Vec<u64>> = (0..16).map(|t| draw.members(t, 0..8000)).collect();
            assert_eq!(steps[..8], steps[8..]);
            let mut all = steps[..8].concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..8000));
        }
    }
}

/// In base 3 a word has 8 digits: 3⁸ = 6561, so 2⁶⁴ mod 6561 low words are refused, 0 among them.
#[test]
fn uneven_words_are_refused() {
    let three = Digits::new(3);
    assert_eq!((three.count, u128::from(three.refused)), (8, (1 << 64) % 6561));
    let mut script = [0, u64::MAX].into_iter();
    let mut digits = [9; 8];
    three.fill(|| script.next().unwrap(), &mut digits);
    assert_eq!((digits, script.next()), ([2; 8], None));
    // The digits are those of ⌊w·3⁸/2⁶⁴⌋.
    let w = 0x1234_5678_9abc_def0u64;
    three.fill(|| w, &mut digits);
    let value = digits.iter().fold(0, |v, &digit| 3 * v + u128::from(digit));
    assert_eq!(value, (u128::from(w) * 6561) >> 64);
}

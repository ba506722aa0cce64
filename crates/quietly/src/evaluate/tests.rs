use super::{
    UNITS,
    classes::{ClassScores, Tally},
    classes_privately::{add, bound, scores},
};
use crate::model::Classified;

fn said(score: f64) -> Classified {
    let p = 1.0 / (1.0 + (-score).exp());
    let probabilities = vec![1.0 / (1.0 + score.exp()), p];
    Classified { class: usize::from(score > 0.0), score, probabilities }
}

fn plain(rows: &[(f64, usize)]) -> ClassScores {
    let mut tally = Tally::new(2);
    rows.iter().for_each(|(score, class)| tally.add(&said(*score), *class));
    tally.scores()
}

/// Golden: pairs counted one by one.
#[test]
fn auc_counts_pairs_and_half_of_ties() {
    for rows in [3_u64, 10, 50] {
        let row = |i: u64| ((i * i * 7 % 11) as f64 / 4.0 - 1.0, (i * 5 % 7 < 3) as usize);
        let rows: Vec<(f64, usize)> = (0..rows).map(row).collect();
        let (mut pairs, mut right) = (0.0, 0.0);
        for (a, _) in rows.iter().filter(|r| r.1 == 1) {
            for (b, _) in rows.iter().filter(|r| r.1 == 0) {
                pairs += 1.0;
                right += if a > b {
                    1.0
                } else if a == b {
                    0.5
                } else {
                    0.0
                };
            }
        }
        assert_eq!(plain(&rows).auc, Some(right / pairs));
    }
    assert_eq!(plain(&[(0.0, 0), (-0.0, 1)]).auc, Some(0.5), "zero has one place");
    assert_eq!(plain(&[(1.0, 1), (2.0, 1)]).auc, None);
    assert_eq!(plain(&[]), ClassScores { left_out: Some(0), ..ClassScores::default() });
}

/// Whatever a model says of a row, the row adds no more than its bound; some rows add all of it but a little.
#[test]
fn one_row_adds_no_more_than_its_bound() {
    let mut most = 0.0_f64;
    for score in [0.0, -0.0, 1e-300, 0.3, -2.0, 7.0, -40.0, 800.0, f64::MAX, -f64::MAX] {
        for class in [0, 1] {
            let mut sums = vec![0_i128; 39];
            add(&mut sums, &said(score), class, 2);
            let norm = sums.iter().map(|s| (*s as f64).powi(2)).sum::<f64>().sqrt();
            assert!(norm <= bound(2), "{score}");
            assert_eq!(sums[3..].iter().sum::<i128>(), UNITS as i128, "one bin");
            most = most.max(norm / bound(2));
            let mut sums = vec![0_i128; 3];
            let odd = Classified { class: 2, score: 0.0, probabilities: vec![0.0, 1e-9, 1.0] };
            add(&mut sums, &odd, class, 3);
            assert!(sums.iter().map(|s| (*s as f64).powi(2)).sum::<f64>().sqrt() <= bound(3));
        }
    }
    // A wrong answer has no right one, so that two of three entries and the bin are reached: √3 of 2.
    assert!(most > 0.86, "{most}");
}

#[test]
fn without_noise_the_histogram_is_near_the_plain_scores() {
    let rows: Vec<(f64, usize)> = (0..20_000)
        .map(|i| {
            (
                (i * 37 % 1009) as f64 / 100.0 - 5.0,
                ((i * 53 % 997) * 11 > (i * 91 % 1009) * 10) as usize,
            )
        })
        .collect();
    let mut sums = vec![0_i128; 39];
    rows.iter().for_each(|(score, class)| add(&mut sums, &said(*score), *class, 2));
    let noisy: Vec<f64> = sums.iter().map(|s| *s as f64 / UNITS).collect();
    let (found, want) = (scores(&noisy, 0.0, true), plain(&rows));
    assert_eq!((found.rows, found.accuracy), (want.rows, want.accuracy));
    assert!((found.log_loss.unwrap() - want.log_loss.unwrap()).abs() < 1e-6);
    assert!((found.auc.unwrap() - want.auc.unwrap()).abs() < 0.01);
    assert_eq!(found.calibration.len(), want.calibration.len());
    for (found, want) in found.calibration.iter().zip(&want.calibration) {
        assert_eq!((found.rows, found.fraction), (want.rows, want.fraction));
        assert!((found.probability - want.probability).abs() < 0.01, "{found:?} {want:?}");
    }
    // Noise alone says nothing.
    let noise = scores(&[0.5; 39], 100.0, true);
    assert!(
        noise.auc.is_none() && noise.calibration.is_empty() && noise.calibration_error.is_none()
    );
}

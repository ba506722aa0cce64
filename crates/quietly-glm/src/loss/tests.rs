//! Derivatives, convexity, bounds and names of every loss.
use quietly_core::random::Random;

use super::*;

pub(super) const ALL: [Loss; 9] = [
    Loss::Squared,
    Loss::Logistic,
    Loss::Fourth,
    Loss::Hinge,
    Loss::SmoothHinge { width: 0.3 },
    Loss::Huber { width: 0.7 },
    Loss::Quantile { level: 0.8 },
    Loss::SmoothQuantile { level: 0.8, width: 0.4 },
    Loss::Margin,
];

fn target(loss: Loss, random: &mut Random) -> f64 {
    let y = random.number();
    if loss.needs_labels() { y.signum() } else { y }
}

/// Against an exponential that is right to the last place; a series that ends one term earlier is not.
#[test]
fn falling_exponentials_are_right() {
    let mut random = Random(3);
    for _ in 0..200_000 {
        let t = 354.0 * (1.0 + random.number()) * random.number().abs();
        let (found, exact) = (falling_exp(t), libm::exp(-t));
        assert!((found - exact).abs() <= 3.0 * f64::EPSILON * exact, "{t} {found} {exact}");
    }
    assert_eq!([0.0, 708.5, f64::INFINITY].map(falling_exp), [1.0, 0.0, 0.0]);
    assert!(falling_exp(f64::NAN).is_nan() && falling_exp(708.0) > 0.0);
}

#[test]
fn derivatives_are_derivatives_of_values_and_bends_of_derivatives() {
    let mut random = Random(1);
    let h = 1e-5;
    for loss in ALL {
        let mut seen = 0;
        for _ in 0..2000 {
            let (u, y) = (3.0 * random.number(), target(loss, &mut random));
            // A corner between the two points is no place for finite differences.
            let turns =
                [u - h, u + h].map(|u| (loss.second_derivative(u, y), loss.derivative(u, y)));
            if (turns[0].0 - turns[1].0).abs() > 0.01 || !loss.is_smooth() && turns[0] != turns[1] {
                continue;
            }
            seen += 1;
            let rise = (loss.value(u + h, y) - loss.value(u - h, y)) / (2.0 * h);
            let turn = (turns[1].1 - turns[0].1) / (2.0 * h);
            assert!((rise - loss.derivative(u, y)).abs() < 1e-7, "{loss:?} {u} {y}");
            assert!((turn - loss.second_derivative(u, y)).abs() < 1e-6, "{loss:?} {u} {y}");
        }
        assert!(seen > 1900, "{loss:?} {seen}");
    }
}

#[test]
fn every_loss_is_convex_and_its_derivatives_stay_in_range() {
    let mut random = Random(2);
    for loss in ALL {
        let mut against = 0;
        for _ in 0..5000 {
            let (u, v, y) =
                (4.0 * random.number(), 4.0 * random.number(), target(loss, &mut random));
            let line = loss.value(u, y) + loss.derivative(u, y) * (v - u);
            assert!(loss.value(v, y) >= line - 1e-12 * line.abs().max(1.0), "{loss:?} {u} {v} {y}");
            let (from, to) = loss.derivative_range(y);
            assert!((from..=to).contains(&loss.derivative(u, y)), "{loss:?}");
            against += usize::from(loss.derivative(u, y) * y > 0.0);
        }
        assert_eq!(against == 0, loss.sign_known(), "{loss:?}");
    }
}

#[test]
fn huge_scores_give_derivatives_that_are_numbers() {
    for loss in ALL {
        for u in [1e308, -1e308, 1e200, -1e200, 800.0, -800.0, 5e-324] {
            for y in [1.0, -1.0] {
                assert!(
                    !loss.derivative(u, y).is_nan() && !loss.second_derivative(u, y).is_nan(),
                    "{loss:?} {u}"
                );
                assert!(!loss.value(u, y).is_nan(), "{loss:?} {u}");
            }
        }
    }
    // Not merely numbers: exp(-700) and not zero.
    let far = Loss::Logistic.derivative(700.0, 1.0);
    assert!((far / -(-700f64).exp() - 1.0).abs() < 1e-12);
    assert_eq!(Loss::Logistic.value(-1e9, 1.0), 1e9);
}

#[test]
fn parameters_outside_their_domain_are_refused() {
    for loss in ALL {
        loss.check().unwrap();
    }
    for (loss, name) in [
        (Loss::Huber { width: 0.0 }, "width"),
        (Loss::SmoothHinge { width: f64::NAN }, "width"),
        (Loss::Quantile { level: 1.0 }, "quantile"),
        (Loss::SmoothQuantile { level: 0.5, width: -1.0 }, "width"),
        (Loss::Softmax { classes: 1 }, "classes"),
    ] {
        assert!(loss.check().unwrap_err().to_string().contains(name), "{loss:?}");
    }
}

#[test]
fn files_name_losses_by_kebab_case_words() {
    let loss = Loss::SmoothQuantile { level: 0.5, width: 0.1 };
    let text = serde_json::to_string(&loss).unwrap();
    assert_eq!(text, r#"{"loss":"smooth-quantile","level":0.5,"width":0.1}"#);
    assert_eq!(serde_json::from_str::<Loss>(&text).unwrap(), loss);
}

//! Published numbers: docs/spec/accounting.md#9, docs/spec/networks.md#2.4 and #2.9,
//! docs/spec/convex.md#2.1. Sources are
//! named there: 40-digit values, dp-accounting 0.6.0, prv-accountant 0.2.0 and PLD_accounting 2.0.
mod common;
use common::*;
use quietly_accounting::{Event, calibrate, epsilon};

/// 9.1: ε at δ = 1e-5, 1e-6, 1e-8, to ten digits.
#[test]
fn gaussian_epsilons_match_forty_digit_values() {
    let table: [(f64, [f64; 3]); 6] = [
        (0.5, [9.997256146, 10.99715121, 12.7492464]),
        (1.0, [4.377178096, 4.886554117, 5.776098383]),
        (2.0, [1.993091404, 2.25408465, 2.707606334]),
        (5.0, [0.7255217509, 0.8341175486, 1.021170615]),
        (10.0, [0.3406693647, 0.3968573776, 0.4928503654]),
        (50.0, [0.05863225531, 0.07096068299, 0.09151689364]),
    ];
    for (sigma, row) in table {
        for (delta, want) in [1e-5, 1e-6, 1e-8].into_iter().zip(row) {
            let got = epsilon(&Event::gaussian(sigma).unwrap(), AddRemove, delta).unwrap();
            assert!(
                (got.upper / want - 1.0).abs() < 1e-9 && got.relative_width() < 1e-9,
                "{got:?} {want}"
            );
        }
    }
}

/// docs/spec/accounting.md#9.1 and docs/spec/convex.md#2.1: the noise for ε, never below the exact
/// one and at most a thousandth
/// above.
#[test]
fn calibrated_gaussian_noise_matches_the_tables() {
    let tables = [
        (0.05, 1e-5, 57.77069524),
        (0.1, 1e-6, 36.30469043),
        (0.5, 1e-8, 9.863533796),
        (1.0, 1e-5, 3.730631635),
        (3.0, 1e-6, 1.543861418),
        (8.0, 1e-8, 0.7483942247),
        (0.5, 1e4_f64.powf(-1.1), 6.364),
        (1.0, 1e4_f64.powf(-1.1), 3.411),
        (1.5, 1e4_f64.powf(-1.1), 2.375),
        (2.0, 1e4_f64.powf(-1.1), 1.841),
    ];
    for (eps, delta, want) in tables {
        let found = calibrate(Event::gaussian, AddRemove, eps, delta).unwrap();
        let ratio = found.noise_multiplier / want;
        assert!(ratio > 1.0 - 2e-4 && ratio < 1.001, "{eps} {delta} {ratio}");
        assert!(found.epsilon.upper <= eps, "{found:?}");
    }
}

/// 9.2: the best published bracket must meet ours, which is at most half a per cent wide.
#[test]
fn poisson_epsilons_meet_the_best_published_brackets() {
    let table = [
        (0.01, 1.0, 1000, [(1.8271, 1.8282), (2.1234, 2.1245)]),
        (0.001, 0.8, 10000, [(0.7813, 0.7824), (0.9461, 0.9472)]),
        (0.004, 1.1, 15000, [(2.2942, 2.2954), (2.5991, 2.6002)]),
        (0.05, 2.0, 500, [(2.5309, 2.5320), (2.8715, 2.8726)]),
        (0.2, 4.0, 100, [(2.1016, 2.1021), (2.3886, 2.3891)]),
        (0.0001, 0.6, 100000, [(0.6074, 0.6085), (0.9601, 0.9633)]),
    ];
    for (rate, sigma, steps, brackets) in table {
        for (delta, (low, high)) in [1e-5, 1e-6].into_iter().zip(brackets) {
            let run = Event::poisson(rate, sigma).unwrap().repeat(steps).unwrap();
            let got = epsilon(&run, AddRemove, delta).unwrap();
            // Printed to four digits.
            assert!(got.lower <= high + 5e-5 && got.upper >= low - 5e-5, "{got:?} {low} {high}");
            assert!(got.relative_width() <= 5e-3, "{got:?}");
        }
    }
}

/// 9.4: never above their upper end by more than two thousandths, never below their lower end
/// (printed to four digits).
#[test]
fn allocation_epsilons_meet_the_published_brackets() {
    let once = [
        (10, 0.5, [(7.6849, 7.6975), (8.6847, 8.6972)]),
        (10, 1.0, [(2.1869, 2.1901), (2.6506, 2.6535)]),
        (10, 2.0, [(0.6202, 0.6236), (0.7271, 0.7303)]),
        (10, 4.0, [(0.2677, 0.2695), (0.3137, 0.3154)]),
        (100, 0.5, [(5.3827, 5.4036), (6.3816, 6.4023)]),
        (100, 1.0, [(0.6179, 0.6236), (0.8554, 0.8602)]),
        (100, 2.0, [(0.1714, 0.1748), (0.2032, 0.2065)]),
        (100, 4.0, [(0.0754, 0.0771), (0.0909, 0.0926)]),
        (1000, 0.5, [(3.1305, 3.1364), (4.1029, 4.1077)]),
        (1000, 1.0, [(0.1359, 0.1416), (0.1688, 0.1744)]),
        (1000, 2.0, [(0.0472, 0.0501), (0.0578, 0.0606)]),
        (1000, 4.0, [(0.0206, 0.0220), (0.0259, 0.0273)]),
        (10000, 0.5, [(1.1452, 1.1794), (1.9307, 1.9508)]),
        (10000, 4.0, [(0.0051, 0.0066), (0.0069, 0.0084)]),
    ];
    for (steps, sigma, brackets) in once {
        check(&Event::random_allocation(steps, 1, sigma).unwrap(), brackets);
    }
    let several = [
        (100, 1, 10, 1.0, [(1.6898, 1.7120), (1.9527, 1.9747)]),
        (1000, 10, 1, 1.0, [(1.6629, 1.7368), (1.9258, 1.9993)]),
        (100, 4, 1, 2.0, [(0.7745, 0.7914), (0.8925, 0.9094)]),
        (1000, 1, 10, 2.0, [(0.1524, 0.1908), (0.1834, 0.2217)]),
        (100, 3, 5, 2.0, [(1.3521, 1.3969), (1.5427, 1.5876)]),
        (1000, 1, 3, 0.8, [(0.4226, 0.4476), (0.5935, 0.6176)]),
    ];
    for (steps, select, passes, sigma, brackets) in several {
        check(
            &Event::random_allocation(steps, select, sigma).unwrap().repeat(passes).unwrap(),
            brackets,
        );
    }
}

fn check(run: &Event, brackets: [(f64, f64); 2]) {
    for (delta, (low, high)) in [1e-5, 1e-6].into_iter().zip(brackets) {
        let got = epsilon(run, AddRemove, delta).unwrap();
        assert!(
            got.upper <= (high + 5e-5) * 1.002 && got.upper >= low - 5e-5,
            "{run:?} {got:?} {low} {high}"
        );
        assert!(got.lower <= high + 5e-5, "{run:?} {got:?} {high}");
    }
}

/// 9.5, δ = 1e-5; but scale 1/2 at T = 1000 from a tilted transform in numpy (connect the dots,
/// steps 1/400 and 1/1600: 1301.176 and 1301.173), because the printed 1301.9160-1302.1199 does not
/// hold that.
#[test]
fn laplace_epsilons_meet_the_published_brackets() {
    let table = [
        (0.5, [(2.0, 2.0), (19.99, 19.99), (161.2413, 161.2430), (1301.1, 1301.2)]),
        (1.0, [(1.0, 1.0), (9.99, 9.99), (68.2516, 68.2530), (474.1506, 474.3024)]),
        (2.0, [(0.5, 0.5), (4.99, 4.99), (28.5008, 28.5016), (166.1250, 166.2209)]),
        (10.0, [(0.1, 0.1), (0.99, 0.99), (4.2201, 4.2203), (17.4001, 17.4237)]),
    ];
    for (scale, row) in table {
        for (steps, (low, high)) in [1, 10, 100, 1000].into_iter().zip(row) {
            let run = Event::laplace(scale).unwrap().repeat(steps).unwrap();
            let got = epsilon(&run, AddRemove, 1e-5).unwrap();
            // Two-digit entries are the ends of loss grids of step 1e-3 or so.
            let print = if steps <= 10 { 0.011 } else { 1e-4 };
            assert!(
                got.lower <= high + print && got.upper >= low - print,
                "{scale} {steps} {got:?} {low} {high}"
            );
            assert!(got.relative_width() <= 5e-3, "{got:?}");
        }
    }
}

/// docs/spec/networks.md#2.4 (Poisson and fixed size under replace-one) and #2.9 (ε delivered),
/// printed to two
/// or three digits; its Poisson column came from a prototype that rounded losses up and is up to a
/// quarter high: 0.13 for 0.1003 (dp-accounting 0.6.0).
#[test]
fn fixed_size_epsilons_match_the_printed_ones() {
    let table = [
        (100, 1, 1.0, 1000, 1.9, 14.8),
        (20, 1, 1.5, 400, 3.4, 14.5),
        (10, 1, 2.0, 300, 4.2, 14.5),
        (60000, 60, 0.62, 1000, 1.22, 16.6),
        (60000, 60, 1.23, 1000, 0.13, 1.29),
        (60000, 256, 1.91, 2000, 0.40, 1.38),
        (60000, 600, 6.20, 1000, 0.19, 0.41),
        (10000, 500, 2.79, 400, 1.5, 4.4),
        (455, 57, 19.7, 64, 0.19, 0.37),
    ];
    for (records, batch, noise, steps, poisson, fixed) in table {
        let rate = batch as f64 / records as f64;
        let sampled =
            epsilon(&Event::poisson(rate, noise).unwrap().repeat(steps).unwrap(), AddRemove, 1e-5)
                .unwrap();
        let sized = Event::fixed_size(records, batch, noise).unwrap().repeat(steps).unwrap();
        let sized = epsilon(&sized, ReplaceOne, 1e-5).unwrap();
        let ratio = sampled.upper / poisson;
        assert!(ratio > 0.75 && ratio < 1.05, "{sampled:?} {poisson}");
        assert!((sized.upper / fixed - 1.0).abs() < 0.05, "{sized:?} {fixed}");
    }
}

/// docs/spec/accounting.md#10: the exact ε by Monte Carlo (± one standard error, three allowed)
/// must lie
/// between the ends.
#[test]
fn correlated_poisson_brackets_hold_the_published_estimates() {
    use quietly_accounting::{CorrelatedGaussian, Participation, Strategy};
    for (steps, rate, lambda, noise, exact, error) in [
        (50, 0.1, 0.5, 5.59, 1.012, 0.001),
        (50, 0.1, 0.9, 24.6, 0.996, 0.001),
        (50, 0.01, 0.9, 4.22, 0.988, 0.004),
        (200, 0.1, 0.5, 3.33, 3.998, 0.003),
        (1000, 0.01, 0.5, 2.52, 1.008, 0.002),
        (1000, 0.1, 0.9, 118.0, 0.998, 0.002),
    ] {
        let run = CorrelatedGaussian::new(
            Strategy::Lambda(lambda),
            Participation::Poisson { rate },
            steps,
            noise,
        )
        .unwrap();
        let got = epsilon(&Event::correlated(run), AddRemove, 1e-5).unwrap();
        assert!(
            got.lower <= exact + 3.0 * error && got.upper >= exact - 3.0 * error,
            "{got:?} {exact}"
        );
    }
}

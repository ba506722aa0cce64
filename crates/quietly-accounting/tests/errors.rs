//! Bad input: an error that names the parameter, never a number.
use quietly_accounting::{
    CorrelatedGaussian, Error, Event, Neighbours::AddRemove, Participation, Strategy, calibrate,
    delta, epsilon,
};

/// The error's text must name `name`.
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, name: &str) {
    let error = result.expect_err(name);
    assert!(error.to_string().contains(name), "{error} does not name {name}");
    assert!(error.code().starts_with('A'));
}

const BAD: [f64; 7] = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-3, 1e9];

#[test]
fn noise_outside_its_range_is_refused_everywhere() {
    for bad in BAD {
        refused(Event::gaussian(bad), "noise_multiplier");
        refused(Event::shuffled(20, bad), "noise_multiplier");
        refused(Event::laplace(bad), "scale");
        refused(Event::poisson(0.5, bad), "noise_multiplier");
        refused(Event::fixed_size(10, 1, bad), "noise_multiplier");
        refused(Event::random_allocation(10, 1, bad), "noise_multiplier");
        refused(Event::tree(10, bad), "noise_multiplier");
        refused(
            CorrelatedGaussian::new(Strategy::Lambda(0.5), Participation::FullBatch, 10, bad),
            "noise_multiplier",
        );
    }
    assert!(Event::gaussian(0.1).is_ok() && Event::gaussian(1e5).is_ok());
}

#[test]
fn rates_budgets_and_counts_outside_their_range_are_refused() {
    for bad in [0.0, -0.1, 1.0 + 1e-9, f64::NAN, f64::INFINITY] {
        refused(Event::poisson(bad, 1.0), "sampling_rate");
        for participation in
            [Participation::Poisson { rate: bad }, Participation::FixedSize { share: bad }]
        {
            refused(
                CorrelatedGaussian::new(Strategy::Lambda(0.5), participation, 10, 1.0),
                "sampling_rate",
            );
        }
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e3] {
        refused(Event::exponential(bad), "epsilon");
    }
    let one = Event::gaussian(1.0).unwrap();
    for bad in [0.0, -1e-5, 0.6, f64::NAN, f64::INFINITY, 1e-13] {
        refused(epsilon(&one, AddRemove, bad), "delta");
        refused(calibrate(Event::gaussian, AddRemove, 1.0, bad), "delta");
    }
    for bad in [0.0, -1.0, 1e4, f64::NAN, f64::INFINITY, 1e-4] {
        refused(delta(&one, AddRemove, bad), "epsilon");
        refused(calibrate(Event::gaussian, AddRemove, bad, 1e-5), "epsilon");
    }
    refused(one.clone().repeat(0), "steps");
    refused(one.clone().repeat(10_000_001), "steps");
    refused(one.clone().repeat(10_000_000).unwrap().repeat(2), "steps");
    refused(one.repeat(5_000_000).unwrap().repeat(u64::MAX), "steps");
    refused(Event::tree(0, 1.0), "steps");
    refused(Event::random_allocation(0, 1, 1.0), "steps");
    refused(Event::random_allocation(10, 0, 1.0), "select");
    refused(Event::random_allocation(10, 11, 1.0), "select");
    refused(Event::fixed_size(0, 1, 1.0), "records");
    refused(Event::fixed_size(10, 0, 1.0), "batch");
    refused(Event::fixed_size(10, 11, 1.0), "batch");
    refused(Event::disjoint(vec![]), "events");
}

#[test]
fn strategies_that_do_not_fit_are_refused() {
    let full = Participation::FullBatch;
    for bad in [1.0, -0.1, f64::NAN, 2.0] {
        refused(CorrelatedGaussian::new(Strategy::Lambda(bad), full, 10, 1.0), "lambda");
    }
    refused(CorrelatedGaussian::new(Strategy::Banded(vec![]), full, 10, 1.0), "bands");
    refused(CorrelatedGaussian::new(Strategy::Banded(vec![0.5]), full, 10, 1.0), "bands");
    refused(CorrelatedGaussian::new(Strategy::Banded(vec![1.0, f64::NAN]), full, 10, 1.0), "bands");
    refused(CorrelatedGaussian::new(Strategy::Matrix(vec![vec![1.0]]), full, 2, 1.0), "rows");
    refused(
        CorrelatedGaussian::new(Strategy::Matrix(vec![vec![1.0], vec![1.0]]), full, 2, 1.0),
        "row length",
    );
    refused(
        CorrelatedGaussian::new(Strategy::Matrix(vec![vec![1.0], vec![0.5, 2.0]]), full, 2, 1.0),
        "diagonal",
    );
    let nan = Strategy::Matrix(vec![vec![1.0], vec![f64::NAN, 1.0]]);
    refused(CorrelatedGaussian::new(nan, full, 2, 1.0), "matrix entries");
    let half = || Strategy::Lambda(0.5);
    refused(CorrelatedGaussian::new(half(), full, 0, 1.0), "steps");
    refused(
        CorrelatedGaussian::new(half(), Participation::Cyclic { period: 0 }, 10, 1.0),
        "period",
    );
    refused(
        CorrelatedGaussian::new(half(), Participation::Cyclic { period: 11 }, 10, 1.0),
        "period",
    );
    refused(
        CorrelatedGaussian::new(half(), Participation::BallsAndBins { bins: 0 }, 10, 1.0),
        "bins",
    );
    refused(
        CorrelatedGaussian::new(
            half(),
            Participation::Separated { separation: 0, most: 1 },
            10,
            1.0,
        ),
        "separation",
    );
    refused(
        CorrelatedGaussian::new(
            half(),
            Participation::Separated { separation: 1, most: 0 },
            10,
            1.0,
        ),
        "participations",
    );
    refused(
        CorrelatedGaussian::new(
            half(),
            Participation::CyclicPoisson { period: 2, rate: 0.5 },
            10,
            1.0,
        ),
        "period",
    );
}

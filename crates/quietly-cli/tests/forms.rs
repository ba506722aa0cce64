//! Every form that is promised, run as a user would run it.
use serde_json::Value;

mod run;
use run::{console, quietly};

/// The ends of an interval.
fn ends(value: &Value) -> (f64, f64) {
    (value["lower"].as_f64().expect("a lower end"), value["upper"].as_f64().expect("an upper end"))
}

fn json(command: &str) -> Value {
    let done = quietly(command);
    assert_eq!(done.code, 0, "{command}\n{}", done.stderr);
    assert_eq!(done.stderr, "", "{command}");
    let value: Value = serde_json::from_str(&done.stdout).expect(command);
    for key in ["version", "scheme", "parameters", "neighbours", "delta", "epsilon"] {
        assert!(!value[key].is_null(), "{command}: no {key}");
    }
    value
}

fn epsilon(command: &str) -> (f64, f64) {
    let (lower, upper) = ends(&json(command)["epsilon"]);
    assert!(0.0 <= lower && lower <= upper, "{command}: {lower} {upper}");
    (lower, upper)
}

fn meets((lower, upper): (f64, f64), from: f64, to: f64) {
    assert!(lower <= to && upper >= from, "{lower}..{upper} against {from}..{to}");
}

/// 7.511275900744 solves δ(ε) = 1e-5 for μ = √10/2 in Balle and Wang's closed form, by bisection in double precision with `erfc`.
#[test]
fn gaussian() {
    let (lower, upper) =
        epsilon("account gaussian --noise-multiplier 2 --steps 10 --delta 1e-5 --json");
    assert!(upper - lower < 1e-6, "{lower} {upper}");
    meets((lower, upper), 7.511275900, 7.511275901);
}

/// 1.8271..1.8282: the optimistic and pessimistic ends of a public privacy loss distribution package.
#[test]
fn poisson() {
    let found = epsilon(
        "account poisson --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5 --json",
    );
    meets(found, 1.8271, 1.8282);
    assert!(found.1 < 1.85);
}

/// 0.6179..0.6236: a public package for random allocation.
#[test]
fn allocation() {
    let command = "account random-allocation --steps 100 --select 1 --epochs 1 --noise-multiplier 1 --delta 1e-5 --json";
    let found = epsilon(command);
    meets(found, 0.6179, 0.6236);
    assert!(found.1 < 0.64);
    assert_eq!(
        epsilon("account random-allocation --steps 100 --noise-multiplier 1 --delta 1e-5 --json"),
        found
    );
}

#[test]
fn fixed_size() {
    let command = "account fixed-size --records 60000 --batch 600 --noise-multiplier 1 --steps 1000 \
                   --neighbours replace-one --delta 1e-5 --json";
    let value = json(command);
    assert_eq!(value["neighbours"], "replace-one");
    let poisson = epsilon(
        "account poisson --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5 --json",
    );
    assert!(ends(&value["epsilon"]).1 > poisson.1);
}

#[test]
fn correlated() {
    let command = "account correlated --lambda 0.9 --sampling-rate 0.1 --noise-multiplier 118 --steps 1000 --delta 1e-5 --json";
    let (_, upper) = epsilon(command);
    assert!(upper <= 1.02, "{upper}");
}

#[test]
fn correlated_participations() {
    let ask = |how: &str| {
        epsilon(&format!(
            "account correlated {how} --noise-multiplier 50 --steps 200 --delta 1e-5 --json"
        ))
        .1
    };
    let full = ask("--lambda 0.5 --full");
    for how in [
        "--lambda 0.5 --bins 20",
        "--lambda 0.5 --period 20",
        "--lambda 0.5 --separation 20 --participations 5",
        "--lambda 0.5 --records 1000 --batch 50",
        "--bands 1,0.5,0.25 --period 20 --sampling-rate 0.5",
        "--bands 1,0.5,0.25 --period 20",
        "--bands 1,-0.5 --sampling-rate 0.1",
    ] {
        let part = ask(how);
        assert!(part < full, "{how}: {part} against {full}");
    }
    // Without correlation it is the ordinary scheme.
    let independent = ask("--lambda 0 --full");
    let gaussian =
        epsilon("account gaussian --noise-multiplier 50 --steps 200 --delta 1e-5 --json").1;
    assert!((independent / gaussian - 1.0).abs() < 1e-6, "{independent} {gaussian}");
}

#[test]
fn the_other_schemes() {
    let (_, laplace) = epsilon("account laplace --scale 1 --steps 100 --delta 1e-5 --json");
    assert!(laplace > 60.0 && laplace <= 100.0, "{laplace}");
    let (_, choice) =
        epsilon("account exponential --epsilon-each 0.1 --steps 1 --delta 1e-5 --json");
    assert!(choice <= 0.1 + 1e-9, "{choice}");
    let gaussian = |noise: f64, steps: u32| {
        epsilon(&format!(
            "account gaussian --noise-multiplier {noise} --steps {steps} --delta 1e-5 --json"
        ))
    };
    // 1000 leaves: eleven levels. A shuffle: one release per pass.
    assert_eq!(
        epsilon("account tree --steps 1000 --noise-multiplier 15 --delta 1e-5 --json"),
        gaussian(15.0, 11)
    );
    let shuffle =
        "account shuffle --steps 100 --epochs 10 --noise-multiplier 10 --delta 1e-5 --json";
    assert_eq!(epsilon(shuffle).1, gaussian(10.0, 10).1);
    let note = json(shuffle)["note"].to_string();
    assert!(note.contains("without amplification") && note.contains("allocation"), "{note}");
}

#[test]
fn delta_is_asked_by_epsilon() {
    let value = json("account gaussian --noise-multiplier 2 --steps 10 --epsilon 7.5112759 --json");
    let (lower, upper) = ends(&value["delta"]);
    assert!(lower <= upper && (upper / 1e-5 - 1.0).abs() < 1e-6, "{lower} {upper}");
    assert_eq!(value["epsilon"], 7.5112759);
}

#[test]
fn calibration_meets_its_target() {
    let shapes = [
        ("poisson --sampling-rate 0.01 --steps 1000", "noise-multiplier", "noise_multiplier"),
        ("gaussian --steps 10", "noise-multiplier", "noise_multiplier"),
        ("laplace --steps 10", "scale", "noise_multiplier"),
        ("exponential --steps 10", "epsilon-each", "epsilon_each"),
        ("random-allocation --steps 100 --epochs 2", "noise-multiplier", "noise_multiplier"),
        ("shuffle --epochs 2", "noise-multiplier", "noise_multiplier"),
        ("tree --steps 100", "noise-multiplier", "noise_multiplier"),
        (
            "correlated --bands 1,0.5 --period 10 --steps 100",
            "noise-multiplier",
            "noise_multiplier",
        ),
        (
            "fixed-size --records 1000 --batch 10 --steps 100",
            "noise-multiplier",
            "noise_multiplier",
        ),
    ];
    for (shape, dial, key) in shapes {
        let found = json(&format!("calibrate {shape} --epsilon 1 --delta 1e-5 --json"));
        let setting = found[key].as_f64().expect(shape);
        let (_, promised) = ends(&found["epsilon"]);
        assert!(promised <= 1.0 && promised > 0.98, "{shape}: {promised}");
        let (_, again) =
            epsilon(&format!("account {shape} --{dial} {setting} --delta 1e-5 --json"));
        assert_eq!(again, promised, "{shape}");
    }
}

#[test]
fn four_schemes_are_compared() {
    let command =
        "account compare --noise-multiplier 1 --steps 1000 --sampling-rate 0.01 --delta 1e-5";
    let done = quietly(&format!("{command} --json"));
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    let rows = value["schemes"].as_array().unwrap();
    let name = |row: &Value| row["scheme"].as_str().unwrap().to_string();
    let mut names: Vec<String> = rows.iter().map(name).collect();
    names.sort();
    assert_eq!(names, ["fixed-size", "poisson", "random-allocation", "shuffle"]);
    let uppers: Vec<f64> = rows.iter().map(|r| ends(&r["epsilon"]).1).collect();
    assert!(uppers.windows(2).all(|w| w[0] <= w[1]), "{uppers:?}");
    let own = epsilon(
        "account poisson --noise-multiplier 1 --steps 1000 --sampling-rate 0.01 --delta 1e-5 --json",
    );
    let poisson = rows.iter().find(|r| name(r) == "poisson").unwrap();
    assert_eq!(ends(&poisson["epsilon"]), own);
    assert_eq!(quietly(command).stdout.lines().filter(|l| l.contains('█')).count(), 4);
}

#[test]
fn people_get_interval_odds_plot_and_the_next_step() {
    let done = quietly(
        "account poisson --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5",
    );
    assert_eq!(done.code, 0);
    for part in ["epsilon between 1.82", "theorem: ", "50 : 50", "86.2", "◆"] {
        assert!(done.stdout.contains(part), "{part}:\n{}", done.stdout);
    }
    assert!(!done.stdout.contains('\x1b'), "colour without a terminal");
    let next = done.stdout.lines().last().unwrap().strip_prefix("next: ").unwrap();
    assert!(
        next.starts_with("quietly calibrate poisson --sampling-rate 0.01 --steps 1000"),
        "{next}"
    );
    assert_eq!(console(next).code, 0);
    let wide: Vec<&str> =
        done.stdout.lines().filter(|l| l.chars().count() > 80 && !l.starts_with("next")).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

//! Bad input: an error that names the parameter, nothing on stdout, and never a panic.
use serde_json::Value;

mod run;
use run::quietly;

/// Runs a command that must fail and gives its exit code and message.
fn refused(command: &str) -> (i32, String) {
    let done = quietly(command);
    assert!([1, 2].contains(&done.code), "{command}: exit {}\n{}", done.code, done.stdout);
    assert_eq!(done.stdout, "", "{command}");
    assert!(
        !done.stderr.contains("panicked") && !done.stderr.contains("C08"),
        "{command}\n{}",
        done.stderr
    );
    (done.code, done.stderr)
}

#[test]
fn a_senseless_value_is_refused_under_its_flag() {
    let gaussian = "account gaussian --noise-multiplier 1 --steps 10 --delta 1e-5";
    let poisson =
        "account poisson --sampling-rate 0.1 --noise-multiplier 1 --steps 10 --delta 1e-5";
    let fixed =
        "account fixed-size --records 100 --batch 10 --noise-multiplier 1 --steps 10 --delta 1e-5";
    let allocation = "account random-allocation --steps 10 --select 1 --epochs 1 --noise-multiplier 1 --delta 1e-5";
    let correlated = "account correlated --lambda 0.5 --sampling-rate 0.1 --noise-multiplier 5 --steps 10 --delta 1e-5";
    let bands =
        "account correlated --bands 1,0.5 --period 2 --noise-multiplier 5 --steps 10 --delta 1e-5";
    let separated = "account correlated --lambda 0.5 --separation 2 --participations 2 --noise-multiplier 5 --steps 10 --delta 1e-5";
    let batches = "account correlated --lambda 0.5 --records 100 --batch 10 --noise-multiplier 5 --steps 10 --delta 1e-5";
    let real = ["-1", "nan", "inf", "-inf", "1e400"];
    let count = ["0", "-1", "2.5", "nan", "inf", "99999999999999999999", "1e300"];
    let mut seen = 0;
    let mut check = |base: &str, flag: &str, values: &[&str]| {
        for value in values {
            let words: Vec<&str> = base.split(' ').collect();
            let at = words.iter().position(|w| *w == flag).expect(flag);
            let command = [&words[..=at], &[value], &words[at + 2..]].concat().join(" ");
            let (code, message) = refused(&command);
            assert_eq!(code, 1, "{command}\n{message}");
            assert!(message.starts_with("error[A0"), "{command}\n{message}");
            let first = message.lines().next().unwrap();
            assert!(first.contains(&format!("]: {flag} ")), "{command}\n{message}");
            assert!(
                message.contains("hint: ") && message.contains("quietly explain A0"),
                "{message}"
            );
            seen += 1;
        }
    };
    for (base, flag) in [
        (gaussian, "--noise-multiplier"),
        (gaussian, "--delta"),
        ("account gaussian --noise-multiplier 1 --steps 10 --epsilon 1", "--epsilon"),
        ("account laplace --scale 1 --steps 10 --delta 1e-5", "--scale"),
        ("account exponential --epsilon-each 1 --steps 10 --delta 1e-5", "--epsilon-each"),
        ("account shuffle --noise-multiplier 1 --epochs 10 --delta 1e-5", "--noise-multiplier"),
        ("account tree --noise-multiplier 1 --steps 10 --delta 1e-5", "--noise-multiplier"),
        (
            "account compare --noise-multiplier 1 --steps 10 --sampling-rate 0.1 --delta 1e-5",
            "--noise-multiplier",
        ),
        (
            "account compare --noise-multiplier 1 --steps 10 --sampling-rate 0.1 --delta 1e-5",
            "--sampling-rate",
        ),
        ("calibrate gaussian --steps 10 --epsilon 1 --delta 1e-5", "--epsilon"),
        ("calibrate gaussian --steps 10 --epsilon 1 --delta 1e-5", "--delta"),
        (poisson, "--sampling-rate"),
        (poisson, "--noise-multiplier"),
        (fixed, "--noise-multiplier"),
        (allocation, "--noise-multiplier"),
        (correlated, "--lambda"),
        (correlated, "--noise-multiplier"),
        (correlated, "--sampling-rate"),
    ] {
        check(base, flag, &real);
    }
    for (base, flag) in [
        (gaussian, "--steps"),
        ("account laplace --scale 1 --steps 10 --delta 1e-5", "--steps"),
        ("account exponential --epsilon-each 1 --steps 10 --delta 1e-5", "--steps"),
        ("account shuffle --steps 10 --epochs 10 --noise-multiplier 1 --delta 1e-5", "--steps"),
        ("account shuffle --steps 10 --epochs 10 --noise-multiplier 1 --delta 1e-5", "--epochs"),
        ("account tree --steps 10 --noise-multiplier 1 --delta 1e-5", "--steps"),
        (
            "account compare --noise-multiplier 1 --steps 10 --sampling-rate 0.1 --delta 1e-5",
            "--steps",
        ),
        ("calibrate poisson --sampling-rate 0.1 --steps 10 --epsilon 1 --delta 1e-5", "--steps"),
        (poisson, "--steps"),
        (fixed, "--steps"),
        (fixed, "--records"),
        (fixed, "--batch"),
        (allocation, "--steps"),
        (allocation, "--select"),
        (allocation, "--epochs"),
        (correlated, "--steps"),
        (bands, "--period"),
        (separated, "--separation"),
        (separated, "--participations"),
        (batches, "--records"),
        (batches, "--batch"),
    ] {
        check(base, flag, &count);
    }
    check(gaussian, "--delta", &["0", "1"]);
    check(poisson, "--sampling-rate", &["0", "1.0001", "2"]);
    check(correlated, "--lambda", &["1", "1.5"]);
    check(bands, "--bands", &["0.5,1", "nan,1", "1,inf", "-1,1"]);
    check(fixed, "--batch", &["101"]);
    check(allocation, "--select", &["11"]);
    assert!(seen > 200, "{seen}");
}

#[test]
fn a_product_that_does_not_fit_is_refused() {
    for scheme in ["random-allocation", "shuffle", "tree"] {
        let command =
            format!("account {scheme} --steps 1e7 --epochs 1e7 --noise-multiplier 1 --delta 1e-5");
        let (code, message) = refused(&command);
        assert_eq!(code, 1, "{message}");
        assert!(message.contains("error[A03]: --epochs"), "{message}");
    }
}

#[test]
fn an_unmet_budget_and_a_missing_theorem_are_refused() {
    let (code, message) = refused("calibrate gaussian --steps 1e7 --epsilon 0.001 --delta 1e-12");
    assert!(code == 1 && message.contains("error[A04]"), "{message}");
    let cyclic = "account correlated --lambda 0.9 --period 20 --sampling-rate 0.1 --noise-multiplier 9 --steps 100 --delta 1e-5";
    let (code, message) = refused(cyclic);
    assert!(code == 1 && message.contains("error[A02]"), "{message}");
}

#[test]
fn a_command_that_makes_no_sense_is_not_guessed_at() {
    let correlated = "account correlated --noise-multiplier 5 --steps 10 --delta 1e-5";
    for (command, code, word) in [
        ("account gaussian --noise-multiplier 1 --steps 10", "C03", "--delta"),
        (
            "account gaussian --noise-multiplier 1 --steps 10 --delta 1e-5 --epsilon 1",
            "C03",
            "both",
        ),
        (
            "account gaussian --noise-multiplier one --steps 10 --delta 1e-5",
            "C02",
            "--noise-multiplier",
        ),
        ("account gaussian --noise-multiplier 1 --steps ten --delta 1e-5", "C02", "--steps"),
        (
            "account gaussian --noise-multiplier --steps 10 --delta 1e-5",
            "C05",
            "--noise-multiplier",
        ),
        ("account gaussian --steps 10 --delta 1e-5", "C05", "--noise-multiplier"),
        (
            "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --delta 1e-5",
            "C05",
            "--sampling-rate",
        ),
        (
            "account gaussian --noise-multiplier 1 --delta 1e-5 --neighbours both",
            "C05",
            "--neighbours",
        ),
        (
            "calibrate gaussian --noise-multiplier 1 --epsilon 1 --delta 1e-5",
            "C05",
            "--noise-multiplier",
        ),
        ("acount", "C05", "account"),
        ("explain Z99", "C06", "Z99"),
        (&format!("{correlated} --lambda 0.5"), "C01", "--bins"),
        (
            &format!("{correlated} --lambda 0.5 --sampling-rate 0.1 --bins 2"),
            "C01",
            "--sampling-rate, --bins",
        ),
        (
            &format!("{correlated} --lambda 0.5 --full --sampling-rate 0.1"),
            "C01",
            "--full, --sampling-rate",
        ),
        (&format!("{correlated} --lambda 0.5 --batch 2"), "C01", "--batch needs --records"),
        (&format!("{correlated} --lambda 0.5 --separation 2"), "C01", "needs --participations"),
        (&format!("{correlated} --full"), "C04", "--lambda"),
        (&format!("{correlated} --full --lambda 0.5 --bands 1,0.5"), "C04", "both"),
        (&format!("{correlated} --full --bands 1,,2"), "C02", "--bands"),
    ] {
        let (exit, message) = refused(command);
        assert_eq!(exit, 2, "{command}\n{message}");
        assert!(message.contains(&format!("error[{code}]")), "{command}\n{message}");
        assert!(message.contains(word), "{command}\n{message}");
    }
    for moved in ["reproduce", "reproduce linear --quick", "reproduce --help"] {
        let (exit, message) = refused(moved);
        assert!(exit == 2 && message.contains("error[C05]"), "{message}");
        assert!(message.contains("is called `quietly-lab reproduce` now"), "{message}");
    }
    for unfinished in ["", "account", "calibrate"] {
        let (exit, message) = refused(unfinished);
        assert!(exit == 2 && message.starts_with("Example:"), "{message}");
    }
}

#[test]
fn errors_are_json_where_answers_would_be() {
    for (command, code) in [
        ("account gaussian --noise-multiplier -1 --steps 10 --delta 1e-5 --json", "A01"),
        ("account gaussian --noise-multiplier one --steps 10 --delta 1e-5 --json", "C02"),
        ("account gaussian --json", "C05"),
        ("account --json", "C05"),
    ] {
        let (_, message) = refused(command);
        let value: Value = serde_json::from_str(&message).expect(&message);
        assert_eq!(value["error"]["code"], code, "{message}");
        assert!(value["error"]["message"].as_str().is_some_and(|m| !m.is_empty()), "{message}");
    }
}

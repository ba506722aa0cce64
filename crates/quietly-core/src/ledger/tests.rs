//! What a ledger lets through, and what it survives.
use quietly_accounting::Neighbours;

use super::*;

fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget::new(epsilon, delta).unwrap()
}

#[test]
fn what_is_spent_stays_spent_and_no_more_is_let_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.ledger");
    assert!(matches!(Ledger::open(&path, None), Err(Error::File { .. })));
    let mut ledger = Ledger::open(&path, Some(budget(1.0, 1e-5))).unwrap();
    let mut other = ledger.clone();
    for _ in 0..5 {
        ledger.charge("a fit", budget(0.1, 1e-6)).unwrap();
        // Another process that opened it before.
        other.charge("another\nfit", budget(0.1, 1e-6)).unwrap();
    }
    let refused = ledger.charge("one too many", budget(0.001, 1e-6)).unwrap_err();
    assert!(matches!(refused, Error::BudgetExceeded { .. }));
    assert!(refused.to_string().contains("epsilon 0, delta 0"), "{refused}");
    let again = Ledger::open(&path, Some(budget(1.0, 1e-5))).unwrap();
    assert_eq!(again.entries().len(), 10);
    let (epsilon, delta) = again.spent();
    assert!((1.0..1.0 + 1e-12).contains(&epsilon) && (1e-5..1.1e-5).contains(&delta));
    assert!(again.to_string().contains("too little"), "{again}");
    assert!(Ledger::open(&path, Some(budget(2.0, 1e-5))).is_err());
}

#[test]
fn delta_counts_as_epsilon_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(&folder.path().join("l"), Some(budget(10.0, 1e-6))).unwrap();
    ledger.charge("a", budget(1.0, 6e-7)).unwrap();
    assert!(ledger.charge("b", budget(1.0, 6e-7)).is_err());
    ledger.charge("pure", Budget::pure(1.0).unwrap()).unwrap();
    let endless = Budget::new(f64::INFINITY, 1e-7).unwrap();
    assert!(ledger.charge("no privacy", endless).is_err());
    let replaced = budget(1.0, 1e-7).under(Neighbours::ReplaceOne);
    assert!(matches!(ledger.charge("other", replaced), Err(Error::Parameter { .. })));
}

/// What is cut out of the chain of digests is found even if the lines that follow lose theirs.
#[test]
fn digests_do_not_end_once_they_began() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l");
    let mut ledger = Ledger::open(&path, Some(budget(1.0, 1e-6))).unwrap();
    for _ in 0..3 {
        ledger.charge("a", budget(0.1, 1e-7)).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let bare = |line: &str| {
        let mut fields: serde_json::Value = serde_json::from_str(line).unwrap();
        fields.as_object_mut().unwrap().remove("prev");
        fields.to_string()
    };
    let lines: Vec<&str> = text.lines().collect();
    let cut = format!("{}\n{}\n{}\n", lines[0], lines[1], bare(lines[3]));
    std::fs::write(&path, cut).unwrap();
    assert!(matches!(Ledger::open(&path, None), Err(Error::File { .. })));
    // A ledger of an earlier version has none at first.
    let old = format!("{}\n{}\n", lines[0], bare(lines[1]));
    std::fs::write(&path, old).unwrap();
    let mut ledger = Ledger::open(&path, None).unwrap();
    ledger.charge("b", budget(0.1, 1e-7)).unwrap();
    assert_eq!(Ledger::open(&path, None).unwrap().entries().len(), 2);
}

#[test]
fn a_damaged_ledger_lets_nothing_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l");
    let mut ledger = Ledger::open(&path, Some(budget(1.0, 1e-6))).unwrap();
    ledger.charge("a", budget(0.1, 1e-7)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let line = r#"{"when":1,"what":"a","epsilon":-1.0,"delta":0.0}"#;
    for bad in [
        text[..text.len() - 5].to_string(),
        text.trim_end().to_string(),
        text.replace("quietly ledger", "a ledger"),
        format!("{text}\n"),
        format!("{text}{line}\n"),
        String::new(),
    ] {
        std::fs::write(&path, bad).unwrap();
        assert!(matches!(ledger.charge("b", budget(0.1, 1e-7)), Err(Error::File { .. })));
        assert!(Ledger::open(&path, None).is_err());
    }
}

/// Ten tenths are one, and nothing more fits: not even what a float cannot tell from nothing.
#[test]
fn limits_are_kept_to_the_last_digit() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(&folder.path().join("l"), Some(budget(1.0, 1e-5))).unwrap();
    (0..9).for_each(|_| drop(ledger.charge("a tenth", budget(0.1, 1e-6)).unwrap()));
    // A slack of 1e-12 of the limit, as there once was, would let this through.
    let beyond = budget(0.1 + 1e-13, 1e-6);
    assert!(matches!(ledger.charge("a little more", beyond), Err(Error::BudgetExceeded { .. })));
    ledger.charge("the last", budget(0.1, 1e-6)).unwrap();
    assert_eq!((ledger.spent(), ledger.left()), ((1.0, 1e-5), (0.0, 0.0)));
}

/// Version 1, as earlier releases wrote it, is read and charged. What is written today is a charge of nothing more to them.
#[test]
fn ledgers_of_earlier_releases_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l");
    let old = "{\"format\":\"quietly ledger\",\"version\":1,\"limit\":{\"epsilon\":2.0,\"delta\":0.0001,\
               \"neighbours\":\"add-remove\"}}\n\
               {\"when\":1763424000,\"what\":\"linear regression of days\",\"epsilon\":1.0,\"delta\":1e-6}\n";
    std::fs::write(&path, old).unwrap();
    let mut ledger = Ledger::open(&path, None).unwrap();
    assert!(ledger.to_string().contains("2025-11-18T00:00:00Z"), "{ledger}");
    let run = ledger.charge("another", budget(1.0, 1e-6)).unwrap();
    ledger.finish(&run).unwrap();
    assert!(ledger.charge("one too many", budget(0.1, 1e-6)).is_err());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(old));
    #[derive(serde::Deserialize)]
    struct Old {
        epsilon: f64,
        delta: f64,
    }
    let lines: Vec<Old> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line.epsilon).sum::<f64>(), 2.0);
    assert_eq!(lines.iter().map(|line| line.delta).sum::<f64>(), 2e-6);
}

/// A disk that is full at any byte of a charge: it is refused, and the file is as it was.
#[test]
fn a_charge_on_a_full_disk_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l");
    let mut ledger = Ledger::open(&path, Some(budget(9.0, 1e-4))).unwrap();
    ledger.charge("a", budget(0.1, 1e-7)).unwrap();
    let before = std::fs::read(&path).unwrap();
    for bytes in 0.. {
        disk::break_disk(Some(disk::Fault::Full(bytes)));
        let charged = ledger.charge("b", budget(0.1, 1e-7));
        disk::break_disk(None);
        if charged.is_ok() {
            assert!(bytes > 100, "{bytes}");
            break;
        }
        assert_eq!(std::fs::read(&path).unwrap(), before, "{bytes}");
    }
    assert_eq!(Ledger::open(&path, None).unwrap().entries().len(), 2);
}

/// A process that ends at any byte of a charge: nothing was released, and the ledger is repaired when asked.
#[test]
fn a_charge_that_was_cut_off_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in 0.. {
        let path = folder.path().join(format!("{bytes}"));
        let limit = budget(9.0, 1e-4);
        let mut ledger = Ledger::open(&path, Some(limit)).unwrap();
        ledger.charge("a", budget(0.1, 1e-7)).unwrap();
        disk::break_disk(Some(disk::Fault::Crash(bytes)));
        let charged = ledger.charge("b", budget(0.1, 1e-7));
        disk::break_disk(None);
        let whole = charged.is_ok();
        if bytes > 0 && !whole {
            assert!(Ledger::open(&path, None).unwrap_err().to_string().contains("--repair"));
            assert!(ledger.charge("c", budget(0.1, 1e-7)).is_err());
        }
        let repaired = Ledger::repair(&path).unwrap();
        assert_eq!(repaired.is_some(), bytes > 0 && !whole, "{bytes}");
        let again = Ledger::open(&path, None).unwrap();
        // A line that lacks nothing but its end counts.
        assert!((1..=2).contains(&again.entries().len()) && (!whole || again.entries().len() == 2));
        again.clone().charge("c", budget(0.1, 1e-7)).unwrap();
        if whole {
            assert!(bytes > 100);
            break;
        }
    }
    // A first line that was cut off is no ledger yet.
    let path = folder.path().join("new");
    disk::break_disk(Some(disk::Fault::Crash(30)));
    assert!(Ledger::open(&path, Some(budget(1.0, 1e-6))).is_err());
    disk::break_disk(None);
    assert!(Ledger::open(&path, None).is_err());
    Ledger::open(&path, Some(budget(1.0, 1e-6))).unwrap();
}

#[test]
fn runs_and_allocations_are_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(&folder.path().join("l"), Some(budget(9.0, 1e-4))).unwrap();
    let mut run = Run::new("a\u{202e}b\nc").unwrap();
    run.allocation = Some("0123".into());
    ledger.charge_run(&run, budget(1.0, 1e-6)).unwrap();
    assert_eq!(ledger.entries()[0].what, "abc");
    assert!(ledger.charge_run(&run, budget(1.0, 1e-6)).is_err());
    let copied = Run { allocation: run.allocation.clone(), ..Run::new("a copy").unwrap() };
    let refused = ledger.charge_run(&copied, budget(1.0, 1e-6)).unwrap_err();
    assert!(refused.to_string().contains("another run"), "{refused}");
    assert!(ledger.finish("nobody").is_err());
    (0..2).for_each(|_| ledger.finish(&run.name).unwrap());
    assert!(ledger.run(&run.name).unwrap().finished);
}

//! Files of earlier versions are read: they predict the same, certify, and their plans can be run.
//!
//! `files/v3` has a model of each family as format versions 1 to 3 wrote it, of two features of a made table. `index.txt`
//! says for each a digest of its predictions and its ε, both as the version that wrote it computed them.
use std::{fs, path::PathBuf};

use quietly::{Model, PlanRecord};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/files/v3")
}

/// FNV-1a over predictions for fixed rows.
fn predictions(model: &Model) -> u64 {
    let row = |i: u32| [37, 53].map(|step| f64::from(i * step % 101) / 50.0 - 1.0);
    let said = |i: u32| match model.link.is_classifier() {
        true => model.classify(&row(i)).score,
        false => model.predict(&row(i)),
    };
    let bytes = (0..40).flat_map(|i| said(i).to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn files_of_earlier_versions_are_read() {
    let index = fs::read_to_string(folder().join("index.txt")).unwrap();
    let mut versions = [0; 4];
    for line in index.lines() {
        let [name, digest, epsilon] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let text = fs::read_to_string(folder().join(format!("{name}.quietly"))).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        versions[file["version"].as_u64().unwrap() as usize] += 1;
        let model =
            Model::from_json(text.as_bytes(), name).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(format!("{:016x}", predictions(&model)), digest, "{name}");
        assert_eq!(model.certificate.epsilon.to_string(), epsilon, "{name}");
        assert!(model.certificate.is_consistent(), "{name}");

        // Written again, it is a file of today and the same model.
        let again = Model::from_json(model.to_json().as_bytes(), name).unwrap();
        assert_eq!(again, model, "{name}");
        assert_eq!(predictions(&again), predictions(&model), "{name}");

        // Its plan is priced again, and costs what it says.
        let plan = PlanRecord::from_json(&file["plan"].to_string()).unwrap();
        assert_eq!(plan, model.plan, "{name}");
        let priced = plan.check().unwrap_or_else(|e| panic!("{name}: {e}"));
        let said = model.plan.epsilon();
        let near = priced.epsilon() == said || (priced.epsilon() / said - 1.0).abs() < 1e-9;
        assert!(near, "{name}: {} {said}", priced.epsilon());
    }
    assert!(index.lines().count() > 30 && versions[1..].iter().all(|v| *v > 0), "{versions:?}");
}

/// The control: a plan of an earlier version that was made cheaper is refused.
#[test]
fn an_old_plan_that_was_changed_is_refused() {
    let text = fs::read_to_string(folder().join("dp-ssgd.quietly")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let plan = &mut file["plan"];
    assert!(PlanRecord::from_json(&plan.to_string()).unwrap().check().is_ok());
    plan["recipe"]["steps"] = 2.into();
    assert!(PlanRecord::from_json(&plan.to_string()).unwrap().check().is_err());
}

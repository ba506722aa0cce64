//! Model files: what is written is read, and what is wrong is refused.
use quietly::{Error, Link, Method, Model};

use crate::{
    common::{LINKS, METHODS, alike, budget, gaussian, json, plan},
    same_bits::fit,
};

fn model(link: Link, method: Method) -> Model {
    let table = gaussian(3000, 2, 0.4, link, 1);
    fit(&plan(link, method, 3000, 2, budget(1.0)), &table, 1, &[1.0; 3], 1)
}

fn read(text: &str) -> Result<Model, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    std::fs::write(&path, text).unwrap();
    Model::read(&path)
}

#[test]
fn a_model_survives_its_file() {
    for link in LINKS {
        for method in METHODS {
            let model = model(link, method);
            let back = read(&model.to_json()).unwrap();
            assert!(alike(&json(&back), &json(&model)));
            assert_eq!(back.encoding, model.encoding);
            let mut other = model.clone();
            other.weights[0] *= 1.0 + 1e-14;
            assert!(!alike(&json(&back), &json(&other)), "a control");
            assert!(model.certificate.test_only, "a seed is not for release");
        }
    }
}

#[test]
fn a_model_survives_its_file_to_the_last_bit() {
    for link in LINKS {
        for method in METHODS {
            let model = model(link, method);
            assert_eq!(read(&model.to_json()).unwrap(), model);
        }
    }
}

#[test]
fn a_file_that_is_newer_damaged_or_something_else_is_refused() {
    let mut good: serde_json::Value =
        serde_json::from_str(&model(Link::Linear, Method::FullBatch).to_json()).unwrap();
    // With it, every change is refused for one reason.
    assert!(good.as_object_mut().unwrap().remove("digest").is_some());
    let refused = |change: &dyn Fn(&mut serde_json::Value), why: &str| {
        let mut value = good.clone();
        change(&mut value);
        let error = read(&value.to_string()).unwrap_err();
        assert!(matches!(error, Error::Model { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    };
    // The control: unchanged, it is read.
    assert!(read(&good.to_string()).is_ok());
    refused(&|v| v["version"] = 6.into(), "newer");
    assert_eq!(good["version"], 5);
    refused(&|v| v["version"] = "1".into(), "version");
    refused(&|v| v["format"] = "another".into(), "format");
    refused(&|v| v["weights"] = serde_json::json!([1.0]), "one weight for every feature");
    refused(&|v| v["weights"] = serde_json::json!([1.0, null]), "invalid type");
    refused(&|v| v["weights"] = serde_json::json!([1.0, "NaN"]), "invalid type");
    refused(&|v| v["intercept"] = serde_json::json!(null), "invalid type");
    refused(&|v| drop(v.as_object_mut().unwrap().remove("certificate")), "certificate");
    assert!(matches!(read("weights: 1"), Err(Error::Model { .. })));
    let text = good.to_string();
    assert!(matches!(read(&text[..text.len() / 2]), Err(Error::Model { .. })));
    let huge = text.replacen("\"intercept\":", "\"intercept\":1e999,\"was\":", 1);
    assert!(matches!(read(&huge), Err(Error::Model { .. })));
}

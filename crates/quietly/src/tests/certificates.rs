use quietly_accounting::Neighbours;
use quietly_core::{budget::Budget, certificate::Certificate};
use quietly_data::{Encoding, Schema};
use quietly_engine::link::Link;
use quietly_noise::{Key, Source};

use crate::{
    Label,
    plan::{Plan, PlanRecord, Regression},
    spec::{Family, ModelSpec},
};

fn plan(rows_per_unit: u64, neighbours: Neighbours) -> Plan {
    let budget = Budget::new(1.0, 1e-6).unwrap().under(neighbours);
    let budget = budget.for_units_of(rows_per_unit).unwrap();
    Regression::new(Link::Linear).plan(20_000, 3, budget).unwrap()
}

fn certificate(rows_per_unit: u64, neighbours: Neighbours) -> Certificate {
    plan(rows_per_unit, neighbours).certificate("person", Some(Source::OperatingSystem)).unwrap()
}

/// The items of a list under a heading, each on one line again.
fn items(text: &str, heading: &str) -> Vec<String> {
    let after = text.split(&format!("\n{heading}\n")).nth(1).unwrap_or_default();
    let mut items: Vec<String> = vec![];
    for line in after.lines().take_while(|line| line.starts_with("  ")) {
        match (line.strip_prefix("  - "), items.last_mut()) {
            (Some(item), _) => items.push(item.into()),
            (None, Some(item)) => *item += &format!(" {}", line.trim_start()),
            (None, None) => panic!("{line}"),
        }
    }
    items
}

#[test]
fn what_is_not_covered_is_a_list_under_that_heading() {
    let mut certificate = certificate(1, Neighbours::AddRemove);
    certificate.not_covered.push("a long item, ".repeat(20).trim_end().into());
    let text = certificate.to_string();
    assert!(!text.lines().any(|line| line.starts_with("covered")), "{text}");
    assert_eq!(items(&text, "Not covered"), certificate.not_covered);
    assert_eq!(items(&text, "Public"), certificate.public);
    assert!(text.lines().filter(|l| l.starts_with("  ")).all(|line| line.chars().count() <= 120));
    // The same words in the same order on a page and in a notebook.
    for html in [certificate.label(), certificate.fragment()] {
        let after = html.split("Not covered</").nth(1).unwrap();
        let list = after.split("<ul>").nth(1).unwrap().split("</ul>").next().unwrap();
        let found: Vec<String> = list
            .lines()
            .filter_map(|line| Some(line.strip_prefix("<li>")?.strip_suffix("</li>")?.into()))
            .map(|item: String| item.replace("&#39;", "'"))
            .collect();
        assert_eq!(found, certificate.not_covered);
    }
}

/// A person with 8 rows: what is certified for them costs what was asked, and one row 1/8 of it.
#[test]
fn a_unit_of_eight_rows_is_certified_as_a_whole() {
    for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
        let (plan, certificate) = (plan(8, neighbours), certificate(8, neighbours));
        assert!(plan.epsilon() <= 0.125 && plan.epsilon() > 0.12, "{}", plan.epsilon());
        assert!(certificate.epsilon <= 1.0 && certificate.epsilon >= 8.0 * plan.epsilon());
        assert_eq!((certificate.budget, plan.unit_budget().delta()), (plan.unit_budget(), 1e-6));
        assert!(certificate.is_consistent());
        for text in [certificate.to_string(), certificate.label(), certificate.fragment()] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let text = text.replace("<bdi>", "").replace("</bdi>", "");
            assert!(text.contains("up to 8 rows each, as the schema declares"), "{text}");
            assert!(text.contains("more rows is NOT protected at this epsilon"), "{text}");
            assert!(text.contains("a certain person"), "{text}");
        }
        assert!(plan.to_string().contains("for the up to 8 rows of a unit"), "{plan}");
        // A curve of the unit holds the point of the unit, and promises no more than 8 rows pay.
        assert!(certificate.curve.iter().all(|(d, e)| *d >= 1e-6 || *e >= certificate.epsilon));
        // The control: the price of one row is not that of the unit.
        let mut cheaper = certificate.clone();
        cheaper.epsilon = plan.epsilon();
        assert!(!cheaper.is_consistent());
        let mut one = certificate.clone();
        one.budget = Budget::new(1.0, 1e-6).unwrap().under(neighbours);
        one.epsilon = plan.epsilon();
        assert!(one.contradiction().is_none(), "only the plan beside it tells");
    }
}

#[test]
fn one_row_claims_no_person() {
    for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
        let certificate = certificate(1, neighbours);
        for text in [certificate.relation(), certificate.odds(), plan(1, neighbours).to_string()] {
            assert!(text.contains("row") && !text.contains("person"), "{text}");
        }
        let text = certificate.to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let warned = "if a person has several rows, they are NOT protected at this epsilon";
        assert!(text.contains(warned), "{text}");
        assert_eq!(
            text.replace(warned, "").replace("(called person)", "").matches("person").count(),
            0
        );
        assert!(certificate.label().contains(warned) && certificate.fragment().contains(warned));
    }
}

/// All families plan for one row, and the fit is charged to the unit.
#[test]
fn every_family_plans_for_one_row() {
    let schema = "rows = 20000\n[columns]\na = { range = [0, 1] }\ny = { range = [0, 1] }\nc = { values = [0, 1] }";
    let schema = Schema::parse(schema).unwrap();
    let columns = ["a", "y", "c"].map(String::from);
    let budget = Budget::new(1.0, 1e-6).unwrap().for_units_of(4).unwrap();
    let families = [Family::Linear, Family::Relu, Family::Logistic, Family::Quantile, Family::Kan];
    for family in families {
        let target = if family == Family::Logistic { "c" } else { "y" };
        let only = ["a".to_string()];
        let encoding = Encoding::new(&schema, &columns, Some(&only), Some(target)).unwrap();
        let plan = ModelSpec::new(family).plan(&encoding, 20_000, budget).unwrap();
        assert_eq!(plan.unit_budget(), budget, "{family:?}");
        assert!(plan.epsilon() <= 0.25 && plan.epsilon() > 0.2, "{family:?} {}", plan.epsilon());
        let certificate = plan.certificate("person", Some(Key::from_seed(1).source())).unwrap();
        assert!(certificate.epsilon <= 1.0 && certificate.epsilon > 0.8, "{family:?}");
        // A plan that was written and read again is held to the unit's budget.
        let mut value = serde_json::to_value(&plan).unwrap();
        let read = |value: &serde_json::Value| {
            serde_json::from_value::<PlanRecord>(value.clone()).unwrap()
        };
        assert!(read(&value).check().is_ok(), "{family:?}");
        value["unit"]["rows_per_unit"] = 2.into();
        assert!(read(&value).check().is_err(), "{family:?}");
    }
}

use quietly_accounting::Neighbours;
use quietly_core::{budget::Budget, certificate::Certificate};
use quietly_engine::link::Link;
use quietly_noise::{Key, Source};

use super::Label;
use crate::{methods::Method, plan::Regression};

fn certificate(epsilon: f64, unit: &str, source: Option<Source>) -> Certificate {
    let budget = Budget::new(epsilon, 1e-6).unwrap().under(Neighbours::ReplaceOne);
    let plan = Regression::new(Link::Linear).plan(20_000, 5, budget).unwrap();
    plan.certificate(unit, source).unwrap()
}

fn good() -> Certificate {
    certificate(1.0, "patient", Some(Key::from_os().unwrap().source()))
}

/// Whether every tag that opens also closes, in order.
fn well_formed(html: &str) -> bool {
    let mut open: Vec<&str> = vec![];
    let mut rest = html;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((tag, next)) = after.split_once('>') else { return false };
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        match tag.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return false,
            Some(_) => {}
            None if tag.ends_with('/') || ["!DOCTYPE", "meta"].contains(&name) => {}
            None => open.push(name),
        }
        rest = next;
    }
    open.is_empty()
}

#[test]
fn a_label_says_what_its_certificate_says() {
    let certificate = good();
    let label = certificate.label();
    let epsilon = (certificate.epsilon * 1e4).ceil() / 1e4;
    for part in [
        format!("<b>{epsilon}</b> of a budget of 1"),
        "<b>1e-6</b>".into(),
        "one row (called <bdi>patient</bdi>)".into(),
        "the values of one row; the number of rows is public (replace-one)".into(),
        certificate.theorem.clone(),
        "right at most 73.1 times in 100".into(),
    ] {
        assert!(label.contains(&part), "{part}\n{label}");
    }
    for charge in certificate.stages.iter().flat_map(|stage| &stage.releases) {
        assert!(label.contains(&format!("<td>{}", charge.purpose)), "{}", charge.purpose);
        assert!(label.contains(&certificate.how(charge)), "{}", charge.purpose);
    }
    for item in certificate.public.iter().chain(&certificate.not_covered) {
        assert!(label.contains(&item.replace('\'', "&#39;")), "{item}");
    }
    assert!(label.contains("<h2>Covered</h2>") && label.contains("<td>covered</td>"));
    assert!(!label.contains("role=\"alert\""), "nothing to be alarmed about");
    assert!(well_formed(&label) && well_formed(&certificate.fragment()));
    assert!(!well_formed(&label.replace("</svg>", "")), "the check can fail");
}

#[test]
fn a_label_needs_nothing_from_elsewhere() {
    let (label, fragment) = (good().label(), good().fragment());
    for html in [label, fragment] {
        for foreign in
            ["http:", "https:", "//", "<script", "<link", "<img", "src=", "url(", "@import"]
        {
            assert!(!html.contains(foreign), "{foreign}");
        }
        assert!(!html.contains("NaN") && !html.contains("inf,"), "{html}");
    }
}

#[test]
fn what_a_user_typed_is_text_and_nothing_else() {
    let unit = "<script>alert(\"1\")</script> & 'co'\u{0}";
    let mut certificate = certificate(1.0, unit, None);
    certificate.public.push("column <img src=x onerror=alert(1)>".into());
    certificate.stages[0].name = "</table><b>".into();
    for html in [certificate.label(), certificate.fragment()] {
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert!(html.contains(
            "<bdi>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;co&#39;\\u{0}</bdi>"
        ));
        assert!(well_formed(&html));
    }
    assert!(certificate.label().contains("&lt;/table&gt;&lt;b&gt;"));
}

#[test]
fn the_curve_is_drawn_through_the_point_that_was_spent() {
    let certificate = good();
    let label = certificate.label();
    // The first line is that of the axes.
    let line = label.split("<polyline points=\"").nth(2).unwrap().split('"').next().unwrap();
    let points: Vec<(f64, f64)> = line
        .split(' ')
        .map(|point| point.split_once(',').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    // At the grid's own delta there is one point, not two.
    assert_eq!(points.len(), certificate.curve.len());
    // Down on paper is up in SVG: epsilon falls as delta grows.
    assert!(points.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1), "{points:?}");
    let dot = label.split("<circle r=\"5\" cx=\"").nth(1).unwrap();
    let cut = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
    let (x, y) = (cut(dot), cut(dot.split("cy=\"").nth(1).unwrap()));
    assert!(points.contains(&(x, y)), "{x} {y} {points:?}");
    assert_eq!(label.matches("<circle cx=").count(), points.len());
    assert_eq!(label.matches("<title>asked</title>").count(), 1);
}

#[test]
fn a_fixed_seed_and_no_privacy_at_all_are_shouted() {
    let seeded = certificate(1.0, "row", Some(Key::from_seed(1).source()));
    assert!(seeded.label().contains("TEST ONLY") && seeded.fragment().contains("TEST ONLY"));
    let budget = Budget::new(f64::INFINITY, 1e-6).unwrap();
    let plan = Regression::new(Link::Linear).method(Method::Exact).plan(1000, 2, budget).unwrap();
    let plain = plan.certificate("row", None).unwrap();
    assert!(plain.label().contains("NO PRIVACY") && plain.fragment().contains("NO PRIVACY"));
    assert!(!plain.label().contains("at most"), "no odds are promised");
    assert!(!plain.label().contains(">Covered<"), "nothing is covered");
    assert!(!plain.label().contains("<td>covered</td>"));
}

/// Pure budgets and budgets too small to ask anything have no curve; the page stands without.
#[test]
fn a_label_without_a_curve_says_so() {
    let plan = crate::plan::Convex::new(quietly_glm::Loss::Logistic).plan(
        20_000,
        3,
        Budget::pure(1.0).unwrap(),
    );
    let pure = plan.unwrap().certificate("row", None).unwrap().label();
    assert!(pure.contains("holds with delta 0") && !pure.contains("<svg"), "{pure}");
    let small = Budget::new(0.001, 1e-9).unwrap();
    let plan = Regression::new(Link::Linear).plan(10, 5, small).unwrap();
    let nothing = plan.certificate("row", None).unwrap();
    assert_eq!(nothing.epsilon, 0.0);
    assert!(nothing.label().contains("Epsilon 0 at every delta"), "{}", nothing.label());
    assert!(nothing.label().contains("<p>Nothing.</p>"));
}

#[test]
fn a_plan_is_text_within_a_page() {
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let mut plan = Regression::new(Link::Linear).plan(20_000, 5, budget).unwrap();
    plan.warnings.push("<b>".into());
    let html = plan.fragment();
    assert!(well_formed(&html) && html.lines().count() > 3, "{html}");
    assert!(!html.contains("<b>"));
}

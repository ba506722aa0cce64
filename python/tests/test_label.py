"""Certificates in every form: text, JSON, a fragment for notebooks, and the page for people who approve releases."""

import html.parser
import json
import os

import numpy as np
import pytest

import quietly

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (500, 2))
Y = X[:, 0] / 2
SCRIPT = "<script>alert(1)</script>"


class Tags(html.parser.HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def names(page: str) -> set[str]:
    return {tag for tag, _ in Tags(page).tags}


@pytest.fixture(scope="module")
def model():
    return quietly.LinearRegression(epsilon=1.0, rows=500).fit(X, Y)


def test_numbers_of_the_page_are_those_of_the_certificate(model, tmp_path):
    model.label(tmp_path / "label.html")
    page = (tmp_path / "label.html").read_text()
    certificate = model.certificate_
    said = json.loads(certificate.to_json())
    assert said["epsilon"] == certificate.epsilon <= certificate.budget == 1.0
    epsilon = f"{np.ceil(certificate.epsilon * 1e4) / 1e4:g}"
    assert f"<b>{epsilon}</b> of a budget of 1" in page
    assert f"epsilon  {epsilon} of a budget of 1" in str(certificate)
    assert f"<b>{epsilon}</b> of a budget of 1" in certificate._repr_html_()
    assert certificate.odds()[1:] in page.replace("&#39;", "'")
    assert "linear regression of target on 2 features" in page
    assert len(certificate.curve) == 13
    assert os.listdir(tmp_path) == ["label.html"]


def test_a_page_needs_nothing_from_elsewhere(model):
    for page in (model.certificate_.label(), model.certificate_._repr_html_()):
        for tag, attributes in Tags(page).tags:
            assert tag not in {"script", "link", "img", "iframe", "object", "base"}
            assert not {"src", "href", "onload", "onclick"} & set(attributes)
        assert "http:" not in page and "https:" not in page


def test_names_of_columns_and_units_are_text(tmp_path):
    schema = quietly.Schema({"a": (-1, 1), "b": (-1, 1), SCRIPT: (-1, 1)}, rows=500, unit=SCRIPT)
    model = quietly.LinearRegression(schema=schema, target=SCRIPT).fit(X, Y)
    model.label(tmp_path / "label.html")
    for page in ((tmp_path / "label.html").read_text(), model.certificate_._repr_html_(), model.plan_._repr_html_()):
        assert "script" not in names(page)
    assert "of &lt;script&gt;" in (tmp_path / "label.html").read_text()


def test_test_only_is_shouted():
    seeded = quietly.LinearRegression(random_state=1).fit(X, Y).certificate_
    assert "TEST ONLY" in seeded.label() and "TEST ONLY" in seeded._repr_html_()
    plain = quietly.LinearRegression(epsilon=float("inf")).fit(X, Y).certificate_
    assert "NO PRIVACY" in plain.label()
    own = quietly.LinearRegression().fit(X, Y).certificate_
    assert "TEST ONLY" not in own.label()


def test_a_table_in_memory_is_no_file(model):
    assert not any("file" in line for line in model.certificate_.public)
    assert any("which table was read" in line for line in model.certificate_.public)


def test_refusals_leave_nothing_behind(model, tmp_path):
    with pytest.raises(quietly.FileError):
        model.label(tmp_path / "no" / "folder.html")
    with pytest.raises(quietly.FileError):
        model.label(tmp_path)
    assert os.listdir(tmp_path) == []
    model.save(tmp_path / "model.quietly")
    changed = json.loads((tmp_path / "model.quietly").read_text())
    changed["certificate"]["epsilon"] = 0.01
    # A file that was changed has another digest; one without a digest contradicts its plan.
    for less in (changed, {name: value for name, value in changed.items() if name != "digest"}):
        (tmp_path / "less.quietly").write_text(json.dumps(less))
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(quietly.ModelError, match="digest" if "digest" in less else "different budgets"):
            quietly.load(tmp_path / "less.quietly")
    assert sorted(os.listdir(tmp_path)) == before


def test_a_report_takes_the_place_of_another(model, tmp_path):
    page = tmp_path / "label.html"
    page.write_text("a table")
    with pytest.raises(quietly.FileError, match="exists already"):
        model.label(page)
    assert page.read_text() == "a table"
    model.label(page, overwrite=True)
    assert page.read_text().startswith("<!DOCTYPE html>")
    model.label(page)
    link = tmp_path / "link.html"
    link.symlink_to(page)
    model.label(link)
    assert link.is_symlink() and not page.is_symlink()

"""Two small public tables with public schemas, for `quietly-lab reproduce kan --data DIR`.

usage: small_tables.py DIR

Writes breast-cancer.csv and digits.csv, each with its .schema.toml, from the copies that scikit-learn ships. Ranges are
those that are published with the tables (the summary statistics in scikit-learn's description, and 0 to 16 for pixels),
not taken from the rows.
"""
import re
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_digits


def write(folder, name, columns, ranges, rows, labels, classes):
    with open(folder / f"{name}.csv", "w") as file:
        file.write(",".join([*columns, "label"]) + "\n")
        for row, label in zip(rows, labels):
            file.write(",".join([*(repr(float(x)) for x in row), classes[label]]) + "\n")
    # Three in four rows are learnt from; a number of rows is public.
    lines = [f"rows = {len(rows) * 3 // 4}", "[columns]"]
    lines += [f'"{c}" = {{ range = [{low}, {high}] }}' for c, (low, high) in zip(columns, ranges)]
    values = ", ".join(f'"{c}"' for c in classes)
    lines.append(f"label = {{ values = [{values}] }}")
    (folder / f"{name}.schema.toml").write_text("\n".join(lines) + "\n")
    print(f"{folder / name}.csv: {len(rows)} rows, {len(columns)} features, {len(classes)} classes")


def published(description, names):
    """The Min and Max columns of the summary statistics in scikit-learn's description."""
    found = re.findall(r"^\s*([a-z ]+\([a-z ]+\)):\s+([\d.]+)\s+([\d.]+)\s*$", description, re.M)
    assert len(found) == len(names) == 30, "one line for every feature"
    return [(float(low), float(high)) for _, low, high in found]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    table = load_breast_cancer()
    columns = [name.replace(" ", "-") for name in table.feature_names]
    ranges = published(table.DESCR, columns)
    classes = [str(c) for c in table.target_names]
    write(folder, "breast-cancer", columns, ranges, table.data, table.target, classes)
    table = load_digits()
    columns = [f"pixel-{i}-{j}" for i in range(8) for j in range(8)]
    write(folder, "digits", columns, [(0, 16)] * 64, table.data, table.target, [str(k) for k in range(10)])


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main()

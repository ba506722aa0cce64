//! The same seed gives the same bits, however the rows are read.
use std::{fmt::Write, path::Path};

use quietly::{
    Encoding, FitInput, Learnable, Link, Method, Model, Plan, ReadOptions, Schema, Source,
};

use crate::common::{LINKS, METHODS, Plain, bits, budget, gaussian, options, run};

/// A plan of that method and no other: a planner that falls back to another would make these tests empty.
fn plan(link: Link, method: Method, rows: u64, width: usize) -> Plan {
    let plan = crate::common::plan(link, method, rows, width, budget(1.0));
    assert_eq!((plan.method(), plan.reach()), (method, Learnable::Weights));
    plan
}

/// Writes rows as CSV, in files of at most `rows` rows, with column `k` multiplied by `scale[k]`; the target is last.
fn write(folder: &Path, table: &Plain, rows: usize, scale: &[f64]) {
    let all: Vec<_> = table.rows().collect();
    for (i, part) in all.chunks(rows).enumerate() {
        let mut text = (0..table.width).map(|j| format!("x{j},")).collect::<String>() + "y\n";
        for (x, y) in part {
            for (x, s) in x.iter().zip(scale) {
                write!(text, "{:?},", x * s).unwrap();
            }
            writeln!(text, "{:?}", y * scale[table.width]).unwrap();
        }
        std::fs::write(folder.join(format!("part-{i:04}.csv")), text).unwrap();
    }
}

fn schema(table: &Plain, scale: &[f64], reach: f64) -> Schema {
    let mut text = format!("rows = {}\n[columns]\n", table.y.len());
    for (j, s) in scale[..table.width].iter().enumerate() {
        writeln!(text, "x{j} = {{ range = [{:?}, {s:?}] }}", -s).unwrap();
    }
    let most = reach * scale[table.width];
    writeln!(text, "y = {{ range = [{:?}, {most:?}] }}", -most).unwrap();
    Schema::parse(&text).unwrap()
}

pub(crate) fn fit(
    plan: &Plan,
    table: &Plain,
    files: usize,
    scale: &[f64],
    threads: usize,
) -> Model {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), table, table.y.len().div_ceil(files), scale);
    let source = Source::open([folder.path()], &ReadOptions::default()).unwrap();
    let schema = schema(table, scale, 16.0);
    let encoding = Encoding::new(&schema, source.columns(), None, Some("y")).unwrap();
    let fit = plan.fit(FitInput::source(&source, &encoding), options(3, threads)).unwrap();
    fit.model("person").unwrap()
}

fn weights(model: &Model) -> (f64, Vec<f64>) {
    (model.intercept, model.weights.clone())
}

#[test]
fn bits_do_not_depend_on_threads() {
    for link in LINKS {
        let table = gaussian(9001, 6, 0.4, link, 1);
        for method in METHODS {
            let plan = plan(link, method, 9000, 6);
            let one = bits(&run(&plan, &table, (-16.0, 16.0), 7, 1));
            for threads in [2, 3, 64] {
                let some = bits(&run(&plan, &table, (-16.0, 16.0), 7, threads));
                assert_eq!(some, one, "{link:?} {method:?} {threads}");
            }
            // The control: another seed gives other bits.
            assert_ne!(bits(&run(&plan, &table, (-16.0, 16.0), 8, 1)), one);
        }
    }
}

/// In full batch rows have no order. (In one pass they have: a row's place decides its step.)
#[test]
fn bits_do_not_depend_on_the_order_of_rows() {
    for link in LINKS {
        let table = gaussian(5000, 5, 0.4, link, 2);
        let plan = plan(link, Method::FullBatch, 5000, 5);
        let one = bits(&run(&plan, &table, (-16.0, 16.0), 7, 2));
        for seed in [1, 2] {
            assert_eq!(bits(&run(&plan, &table.shuffled(seed), (-16.0, 16.0), 7, 2)), one);
        }
    }
}

#[test]
fn bits_do_not_depend_on_files_and_disk_equals_memory() {
    for link in LINKS {
        let table = gaussian(20_000, 4, 0.4, link, 3);
        for method in METHODS {
            let plan = plan(link, method, 20_000, 4);
            let memory = bits(&run(&plan, &table, (-16.0, 16.0), 3, 2));
            for (files, threads) in [(1, 1), (1, 3), (7, 2)] {
                let model = fit(&plan, &table, files, &[1.0; 5], threads);
                assert_eq!(bits(&weights(&model)), memory, "{link:?} {method:?} {files} {threads}");
            }
        }
    }
}

/// docs/spec/regression.md#14, test 10: a power of two in the target and its range comes out again, bit for bit.
#[test]
fn a_scaled_target_scales_the_model() {
    for link in LINKS {
        let table = gaussian(4000, 5, 0.4, link, 4);
        for method in METHODS {
            let plan = plan(link, method, 4000, 5);
            let one = run(&plan, &table, (-5.0, 11.0), 7, 2);
            for power in [-40, -1, 3, 60] {
                let by = 2.0_f64.powi(power);
                let mut scaled = table.clone();
                scaled.y.iter_mut().for_each(|y| *y *= by);
                let (intercept, w) = run(&plan, &scaled, (-5.0 * by, 11.0 * by), 7, 2);
                let back = (intercept / by, w.iter().map(|w| w / by).collect());
                assert_eq!(bits(&back), bits(&one), "{link:?} {method:?} {power}");
            }
        }
    }
}

/// docs/spec/regression.md#14, test 10: columns in other units, with their ranges, give the same weights for
/// the encoded features.
#[test]
fn a_scaled_column_changes_nothing() {
    let table = gaussian(3000, 3, 0.4, Link::Linear, 5);
    for method in METHODS {
        let plan = plan(Link::Linear, method, 3000, 3);
        let one = weights(&fit(&plan, &table, 1, &[1.0; 4], 2));
        let scale = [2.0_f64.powi(-9), 1024.0, 1.0, 8.0];
        let other = weights(&fit(&plan, &table, 1, &scale, 2));
        let back = (other.0 / 8.0, other.1.iter().map(|w| w / 8.0).collect());
        assert_eq!(bits(&back), bits(&one), "{method:?}");
    }
}

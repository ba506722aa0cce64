use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use quietly_accounting::Neighbours;
use quietly_data::{Encoding, Schema, Source};
use quietly_engine::{
    backend::{Backend, Batch, memory::*},
    link::Link,
    query::{
        ClippedGradients, ColumnTree, Combined, Query, QuerySum, SecondMoment, TargetBins,
        TargetHistogram, TreeColumns,
    },
    residual::Residual,
    target_scaling::TargetScaling,
    transform::RowTransform,
};

use crate::queries::decode_query;

/// 3000 rows of 400 numbers, so that there are many parts; some are null records.
fn source() -> (Source, Encoding) {
    let number = |k: usize| ((k * 7919 % 1009) as f64 / 504.5 - 1.0) * 1.1;
    let numbers = Float64Array::from_iter_values((0..3000 * 400).map(number));
    let item = Arc::new(Field::new("item", DataType::Float64, true));
    let matrix: ArrayRef = Arc::new(FixedSizeListArray::new(item, 400, Arc::new(numbers), None));
    let target = |k: usize| if k % 17 == 3 { f64::NAN } else { number(5 * k + 1) };
    let target: ArrayRef = Arc::new(Float64Array::from_iter_values((0..3000).map(target)));
    let batch = RecordBatch::try_from_iter([("x", matrix), ("y", target)]).unwrap();
    let mut names: Vec<String> = (0..400).map(|k| format!("x{k}")).collect();
    let columns: String = names.iter().map(|n| format!("{n} = {{ range = [-1, 1] }}\n")).collect();
    let schema = format!("rows = 3000\n[columns]\n{columns}y = {{ range = [-1, 1] }}");
    names.push("y".into());
    let schema = Schema::parse(&schema).unwrap();
    let encoding = Encoding::new(&schema, &names, None, Some("y")).unwrap();
    (Source::in_memory(names, vec![batch]).unwrap(), encoding)
}

/// Queries under maps that come and go, and some that no map serves.
fn queries() -> Vec<Box<dyn Query>> {
    let map = |by: f64| {
        RowTransform::linear(
            (0..3 * 401).map(|k| by * ((k * 31 % 101) as f64 - 50.0) / 500.0).collect(),
            400,
        )
    };
    let gradients = |transform: &RowTransform, at: f64| -> Box<dyn Query> {
        Box::new(ClippedGradients {
            transform: transform.clone(),
            weights: vec![at; 3],
            residual: Some(Residual::approaching(Link::Linear)),
            unit: TargetScaling::ITSELF,
            centre: 0.1,
            clip: Some(0.5),
            lattice_clip: None,
            thresholds: Some(vec![0.1, 0.2, 0.4]),
        })
    };
    let targets = || -> Box<dyn Query> {
        let bins = TargetBins::Sizes(vec![0.25, 0.5]);
        Box::new(TargetHistogram { unit: TargetScaling::ITSELF, bins })
    };
    let moment = |transform| -> Box<dyn Query> { Box::new(SecondMoment { transform, norm: 3.0 }) };
    let tree = |columns| -> Box<dyn Query> {
        Box::new(ColumnTree { columns, neighbours: Neighbours::ReplaceOne })
    };
    let both = |a, b| -> Box<dyn Query> { Box::new(Combined::new(vec![a, b])) };
    let (one, other) = (map(1.0), map(-0.5));
    vec![
        targets(),
        gradients(&one, 0.0),
        gradients(&one, 0.2),
        both(gradients(&other, 0.2), targets()),
        targets(),
        gradients(&other, -0.1),
        tree(TreeColumns::Features(vec![0, 3, 399])),
        tree(TreeColumns::Target(TargetScaling::ITSELF)),
        moment(RowTransform::plain(400, 0.5)),
        moment(one.clone()),
        both(gradients(&one, 0.3), gradients(&other, 0.3)),
        gradients(&one, 0.4),
    ]
}

/// Whether two sums have the same bits, and are not those of no rows.
fn assert_alike(found: &QuerySum, wanted: &QuerySum, query: &dyn Query) {
    let zero = QuerySum::zero(query).encode();
    _ = found.encode().zip(wanted.encode()).zip(zero).map(|((found, wanted), zero)| {
        assert!(found == wanted && wanted != zero, "{:?}", query.outputs());
    });
}

#[test]
fn borrowed_arrays_give_the_sums_of_a_table() {
    let (source, encoding) = source();
    let table = source.read(&encoding, 2).unwrap();
    let mut whole = InMemory::new(&table, 2);
    let mut wanted = |query: &dyn Query| whole.sum(&Batch::All, query).unwrap();
    // No block is cached, a few are, or all.
    for bytes in [0, 5 << 20, 1 << 30] {
        for threads in [1, 3] {
            let picks = source.gather(&encoding).unwrap().unwrap();
            let mut rows = Borrowed::caching(picks, bytes, threads);
            for query in queries() {
                let found = rows.sum(&Batch::All, &*query).unwrap();
                assert_alike(&found, &wanted(&*query), &*query);
            }
        }
    }
}

#[test]
fn an_encoded_query_gives_the_same_sums() {
    let (source, encoding) = source();
    let table = source.read(&encoding, 2).unwrap();
    let mut rows = InMemory::new(&table, 2);
    for query in queries() {
        let bytes = query.encode();
        let again = decode_query(&bytes).unwrap();
        assert_eq!(again.outputs(), query.outputs());
        let wanted = rows.sum(&Batch::All, &*query).unwrap();
        assert_alike(&rows.sum(&Batch::All, &*again).unwrap(), &wanted, &*query);
        let bad: [&[u8]; 4] = [&bytes[..bytes.len() - 1], &bytes[1..], b"", b"combined\n"];
        for bad in bad {
            assert!(decode_query(bad).is_none());
        }
    }
}

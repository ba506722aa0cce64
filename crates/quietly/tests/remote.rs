//! Tables in parts, grouped by step beforehand, and runs that are interrupted and resume.
use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use quietly::{
    BatchDraw, Budget, Charge, Checkpoint, Encoding, Error, Family, FitInput, FitOptions, Key,
    Link, Method, Model, ModelSpec, Neighbours, PartitionedTable, Plan, Private, Regression,
    Sampler, Schema, Source, TablePart,
    backend::{Backend, Batch, ParquetParts},
    query::{Query, QuerySum},
};

/// A table of so many rows in two files, with gaps.
fn table(folder: &Path, rows: usize) -> Source {
    let column = |k: u64| -> ArrayRef {
        let number = |i: u64| {
            let x = (i * 2_654_435_761 + k * 40_503).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            x as f64 / 2f64.powi(23) - 1.0
        };
        let y = |i: u64| 0.5 * number(i) + if k == 3 { 0.2 } else { 0.0 };
        let cell =
            |i: u64| if i % 97 == k { None } else { Some(if k == 3 { y(i) } else { number(i) }) };
        Arc::new((0..rows as u64).map(cell).collect::<Float64Array>())
    };
    let names = ["a", "b", "c", "y"];
    let columns = names.iter().enumerate().map(|(k, name)| (*name, column(k as u64), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let half = (rows / 2 + 7).min(rows);
    for (file, part) in [batch.slice(0, half), batch.slice(half, rows - half)].iter().enumerate() {
        let file = fs::File::create(folder.join(format!("{file}.parquet"))).unwrap();
        let small = WriterProperties::builder().set_max_row_group_row_count(Some(900)).build();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(small)).unwrap();
        writer.write(part).unwrap();
        writer.close().unwrap();
    }
    Source::open([folder], &Default::default()).unwrap()
}

fn encoding(source: &Source) -> Encoding {
    let schema = "rows = 6000\n[columns]\na = { range = [-1, 1] }\nb = { range = [-1, 1], missing = \"drop\" }\n\
                  c = { range = [-1, 1] }\ny = { range = [-1, 1] }";
    Encoding::new(&Schema::parse(schema).unwrap(), source.columns(), None, Some("y")).unwrap()
}

fn plan(method: Method) -> Plan {
    let budget = Budget::new(2.0, 1e-6).unwrap();
    let regression = Regression::new(Link::Linear).method(method);
    let regression = if method == Method::OnePass { regression.steps(12) } else { regression };
    regression.plan(6000, 3, budget).unwrap()
}

/// A backend that fails before the query of some number, and counts.
struct Tired<'a> {
    rows: &'a mut dyn Backend,
    asked: usize,
    until: usize,
}

impl Backend for Tired<'_> {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        self.rows.begin(draw)
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        self.rows.count()
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        if self.asked == self.until {
            return Err(Error::Remote { address: "here".into(), why: "enough".into() });
        }
        self.asked += 1;
        self.rows.sum(batch, query)
    }
}

fn fit(
    plan: &Plan,
    backend: &mut dyn Backend,
    encoding: &Encoding,
    checkpoint: Option<Checkpoint>,
    seed: u64,
) -> Result<Model, Error> {
    let options = options(seed).checkpoint(checkpoint);
    plan.fit(FitInput::backend(backend, encoding), options)?.model("row")
}

fn options<'a>(seed: u64) -> FitOptions<'a> {
    FitOptions::new(Charge::without_ledger(Key::from_seed(seed))).threads(2)
}

fn in_parts(source: &Source, plan: &Plan, encoding: &Encoding) -> ParquetParts {
    ParquetParts::new(vec![source.parts().unwrap()], plan.reading(encoding), 2)
}

/// Plans of every algorithm whose releases are sums, with what tells them apart.
fn sum_plans(encoding: &Encoding) -> Vec<(String, Plan)> {
    use Family::{Auto, Kan, Linear, Relu, Robust};
    let mut plans = Vec::new();
    let mut add = |spec: &ModelSpec, name: &str| {
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let budget = Budget::new(2.0, 1e-6).unwrap().under(neighbours);
            let Ok(plan) = spec.plan(encoding, 6000, budget) else { continue };
            if plan.check_sums().is_ok() && plan.method() != Method::OnePass {
                plans.push((format!("{name} {}", neighbours.name()), plan));
            }
        }
    };
    for family in [Linear, Relu, Robust] {
        for method in Method::ALL {
            let mut spec = ModelSpec::new(family);
            spec.method = Some(method.name().into());
            spec.public_rows = matches!(method, Method::DpGlmtron | Method::DpSgdOneRow);
            let convex = family == Robust || method == Method::DpPgd;
            spec.radius = convex.then_some(2.0);
            spec.constraint = (family == Robust).then(|| "l2".into());
            // Rows in parts are read anew for every step: a few steps will do.
            for steps in [Some(4), None] {
                let spec = ModelSpec { steps, ..spec.clone() };
                let plan = spec.plan(encoding, 6000, Budget::new(2.0, 1e-6).unwrap());
                if plan.is_ok_and(|plan| plan.sampler().steps().is_none_or(|steps| steps < 100)) {
                    add(&spec, &format!("{family:?} {}", method.name()));
                    break;
                }
            }
        }
    }
    for (sampler, noise) in [
        ("full-batch", "independent"),
        ("poisson", "independent"),
        ("fixed-size", "independent"),
        ("balls-and-bins", "lambda=0.5"),
        ("cyclic", "lambda=0.5"),
    ] {
        let mut spec = ModelSpec::new(Kan);
        (spec.hidden_layer_sizes, spec.spline_basis) = (Some(vec![3]), Some(5));
        (spec.sampler, spec.noise_correlation) = (Some(sampler.into()), Some(noise.into()));
        (spec.epochs, spec.batches_per_epoch) = (Some(3), Some(4));
        add(&spec, &format!("kan {sampler}"));
    }
    // With bends of pairs.
    add(&ModelSpec::new(Auto), "auto additive");
    plans
}

#[test]
fn rows_in_parts_give_the_bits_of_rows_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let source = table(folder.path(), 6000);
    let encoding = encoding(&source);
    let mut methods = BTreeSet::new();
    for (name, plan) in sum_plans(&encoding) {
        let public = source.read_public(&encoding, 2).unwrap();
        let run =
            |input| plan.fit(input, options(3).public(&public)).unwrap().model("row").unwrap();
        let whole = run(FitInput::source(&source, &encoding));
        let mut backend = in_parts(&source, &plan, &encoding);
        let parts = run(FitInput::backend(&mut backend, &encoding));
        assert_eq!(whole.to_json(), parts.to_json(), "{name}");
        methods.insert(name.split(' ').take(2).collect::<Vec<_>>().join(" "));
    }
    // Of linear and ReLU regression 18 algorithms beside one pass, of convex losses 3, networks with 5 samplers, and the additive one.
    assert_eq!(methods.len(), 30, "{methods:?}");
}

/// A run that resumes has another key: it may not draw again what an earlier step used.
#[test]
fn only_what_is_drawn_anew_in_every_step_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let source = table(folder.path(), 6000);
    let encoding = encoding(&source);
    let (mut resumable, mut refused) = (0, 0);
    for (name, plan) in sum_plans(&encoding) {
        let path = folder.path().join("checkpoint");
        let open = || Checkpoint::open(&path, &plan.identity(), "table", Some(3), None).unwrap();
        if let Err(error) = plan.check_resumable(None) {
            assert!(error.to_string().contains("checkpoint must be left out"), "{error}");
            let groups = matches!(
                plan.sampler(),
                Sampler::RandomAllocation { .. }
                    | Sampler::Partition { .. }
                    | Sampler::BallsAndBins { .. }
                    | Sampler::Cyclic { .. }
                    | Sampler::OrderedPartition { .. }
            );
            assert!(groups, "{name}");
            let mut parts = in_parts(&source, &plan, &encoding);
            assert!(fit(&plan, &mut parts, &encoding, Some(open()), 3).is_err(), "{name}");
            refused += 1;
            continue;
        }
        resumable += 1;
        let public = source.read_public(&encoding, 2).unwrap();
        let run = |until: usize, checkpoint: Option<Checkpoint>| {
            let mut parts = in_parts(&source, &plan, &encoding);
            let mut tired = Tired { rows: &mut parts, asked: 0, until };
            let options = options(3).public(&public).checkpoint(checkpoint);
            plan.fit(FitInput::backend(&mut tired, &encoding), options)?.model("row")
        };
        let whole = run(usize::MAX, None).unwrap();
        run(3, Some(open())).unwrap_err();
        assert!(open().answered() > 0, "{name}");
        let resumed = run(usize::MAX, Some(open())).unwrap();
        assert_eq!(whole.to_json(), resumed.to_json(), "{name}");
        // The checkpoint replies for rows in memory, too.
        let memory = FitInput::source(&source, &encoding);
        let again = plan.fit(memory, options(3).public(&public).checkpoint(open())).unwrap();
        assert_eq!(whole.to_json(), again.model("row").unwrap().to_json(), "{name}");
        open().finish().unwrap();
        for left in ["checkpoint", "checkpoint.head", "checkpoint.done"] {
            _ = fs::remove_file(folder.path().join(left));
        }
    }
    assert!(resumable > 20 && refused > 10, "{resumable} {refused}");
}

/// However often a run is interrupted, no query is answered twice once its entry is written, and the model is that of an uninterrupted
/// run. The control: without a checkpoint all of them are asked again.
#[test]
fn a_run_goes_on_where_it_was_broken_off() {
    let folder = tempfile::tempdir().unwrap();
    let source = table(folder.path(), 6000);
    let (encoding, plan) = (encoding(&source), plan(Method::FullBatch));
    let whole = fit(&plan, &mut in_parts(&source, &plan, &encoding), &encoding, None, 3).unwrap();
    let path = folder.path().join("checkpoint");
    let open = || Checkpoint::open(&path, &plan.identity(), "table", Some(3), None).unwrap();
    let mut all = 0;
    for sitting in 0.. {
        let mut parts = in_parts(&source, &plan, &encoding);
        let mut tired = Tired { rows: &mut parts, asked: 0, until: 4 };
        assert_eq!(open().answered(), all);
        let fitted = fit(&plan, &mut tired, &encoding, Some(open()), 3);
        all += tired.asked;
        match fitted {
            Ok(model) => {
                assert!(sitting >= 3);
                assert_eq!(model.to_json(), whole.to_json());
                break;
            }
            Err(error) => assert!(matches!(error, Error::Remote { .. }), "{error}"),
        }
    }
    let mut parts = in_parts(&source, &plan, &encoding);
    let mut patient = Tired { rows: &mut parts, asked: 0, until: usize::MAX };
    fit(&plan, &mut patient, &encoding, None, 3).unwrap();
    assert_eq!(patient.asked, all, "every question was asked once");
    let checkpoint = fs::read(&path).unwrap();
    let mark = fs::read(folder.path().join("checkpoint.head")).unwrap();
    // A whole checkpoint gives the model again, and asks nothing.
    let mut parts = in_parts(&source, &plan, &encoding);
    let mut never = Tired { rows: &mut parts, asked: 0, until: 0 };
    let again = fit(&plan, &mut never, &encoding, Some(open()), 3).unwrap();
    assert_eq!(again.to_json(), whole.to_json());
    open().finish().unwrap();
    assert!(!path.exists());
    // A finished run never resumes, whatever files are restored.
    for (name, old) in [("checkpoint", &checkpoint), ("checkpoint.head", &mark)] {
        fs::write(folder.path().join(name), old).unwrap();
    }
    let error = Checkpoint::open(&path, &plan.identity(), "table", Some(3), None)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("is complete"), "{error}");
}

#[test]
fn checkpoints_of_other_runs_copies_and_changed_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = table(folder.path(), 6000);
    let (encoding, plan) = (encoding(&source), plan(Method::FullBatch));
    let path = folder.path().join("checkpoint");
    let mut parts = in_parts(&source, &plan, &encoding);
    let checkpoint = Checkpoint::open(&path, &plan.identity(), "table", Some(3), None).unwrap();
    let busy = Checkpoint::open(&path, &plan.identity(), "table", Some(3), None).err().unwrap();
    assert!(busy.to_string().contains("another run is using this checkpoint"), "{busy}");
    fit(&plan, &mut Tired { rows: &mut parts, asked: 0, until: 5 }, &encoding, Some(checkpoint), 3)
        .unwrap_err();
    let refused = |table: &str, seed, say: &str| {
        let error =
            Checkpoint::open(&path, &plan.identity(), table, seed, None).err().unwrap().to_string();
        assert!(error.contains(say), "{error}");
    };
    refused("other", Some(3), "another table");
    refused("table", Some(4), "another seed");
    refused("table", None, "another seed");
    let copy = folder.path().join("copy");
    fs::copy(&path, &copy).unwrap();
    let error = Checkpoint::open(&copy, &plan.identity(), "table", Some(3), None)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("copied"), "{error}");

    // A page that was cut off is taken from the mark; one that says something else is refused, and never a panic.
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text.lines().count(),
        6,
        "a line before, and a page for every question that was answered"
    );
    let rewrite = |text: &str| {
        fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        fs::write(&path, text).unwrap();
    };
    rewrite(&text[..text.len() - 9]);
    assert_eq!(
        Checkpoint::open(&path, &plan.identity(), "table", Some(3), None).unwrap().answered(),
        5
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "the page is there again");
    rewrite(&(text.lines().take(4).collect::<Vec<_>>().join("\n") + "\n"));
    refused("table", Some(3), "older than what its run released");
    let first = text.lines().next().unwrap();
    for page in [
        "[]",
        "[{\"choice\":{\"purpose\":\"target scale\",\"at\":99999}}]",
        "nonsense",
        "[{\"sum\":{\"purpose\":\"target scale\",\"values\":[1.0],\"noise\":1.0}}]",
    ] {
        rewrite(&format!("{first}\n{page}\n"));
        let error = match Checkpoint::open(&path, &plan.identity(), "table", Some(3), None) {
            Ok(checkpoint) => fit(&plan, &mut parts, &encoding, Some(checkpoint), 3).unwrap_err(),
            Err(error) => error.into(),
        };
        let error = error.to_string();
        assert!(error.contains("changed") || error.contains("older"), "{page}: {error}");
    }
    // What was never begun leaves nothing behind, and another run has another name, whatever its file is called.
    fs::remove_file(&path).unwrap();
    let open = || Checkpoint::open(&path, &plan.identity(), "table", Some(3), None).unwrap();
    assert!(!open().is_begun() && !path.exists());
    let begin = || {
        let mut checkpoint = open();
        checkpoint.begin().unwrap();
        checkpoint.run().to_string()
    };
    let one = begin();
    assert!(open().is_begun() && begin() == one);
    fs::remove_file(&path).unwrap();
    assert_ne!(begin(), one);
    // A checkpoint is for one plan.
    let other =
        Regression::new(Link::Linear).plan(6000, 3, Budget::new(1.0, 1e-6).unwrap()).unwrap();
    let error = fit(&other, &mut parts, &encoding, Some(open()), 3).unwrap_err();
    assert!(error.to_string().contains("checkpoint"), "{error}");
    for diary in ["my diary\n", "my diary"] {
        rewrite(diary);
        refused("table", Some(3), "not a checkpoint");
        assert_eq!(fs::read_to_string(&path).unwrap(), diary);
    }
}

/// A prepared table has every record once, in the step that one pass over the table as it came gives it.
#[test]
fn a_prepared_table_gives_the_bits_of_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    let source = table(folder.path(), 6000);
    let (encoding, plan) = (encoding(&source), plan(Method::OnePass));
    assert_eq!(plan.method(), Method::OnePass);
    let whole = plan.fit(FitInput::source(&source, &encoding), options(3)).unwrap();
    let whole = whole.model("row").unwrap();
    let place = folder.path().join("prepared");
    let prepare = |key: &Key, place: &Path| {
        let (prepared, preparing, parts) =
            PartitionedTable::begin(&source, 12, place, key).unwrap();
        assert!(!format!("{preparing:?}").contains("secret"));
        // Done twice, in any order: the same.
        let order = (0..parts.len()).chain((0..parts.len()).rev());
        let mut sizes = vec![vec![]; parts.len()];
        order.for_each(|k| sizes[k] = preparing.group(k, &parts[k]).unwrap().name().unwrap());
        prepared.finish(place, sizes).unwrap()
    };
    prepare(&Key::from_seed(3), &place);
    let prepared = PartitionedTable::read(&place).unwrap().unwrap();
    let steps = prepared.steps(&place).unwrap();
    assert_eq!(steps.iter().flatten().map(TablePart::rows).sum::<u64>(), 6000);
    let mut rows = ParquetParts::new(steps, plan.reading(&encoding), 2);
    let mut run = |plan: &Plan| {
        let input = FitInput::backend(&mut rows, &encoding);
        plan.fit(input.allocated(Some(&prepared.allocation)), options(3))?.model("row")
    };
    let model = run(&plan).unwrap();
    assert_eq!((model.intercept, &model.weights), (whole.intercept, &whole.weights));
    assert_eq!(model.certificate.allocation.as_ref(), Some(&prepared.allocation));
    assert!(model.certificate.is_consistent());
    // Rows that were not partitioned do not get the allocation into their certificate.
    let input = FitInput::source(&source, &encoding).allocated(Some(&prepared.allocation));
    assert!(plan.fit(input, options(3)).unwrap_err().to_string().contains("allocation"));
    // Another number of steps is another theorem.
    let other = Regression::new(Link::Linear).method(Method::OnePass).steps(13);
    let other = other.plan(6000, 3, Budget::new(2.0, 1e-6).unwrap()).unwrap();
    assert!(run(&other).unwrap_err().to_string().contains("partitioned for 12 steps"));

    // Samples of rows by place are not drawn over groups, and groups that are not there are not recorded.
    let steps = prepared.steps(&place).unwrap();
    let mut grouped = ParquetParts::new(steps, plan.reading(&encoding), 2);
    let mut whole_table = in_parts(&source, &plan, &encoding);
    let sampled = self::plan(Method::DpSgd);
    assert!(matches!(sampled.sampler(), Sampler::Poisson { .. }));
    for (plan, rows, allocation) in
        [(&sampled, &mut grouped, None), (&plan, &mut whole_table, Some(&prepared.allocation))]
    {
        let input = FitInput::backend(rows, &encoding).allocated(allocation);
        let error = plan.fit(input, options(3)).unwrap_err();
        assert!(error.to_string().contains("grouped"), "{error}");
    }

    // Where steps are secret, one run may use them: it may come back, and no other is let in.
    let place = folder.path().join("hidden");
    let prepared = prepare(&Key::from_os().unwrap(), &place);
    prepared.check_unused(&place).unwrap();
    prepared.claim(&place, "one").unwrap();
    prepared.claim(&place, "one").unwrap();
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    prepared.claim(&copy, "one").unwrap();
    prepared.close(&copy, "one").unwrap();
    assert!(prepared.claim(&copy, "one").is_err(), "a run that has ended does not come back");
    for error in [prepared.claim(&place, "two"), prepared.check_unused(&place)] {
        assert!(error.unwrap_err().to_string().contains("another run"));
    }
    assert!(PartitionedTable::begin(&source, 12, &place, &Key::from_seed(1)).is_err(), "not empty");
    fs::remove_file(place.join("prepared.json")).unwrap();
    assert!(PartitionedTable::read(&place).is_err(), "not finished");
    assert!(PartitionedTable::read(&folder.path().join("nothing")).unwrap().is_none());
}

/// A table without rows is a table.
#[test]
fn nothing_can_be_prepared_and_fitted_too() {
    let folder = tempfile::tempdir().unwrap();
    let source = table(folder.path(), 0);
    let (encoding, plan) = (encoding(&source), plan(Method::FullBatch));
    fit(&plan, &mut in_parts(&source, &plan, &encoding), &encoding, None, 3).unwrap();
    let place = folder.path().join("prepared");
    let (prepared, _, parts) =
        PartitionedTable::begin(&source, 12, &place, &Key::from_seed(3)).unwrap();
    assert!(parts.is_empty());
    prepared.finish(&place, vec![]).unwrap();
    let steps = PartitionedTable::read(&place).unwrap().unwrap().steps(&place).unwrap();
    assert!(steps.len() == 12 && steps.iter().all(Vec::is_empty));
}

//! `quietly plan` and `quietly fit`: what will be done, and doing it.
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Args;
use quietly::{
    AnyAlgorithm, Charge, Checkpoint, Expansion, Family, FitInput, FitOptions, Ledger, Link, Plan,
    ReadOptions, Run, Schema, Source,
};
use serde_json::{Value, json};

use crate::{
    certificate,
    error::Failure,
    format,
    ledger::{Charging, Receipt, pay, same},
    parse::Count,
    remote::{self, Away, There},
    reserved::Reserved,
    tables::{Files, SchemaFile, beside, files_read, key, usual_delta},
    terminal::{Progress, Screen, WIDTH},
};

pub(crate) use self::args::{Kind, method};
use self::args::{Model, ModelArgs};

pub(crate) mod args;

#[derive(Args, Debug)]
pub(crate) struct PlanOnly {
    #[arg(value_enum, hide_possible_values = true, value_name = "MODEL", help = Model::list())]
    kind: Model,
    /// The public schema
    #[arg(value_name = "SCHEMA")]
    schema: PathBuf,
    /// The table whose header lists the columns that the schema's "*" stands for; no row is read
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Fit {
    #[arg(value_enum, hide_possible_values = true, value_name = "MODEL", help = Model::list())]
    kind: Model,
    #[command(flatten)]
    table: Files,
    #[command(flatten)]
    schema: SchemaFile,
    #[command(flatten)]
    model: ModelArgs,
    /// The model file to write; TARGET-MODEL.quietly by default
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the model file; the old one is kept as FILE.1
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    charging: Charging,
    #[command(flatten)]
    away: Away,
    /// A fixed seed, for tests: anyone who knows the seed can remove the noise
    #[arg(long, value_name = "N")]
    seed: Option<Count>,
}

/// Plans, and reads no data.
pub(crate) fn plan(only: &PlanOnly, screen: &mut Screen) -> Result<(), Failure> {
    let schema = Schema::read(&only.schema).map_err(quietly::Error::from)?;
    // A `*` stands for columns that only the header of the table knows.
    let columns = match &only.header {
        Some(table) => Source::open([table], &ReadOptions::of_schema(&schema))
            .map_err(quietly::Error::from)?
            .columns()
            .to_vec(),
        None if schema.columns.iter().any(|(name, _)| name == "*") => return Err(Failure::Header),
        None => schema.columns.iter().map(|(name, _)| name.clone()).collect(),
    };
    let encoding = only.model.columns.encoding(&schema, &columns)?;
    let plan = only.model.plan(only.kind, &schema, &encoding, None, None)?;
    if only.json {
        let mut json = serde_json::to_value(&plan).expect("plain fields");
        if let Some(why) = auto(&plan) {
            json["auto"] = why;
        }
        return Ok(screen.say_json(&json)?);
    }
    explain(&plan, screen)?;
    screen.say(&headline(&plan, &only.model.columns.target, &schema, screen))?;
    screen.say(&plan.to_string())?;
    warn(&plan, screen)?;
    let stem = only.schema.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().unwrap_or_default();
    let table = only.header.clone().unwrap_or_else(|| format!("{stem}.csv").into());
    let (schema, table) = (only.schema.display(), table.display());
    let flags = only.model.typed();
    screen.say("\nNothing was spent, and no row was read.")?;
    Ok(screen.say(&format!(
        "\nnext: quietly fit {} {table} --schema {schema}{flags}",
        only.kind.name()
    ))?)
}

impl Fit {
    /// Opens a file of public rows, which none of the table's own is.
    fn public(&self, file: &Path, schema: &Schema) -> Result<Source, Failure> {
        if self.table.files.iter().any(|table| same(table, file)) {
            let want = "a public file, not the table itself";
            let got = file.display().to_string();
            return Err(quietly::Error::Parameter { name: "public", want, got }.into());
        }
        self.charging.expect_public(&beside(file), &[file.into()])?;
        self.table.reading.open(&[file.into()], ReadOptions::of_schema(schema))
    }
}

/// Plans, reads, releases and saves.
pub(crate) fn fit(fit: &Fit, screen: &mut Screen) -> Result<(), Failure> {
    let started = Instant::now();
    let reading = &fit.table.reading;
    let schema_file = fit.schema.path(&fit.table.files[0]);
    let schema = fit.schema.read(&fit.table.files[0])?;
    let source = reading.open(&fit.table.files, ReadOptions::of_schema(&schema))?;
    let columns = &fit.model.columns;
    let mut encoding = columns.encoding(&schema, source.columns())?;
    let ledger = fit.charging.open(&schema_file, &fit.table.files)?;
    let usual = usual(ledger.as_ref(), fit.away.file(), schema.rows);
    let named = fit.kind.0.of_target(&encoding);
    if source.is_sparse() && !matches!(named, Family::Linear | Family::Relu | Family::Kan) {
        encoding = encoding.with_symmetric_ranges();
    }
    let prepared = remote::prepared(&fit.table.files)?;
    let steps = prepared.as_ref().map(|prepared| prepared.allocation.steps);
    let plan = fit.model.plan(fit.kind, &schema, &encoding, steps, usual)?;
    // What is public is refused before anything is spent: names and types, and an output that cannot be written.
    let prepared = prepared.filter(|_| plan.method() == quietly::Method::OnePass);
    match &prepared {
        Some(_) => source.check(&encoding, Some(&schema)).map_err(quietly::Error::from)?,
        None => plan.check_source(&source, &encoding, &schema)?,
    }
    let default = || format!("{}-{}.quietly", columns.target, kind(&plan, named)).into();
    let path = fit.output.clone().unwrap_or_else(default);
    let mut inputs = fit.table.files.clone();
    inputs.push(schema_file);
    inputs.extend(fit.model.public.clone());
    inputs.extend(ledger.as_ref().map(|ledger| ledger.path().into()));
    inputs.extend(fit.away.file().map(Into::into));
    let public = fit.model.public.as_ref().map(|file| fit.public(file, &schema)).transpose()?;
    let (key, threads) = (key(fit.seed)?, reading.threads()?);
    let public = public.map(|rows| rows.read_public(&encoding, threads)).transpose();
    let public = public.map_err(quietly::Error::from)?;
    let reserved = Reserved::new(&path, &inputs, plan.model_bytes(&encoding), fit.force)?;
    if !reading.json {
        explain(&plan, screen)?;
        screen.say(&headline(&plan, &columns.target, &schema, screen))?;
        screen.say(&format::wrap(&files_read(&source), "", WIDTH))?;
        warn(&plan, screen)?;
    }
    let what = format!("{} of {}", titled(&plan), columns.target);
    let there = match fit.away.is_asked_for(&plan, prepared.as_ref()) {
        true => {
            let from = (&source, &fit.table.files[..]);
            let how = (&encoding, &schema.unit[..]);
            Some(fit.away.there(&plan, from, prepared, how, (&key, threads), ledger.as_ref())?)
        }
        false => None,
    };
    let run = match &there {
        Some(there) => there.run(&what)?,
        None => Run::new(&what)?,
    };
    let name = run.name.clone();
    // A resumed run was charged when it began.
    let (charge, mut receipt) = match there.as_ref().is_some_and(There::goes_on) {
        true => {
            if !reading.json {
                screen.say("resuming the interrupted run; it is not charged again")?;
            }
            (Charge::resumed(plan.unit_budget(), key), None)
        }
        // A plan that asks nothing costs nothing.
        false if plan.budget().is_private() && plan.stages().is_empty() => {
            (Charge::without_ledger(key), None)
        }
        false => pay(ledger, run, plan.unit_budget(), key)?,
    };
    let progress = Progress::new("reading");
    let mut watch = |at: quietly::Progress| {
        progress.say(&at.to_string());
        ControlFlow::Continue(())
    };
    let save = |model: &mut quietly::Model| {
        model.certificate.add_files(&source.file_names());
        reserved.save(model.to_json().as_bytes())
    };
    let options =
        FitOptions::new(charge).threads(threads).watch(&mut watch).public(public.as_ref());
    let model = match there {
        Some(there) => there.fit((&plan, &name), &encoding, &schema.unit, options, save)?,
        None => {
            let input = FitInput::source(&source, &encoding);
            let mut model = plan.fit(input, options)?.model(&schema.unit)?;
            save(&mut model)?;
            model
        }
    };
    drop(progress);
    receipt.iter_mut().for_each(Receipt::finish);
    let seconds = started.elapsed().as_secs_f64();
    if reading.json {
        let mut report = report(&model, &path, seconds, encoding.ignored());
        report["files"] = json!(source.file_names());
        if let Some(why) = auto(&plan) {
            report["auto"] = why;
        }
        return Ok(screen.say_json(&report)?);
    }
    let certificate = &model.certificate;
    if plan.budget().is_private() {
        screen.say(&format!(
            "epsilon {} of {} spent at delta {:e}, in {seconds:.1} s: {}",
            format::high(certificate.epsilon),
            plan.unit_budget().epsilon(),
            plan.unit_budget().delta(),
            certificate.relation()
        ))?;
        screen.say(&format::wrap(&format!("unit: {}", certificate.scope()), "", WIDTH))?;
        screen.say(&format::wrap(&certificate.odds(), "", WIDTH))?;
        say_rows(certificate, screen)?;
        if certificate.test_only {
            screen.say("TEST ONLY: made with a fixed seed; do not release this model.")?;
        }
    } else {
        screen.say("NO PRIVACY: epsilon is infinite; this model may reveal any row.")?;
        say_rows(certificate, screen)?;
    }
    let path = path.display();
    screen.say(&format!("saved {path}"))?;
    screen.say(&format!("digest {}", model.digest_in_words()))?;
    if let Some(receipt) = receipt {
        screen.say(&receipt.left())?;
    }
    let show = match plan.algorithm() {
        AnyAlgorithm::Kan(_) => format!("\n      quietly show {path} --output functions.svg"),
        _ => String::new(),
    };
    Ok(screen.say(&format!(
        "\nnext: quietly certificate {path}\n      quietly predict {path} new.csv --output predictions.csv{show}"
    ))?)
}

/// About how many rows were used, and what to look into if they are few.
fn say_rows(certificate: &quietly::Certificate, screen: &mut Screen) -> Result<(), Failure> {
    let Some(used) = &certificate.rows_used else { return Ok(()) };
    screen.say(&used.to_string())?;
    match used.warning() {
        Some(warning) => {
            Ok(screen.say(&format::wrap(&format!("WARNING: {warning}"), "", WIDTH))?)
        }
        None => Ok(()),
    }
}

/// The delta of a fit without `--delta`: that of the resumed run, or at most a tenth of what the ledger has left.
fn usual(ledger: Option<&Ledger>, checkpoint: Option<&Path>, rows: u64) -> Option<f64> {
    let begun = checkpoint.and_then(Checkpoint::delta);
    begun.or_else(|| ledger.map(|ledger| ledger.usual_delta(usual_delta(rows))))
}

fn headline(plan: &Plan, target: &str, schema: &Schema, screen: &Screen) -> String {
    screen.bold(&format!(
        "{} of {target} on {} features{}, about {} rows ({})",
        titled(plan),
        plan.inputs(),
        expanded(plan.expansion()),
        plan.rows(),
        match schema.rows_per_unit {
            1 => "one row is protected at a time".into(),
            k => format!("up to {k} for each {}", schema.unit),
        }
    ))
}

/// The expansion in a headline: `, as 48 splines`.
fn expanded(expansion: Option<&Expansion>) -> String {
    let Some(expansion) = expansion else { return String::new() };
    match expansion {
        Expansion::Splines { functions, .. } => {
            format!(" ({functions} splines for each number: {} in all)", expansion.width())
        }
        Expansion::RandomFourier { count, .. } => format!(" ({count} random Fourier features)"),
    }
}

/// What is made, in words.
pub(crate) fn title(link: Link, network: bool) -> String {
    match link {
        _ if network => "Kolmogorov-Arnold network".into(),
        Link::Svm => "support vector machine".into(),
        link => format!("{} regression", link.name()),
    }
}

/// The same of a plan.
fn titled(plan: &Plan) -> String {
    match plan.algorithm() {
        AnyAlgorithm::Additive(_) => "additive regression".into(),
        algorithm => title(plan.link(), matches!(algorithm, AnyAlgorithm::Kan(_))),
    }
}

/// The model of a plan in a word, where `named` is what was asked for.
fn kind(plan: &Plan, named: Family) -> &'static str {
    match plan.algorithm() {
        AnyAlgorithm::Additive(_) => "additive",
        _ => named.name(),
    }
}

/// Why this model, if it was chosen automatically.
fn explain(plan: &Plan, screen: &mut Screen) -> Result<(), Failure> {
    let Some(why) = &plan.why else { return Ok(()) };
    let network = "A network is never chosen: `quietly fit kan` fits one.";
    Ok(screen.say(&format::wrap(&format!("{why} {network}"), "", WIDTH))?)
}

/// The same for programs.
fn auto(plan: &Plan) -> Option<Value> {
    let named = if plan.link().is_classifier() { Family::Logistic } else { Family::Linear };
    let why = plan.why.as_ref()?;
    Some(json!({ "model": kind(plan, named), "why": why }))
}

fn warn(plan: &Plan, screen: &mut Screen) -> Result<(), Failure> {
    for warning in &plan.warnings {
        screen.say(&format::wrap(&format!("warning: {warning}"), "", WIDTH))?;
    }
    Ok(())
}

fn report(model: &quietly::Model, path: &Path, seconds: f64, ignored: usize) -> Value {
    let mut names: Vec<String> = model.encoding.features().iter().map(|f| f.name.clone()).collect();
    if let Some(expansion) = &model.expansion {
        names = expansion.names(&names);
    }
    let weights: serde_json::Map<_, _> =
        names.into_iter().zip(model.weights.iter().map(|w| json!(w))).collect();
    let mut warnings = model.plan.warnings.clone();
    warnings.extend(model.certificate.rows_used.and_then(|used| used.warning()));
    let mut report = json!({
        "model": path.display().to_string(),
        "kind": model.link.name(),
        "target": model.target,
        "intercept": model.intercept,
        "weights": weights,
        "ignored_columns": ignored,
        "warnings": warnings,
        "rows_used": model.certificate.rows_used.map(|used| json!(used)),
        "epsilon": format::json(model.certificate.epsilon),
        "delta": model.plan.unit_budget().delta(),
        "digest": model.digest(),
        "neighbours": model.plan.budget().neighbours().name(),
        "test_only": model.certificate.test_only,
        "certificate": certificate::json(model),
        "seconds": seconds,
    });
    if let Some(expansion) = &model.expansion {
        report["expansion"] = serde_json::to_value(expansion).expect("plain fields");
    }
    report
}

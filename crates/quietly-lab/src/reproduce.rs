//! `quietly-lab reproduce`: what the papers claim, measured here.
use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{Args, Subcommand};
use quietly::Link;
use quietly_cli::{
    error::Failure,
    output,
    parse::Count,
    terminal::{Progress, Screen, WIDTH},
};

use crate::reproduce::{
    claim::Claim,
    linear::Linear,
    measure::{Field, Scores},
    relu::Relu,
    report::{Grid, Report},
};

mod claim;
mod convex;
mod features;
mod kan;
mod known;
mod linear;
mod measure;
mod real;
mod relu;
mod report;
mod sweep;
mod world;

#[derive(Subcommand, Debug)]
pub(crate) enum What {
    /// Linear regression: Varshney, Thakurta and Jain, and what they compare with
    Linear(Reproduce),
    /// ReLU regression: Ding, Lei, Wang, Zheng, Wang and Xu
    Relu(Reproduce),
    /// Convex losses: Su, Hu and Wang, and what they compare with
    Convex(Parts),
    /// Feature learning: Understanding Private Learning From Feature Perspective
    Features(Features),
    /// Networks: Wang, Schuchardt, Kalinin, Zhou, Fellenz, Lampert and Kloft
    Kan(Networks),
}

#[derive(Args, Debug)]
pub(crate) struct Parts {
    #[command(flatten)]
    asked: Reproduce,
    /// One part alone: the paper's figures, rates under growth, or the default beside tuned rivals
    #[arg(long, value_name = "PART")]
    only: Option<convex::Part>,
}

#[derive(Args, Debug)]
pub(crate) struct Networks {
    #[command(flatten)]
    asked: Reproduce,
    /// One part alone: the contest of networks, what lambda gains, rates, or the noise of all steps
    #[arg(long, value_name = "PART")]
    only: Option<kan::Part>,
}

#[derive(Args, Debug)]
pub(crate) struct Features {
    #[command(flatten)]
    asked: Reproduce,
    /// One part alone: Figure 2, the phase diagram, or networks on images; an interrupted run of images resumes
    #[arg(long, value_name = "PART")]
    only: Option<features::Part>,
}

#[derive(Args, Debug)]
pub(crate) struct Reproduce {
    /// A new folder for report.md, report.json and charts; reproduce-linear and so on by default
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// A folder with the public tables california-housing, gas-turbine and wine-quality-white; for convex a9a, ijcnn1, a8a, w7a; for kan breast-cancer, digits; for features cifar10
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Fewer and smaller tables: two minutes instead of an hour
    #[arg(long)]
    quick: bool,
    /// For tests: too small to mean anything
    #[arg(long, hide = true, conflicts_with = "quick")]
    tiny: bool,
    /// The seed of tables and noise
    #[arg(long, value_name = "N", default_value = "1")]
    seed: Count,
    /// Number of threads; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<Count>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Full,
    Quick,
    Tiny,
}

/// How much is run, of which draws, on how many threads.
#[derive(Clone, Copy, Debug)]
struct Draw {
    size: Size,
    seed: u64,
    threads: usize,
}

/// What is run for a paper, and what becomes of it.
trait Study {
    /// What is run, in sentences.
    fn about(&self) -> Vec<String>;
    fn fields(&self) -> Vec<Field>;
    fn tables(&self, scores: &Scores) -> Vec<Grid>;
    fn claims(&self, scores: &Scores) -> Vec<Claim>;
    /// File names, captions and SVG.
    fn pictures(&self, scores: &Scores) -> Vec<(String, String, String)>;
}

/// Measures, judges and writes a folder.
pub(crate) fn run(what: &What, screen: &mut Screen) -> Result<(), Failure> {
    let (name, subject, next, asked) = match what {
        What::Linear(asked) => ("linear", "linear regression", "relu", asked),
        What::Relu(asked) => ("relu", "ReLU regression", "convex", asked),
        What::Convex(Parts { asked, .. }) => ("convex", "convex optimisation", "features", asked),
        What::Features(Features { asked, .. }) => ("features", "feature learning", "kan", asked),
        What::Kan(Networks { asked, .. }) => ("kan", "networks", "linear", asked),
    };
    let started = Instant::now();
    let size = match (asked.quick, asked.tiny) {
        (true, _) => Size::Quick,
        (_, true) => Size::Tiny,
        _ => Size::Full,
    };
    // Seeds share their numbers with turns and fits.
    let seed = asked.seed.get("seed")? & 0xff_ffff;
    let threads = match asked.threads {
        Some(count) => count.at_least_one("threads")?.min(256) as usize,
        None => std::thread::available_parallelism().map_or(1, |n| n.get()),
    };
    let folder = asked.output.clone().unwrap_or_else(|| format!("reproduce-{name}").into());
    output::probe_folder(&folder)?;
    if let Some(data) = asked.data.as_ref().filter(|d| !d.is_dir()) {
        return Err(Failure::File {
            path: data.display().to_string(),
            why: "no such folder".into(),
        });
    }
    if !asked.json {
        let how = match size {
            Size::Full => "in full: this takes an hour or so; --quick takes two minutes",
            Size::Quick => "quickly: with fewer and smaller tables, so that chance decides more",
            Size::Tiny => "as a test of the command only: these numbers mean nothing",
        };
        screen.say(&screen.bold(&format!("reproducing {subject}, {how}")))?;
    }
    let progress = Progress::new("planning");
    let mut report = Report {
        title: format!("Private {subject}, reproduced"),
        about: vec![],
        claims: vec![],
        tables: vec![],
        pictures: vec![],
        bitmaps: vec![],
        kept: vec![],
        seconds: 0.0,
    };
    let draw = Draw { size, seed, threads };
    let data = asked.data.as_deref();
    let unfinished = unfinished(&folder);
    match what {
        What::Linear(_) => regression(Link::Linear, data, draw, &progress, &mut report)?,
        What::Relu(_) => regression(Link::Relu, data, draw, &progress, &mut report)?,
        What::Convex(Parts { only, .. }) => convex::run(data, *only, draw, &progress, &mut report)?,
        What::Features(Features { only, .. }) => {
            features::run(data, *only, draw, &unfinished, &progress, &mut report)?
        }
        What::Kan(Networks { only, .. }) => kan::run(data, *only, draw, &progress, &mut report)?,
    }
    drop(progress);
    report.seconds = started.elapsed().as_secs_f64();
    let json = format!("{:#}\n", report.json());
    let page = report.markdown();
    let mut files = vec![("report.md", page.as_bytes()), ("report.json", json.as_bytes())];
    files.extend(report.files());
    output::write_folder(&folder, &files)?;
    // Only its own files, and nothing else that may be in the folder.
    for kept in &report.kept {
        fs::remove_file(kept).map_err(|e| Failure::file(kept, &e))?;
    }
    if !report.kept.is_empty() {
        let _ = fs::remove_dir(&unfinished);
    }
    if asked.json {
        let mut value = report.json();
        value["folder"] = folder.display().to_string().into();
        return Ok(screen.say_json(&value)?);
    }
    screen.say(&report.verdicts(WIDTH))?;
    screen.say(&format!("\n{}, in {:.0} s", report.tally(), report.seconds))?;
    let folder = folder.display();
    screen.say(&format!(
        "saved {folder}/report.md, report.json and {} pictures",
        report.files().count()
    ))?;
    Ok(screen.say(&format!("\nnext: quietly-lab reproduce {next} --quick"))?)
}

/// The folder for parts of a long run until its report is written.
fn unfinished(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}.unfinished"))
}

/// Linear and ReLU models, on drawn tables and on real ones.
fn regression(
    link: Link,
    data: Option<&Path>,
    Draw { size, seed, threads }: Draw,
    progress: &Progress,
    report: &mut Report,
) -> Result<(), Failure> {
    report.about.push(match size {
        Size::Full => format!("A full run with seed {seed}."),
        Size::Quick => format!(
            "A quick run with seed {seed}: fewer seeds, no large tables{}. Verdicts near a limit may differ in a full run.",
            if link == Link::Relu { ", no setting T4L" } else { ", d = 10 alone on the grid" }
        ),
        Size::Tiny => "A test of the command: these numbers mean nothing.".into(),
    });
    let study: Box<dyn Study> = match link {
        Link::Relu => Box::new(Relu::new(size)),
        _ => Box::new(Linear::new(size)),
    };
    let scores = Scores::measure(&study.fields(), seed, threads, progress)?;
    report.about.extend(study.about());
    report.about.extend(scores.remarks());
    report.claims = study.claims(&scores);
    report.tables = study.tables(&scores);
    report.pictures = study.pictures(&scores);
    match data {
        Some(data) => real::run(data, link, size, seed, threads, progress, report)?,
        None => {
            report.about.push("Real tables were left out: they are taken from --data DIR.".into())
        }
    }
    Ok(())
}

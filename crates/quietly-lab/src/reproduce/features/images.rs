//! Convolutional networks: accuracy against epsilon and SNR, and Grad-CAM maps.
//!
//! The paper trains ResNet-20 for 100 epochs on all of CIFAR-10, which takes days on two cores; here are a small network and a
//! part of the pictures. Networks are saved during training and at the end, so that an interrupted run resumes.
use std::{
    fs::{self, File},
    io::{ErrorKind, Read as _},
    ops::ControlFlow,
    path::Path,
};

use flate2::read::GzDecoder;
use quietly::{Budget, Key, Private};
use quietly_cli::{error::Failure, output, terminal::Progress};
use quietly_lab::cnn::{ConvNet, ConvShape, ImagePlan, ImageTraining, Notebook, Pasted, Pictures};
use serde_json::{Value, json};

use super::{
    cells::DELTA,
    sheet::{self, Row},
};
use crate::reproduce::{
    Draw, Size,
    claim::{Check, Claim},
    report::{Entry, Grid, Report},
};

const ABOUT: &str = "Networks of convolutions: three of 3x3 pixels with 16, 32 and 32 channels, each with a group norm (without its mean), tanh and a mean of 2x2 pixels, \
    then a dense layer. DP-SGD: Poisson sampling of pictures, each gradient is clipped to 1, all steps together are \
    within epsilon at delta 1e-5, add-remove; epsilon inf is the same without noise. KanConfig pictures have normal noise added, whose deviation is \
    their own contrast over SNR; test pictures have none. The paper has ResNet-20, 50000 pictures and 100 epochs: these numbers are far below \
    published ones, and are to be compared with each other only.";

/// Classes of CIFAR-10.
const CLASSES: usize = 10;
/// How many test pictures are drawn.
const SHOWN: usize = 4;

/// One kind of pictures.
struct Gallery {
    name: &'static str,
    training: ImageTraining,
    snrs: &'static [f64],
    epsilons: &'static [f64],
    /// How many pixels wide pasted patches are; 0 if there are none.
    patch: usize,
}

/// One network.
struct Outcome {
    snr: f64,
    epsilon: f64,
    accuracy: f64,
    /// The share of what it looks at that lies inside the patch.
    mass: Option<f64>,
    maps: Vec<Vec<f32>>,
}

/// Training pictures, test pictures, and the positions of the patches in the latter.
struct Drawn {
    train: Pictures,
    test: Pictures,
    places: Vec<(usize, usize)>,
    rows: u64,
}

/// Trains, judges and fills the report.
pub(super) fn run(
    data: Option<&Path>,
    draw: Draw,
    unfinished: &Path,
    progress: &Progress,
    report: &mut Report,
) -> Result<(), Failure> {
    report.about.push(ABOUT.into());
    // Files that cannot be read are found out before hours are spent.
    let cifar10 = data.map(cifar10).transpose()?.flatten();
    let pasted = Gallery::pasted(draw.size);
    let outcomes =
        pasted.measure(draw, unfinished, progress, report, |snr| pasted.draw(snr, draw))?;
    pasted.tell(&outcomes, &pasted.draw(pasted.snrs[0], draw)?.test, report);
    report.claims.push(Claim::new(
        "a network that learns without noise looks at the patch that makes the class",
        "the paper, Grad-CAM pictures",
        outcomes
            .iter()
            .filter(|o| o.epsilon == f64::INFINITY)
            .map(|o| Check::above(format!("share inside at SNR {}", o.snr), o.mass, 0.5))
            .collect(),
    ));
    let Some((train, test)) = cifar10 else {
        report.about.push(
            "CIFAR-10 was left out: it is taken from --data DIR, files cifar10/train-10000.bin.gz and cifar10/test-2000.bin.gz."
                .into(),
        );
        return Ok(());
    };
    let cifar = Gallery::cifar10(draw.size);
    let (each, tried) = match draw.size {
        Size::Full => (1000, 200),
        Size::Quick => (200, 50),
        Size::Tiny => (4, 2),
    };
    let (train, test) = (train.first_of_each(each), test.first_of_each(tried));
    let outcomes = cifar.measure(draw, unfinished, progress, report, |snr| {
        let mut train = train.clone();
        if snr.is_finite() {
            train.corrupt(snr, &Key::from_seed(1000 * draw.seed + 7))?;
        }
        Ok(Drawn { train, test: test.clone(), places: vec![], rows: 10 * each as u64 })
    })?;
    cifar.tell(&outcomes, &test, report);
    report.claims.extend(cifar.claims(&outcomes));
    Ok(())
}

/// Both files; none if one of them is missing.
fn cifar10(data: &Path) -> Result<Option<(Pictures, Pictures)>, Failure> {
    let read = |name: &str| {
        let path = data.join("cifar10").join(name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|e| Failure::file(&path, &e))?,
        };
        let mut bytes = vec![];
        GzDecoder::new(file).read_to_end(&mut bytes).map_err(|e| Failure::file(&path, &e))?;
        let pictures = Pictures::cifar10(&bytes);
        let few = pictures.first_of_each(1).len() < CLASSES;
        let why = || format!("there must be a picture of each of {CLASSES} classes");
        if few {
            return Err(Failure::File { path: path.display().to_string(), why: why() });
        }
        Ok::<_, Failure>(Some(pictures))
    };
    Ok(read("train-10000.bin.gz")?.zip(read("test-2000.bin.gz")?))
}

impl Gallery {
    fn cifar10(size: Size) -> Gallery {
        let (steps, batch) = match size {
            Size::Full => (300, 500),
            Size::Quick => (50, 200),
            Size::Tiny => (4, 10),
        };
        let training = ImageTraining { steps, batch, ..ImageTraining::default() };
        let (snrs, epsilons): (&[f64], &[f64]) = match size {
            Size::Full => (&[f64::INFINITY, 1.0, 0.5], &[2.0, 4.0, 8.0, f64::INFINITY]),
            Size::Quick => (&[f64::INFINITY, 0.5], &[2.0, 8.0, f64::INFINITY]),
            Size::Tiny => (&[0.5], &[8.0]),
        };
        Gallery { name: "cifar10", training, snrs, epsilons, patch: 0 }
    }

    fn pasted(size: Size) -> Gallery {
        let (side, steps, batch) = match size {
            Size::Full => (48, 100, 200),
            Size::Quick => (48, 60, 60),
            Size::Tiny => (8, 300, 20),
        };
        let shape = ConvShape { side, classes: 4, ..ConvShape::default() };
        let training = ImageTraining { shape, steps, batch, ..ImageTraining::default() };
        let (snrs, epsilons): (&[f64], &[f64]) = match size {
            Size::Full => (&[4.0, 2.0], &[2.0, 8.0, f64::INFINITY]),
            Size::Quick => (&[4.0], &[2.0, 8.0, f64::INFINITY]),
            Size::Tiny => (&[4.0], &[8.0, f64::INFINITY]),
        };
        Gallery { name: "pasted", training, snrs, epsilons, patch: side / 2 }
    }

    /// Synthetic pictures with patches.
    fn draw(&self, snr: f64, draw: Draw) -> Result<Drawn, Failure> {
        let (side, rows) = (self.training.shape.side, 10 * self.training.batch);
        let key = Key::from_seed(1000 * draw.seed + 8);
        let world = Pasted::new(side, self.patch, 4, snr, key)?;
        let (test, places) = world.draw(1, 200)?;
        Ok(Drawn { train: world.draw(0, rows as usize)?.0, test, places, rows })
    }

    /// Trains what is not in `unfinished` yet.
    fn measure(
        &self,
        draw: Draw,
        unfinished: &Path,
        progress: &Progress,
        report: &mut Report,
        pictures: impl Fn(f64) -> Result<Drawn, Failure>,
    ) -> Result<Vec<Outcome>, Failure> {
        let of = self.snrs.len() * self.epsilons.len();
        let mut outcomes = vec![];
        for &snr in self.snrs {
            let Drawn { train, test, places, rows } = pictures(snr)?;
            let pictures = fingerprint([&train, &test])?;
            let train = Private::new(train);
            for &epsilon in self.epsilons {
                let plan = self.training.plan(rows, Budget::new(epsilon, DELTA)?)?;
                let name = format!("{}-snr-{}-epsilon-{}", self.name, word(snr), word(epsilon));
                let kept = unfinished.join(format!("{name}.json"));
                let made_by =
                    json!([env!("CARGO_PKG_VERSION"), draw.seed, snr.to_bits(), plan, pictures]);
                let done = outcomes.len();
                let (folder, side) = (unfinished.join(&name), self.training.shape.side);
                let fresh = || Ok(Key::from_seed(1000 * draw.seed + done as u64));
                let outcome = match Outcome::read(&kept, &made_by, (snr, epsilon), side) {
                    Some(outcome) => {
                        // It may have been interrupted just before.
                        if folder.is_dir() {
                            Notebook::open(&folder, 10, fresh)?.finish()?;
                        }
                        outcome
                    }
                    None => {
                        let notebook = Notebook::open(&folder, 10, fresh)?;
                        let network =
                            train_with(&plan, &notebook, &train, draw.threads, &|step, steps| {
                                let what = format!("{}: network {} of {of}", self.name, done + 1);
                                progress.say(&format!("{what}, step {step} of {steps}"));
                            })?;
                        let outcome = self.judge(&network, (snr, epsilon), &test, &places, draw);
                        output::write(&kept, format!("{}\n", outcome.json(&made_by)).as_bytes())?;
                        notebook.finish()?;
                        outcome
                    }
                };
                report.kept.push(kept);
                outcomes.push(outcome);
            }
        }
        Ok(outcomes)
    }

    fn judge(
        &self,
        network: &ConvNet,
        (snr, epsilon): (f64, f64),
        test: &Pictures,
        places: &[(usize, usize)],
        draw: Draw,
    ) -> Outcome {
        let share = |(at, place): (usize, &(usize, usize))| {
            network.attention(test, at).share_within(*place, self.patch)
        };
        let shares: Vec<f64> = places.iter().enumerate().filter_map(share).collect();
        let mass = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        let map = |at: usize| network.attention(test, at).values().to_vec();
        let maps = (0..SHOWN).map(map).collect();
        Outcome { snr, epsilon, accuracy: network.accuracy(test, draw.threads), mass, maps }
    }

    /// A table and a sheet of what networks look at.
    fn tell(&self, outcomes: &[Outcome], test: &Pictures, report: &mut Report) {
        let find =
            |snr: f64, epsilon: f64| outcomes.iter().find(|o| (o.snr, o.epsilon) == (snr, epsilon));
        let mut columns = vec!["training pictures".to_string()];
        columns.extend(self.epsilons.iter().map(|e| format!("eps {}", word(*e))));
        let grid = |title: String, note: &str, of: fn(&Outcome) -> Option<f64>| {
            let row = |snr: &f64| {
                let cell =
                    |e: &f64| find(*snr, *e).and_then(of).map_or(Entry::Nothing, Entry::Fine);
                let mut row = vec![Entry::Word(called(*snr))];
                row.extend(self.epsilons.iter().map(cell));
                row
            };
            let rows = self.snrs.iter().map(row).collect();
            Grid { title, note: note.into(), columns: columns.clone(), rows }
        };
        let ImageTraining { steps, batch, .. } = self.training;
        let note =
            format!("{steps} steps of about {batch} pictures; clean test pictures; one draw.");
        report.tables.push(grid(format!("Accuracy on {}", self.name), &note, |o| Some(o.accuracy)));
        if self.patch > 0 {
            let chance = (self.patch as f64 / self.training.shape.side as f64).powi(2);
            let note = format!("The patch is {chance:.2} of the picture.");
            report
                .tables
                .push(grid("Share of Grad-CAM inside the patch".into(), &note, |o| o.mass));
        }
        let rows: Vec<Row> = (0..SHOWN)
            .map(|at| {
                let first = outcomes.iter().filter(|o| o.snr == self.snrs[0]);
                let maps = first.map(|o| o.maps[at].clone()).collect();
                Row { picture: test.show(at).0.to_vec(), maps }
            })
            .collect();
        let names: Vec<String> = self.epsilons.iter().map(|e| word(*e)).collect();
        let caption = format!(
            "Where networks look in test pictures of {}: the picture, then Grad-CAM for epsilon {}",
            self.name,
            names.join(", ")
        );
        let file = format!("attention-{}.png", self.name);
        report.bitmaps.push((file, caption, sheet::draw(&rows, self.training.shape.side)));
    }

    fn claims(&self, outcomes: &[Outcome]) -> Vec<Claim> {
        let find = |snr: f64, epsilon: f64| {
            let found = outcomes.iter().find(|o| (o.snr, o.epsilon) == (snr, epsilon));
            found.map(|o| o.accuracy)
        };
        let less = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a - b);
        let (clean, endless) = (f64::INFINITY, f64::INFINITY);
        let gap = |epsilon: f64| less(find(clean, epsilon), find(0.5, epsilon));
        let by_epsilon = |snr: &f64| {
            let what = format!("accuracy at eps 8 less that at eps 2, {}", called(*snr));
            Check::above(what, less(find(*snr, 8.0), find(*snr, 2.0)), 0.0)
        };
        let by_snr = |epsilon: &f64| {
            let what = format!("clean less SNR 0.5, eps {}", word(*epsilon));
            Check::above(what, gap(*epsilon), 0.0)
        };
        let wider =
            Check::above("gap at eps 2 less that at eps inf", less(gap(2.0), gap(endless)), 0.0);
        let from = "the paper, experiments on CIFAR-10";
        vec![
            Claim::new(
                "accuracy rises with epsilon",
                from,
                self.snrs.iter().map(by_epsilon).collect(),
            ),
            Claim::new("accuracy rises with SNR", from, self.epsilons.iter().map(by_snr).collect()),
            Claim::new("the less epsilon, the more SNR matters", from, vec![wider]),
        ]
    }
}

fn train_with(
    plan: &ImagePlan,
    notebook: &Notebook,
    pictures: &Private<Pictures>,
    threads: usize,
    say: &dyn Fn(u64, u64),
) -> Result<ConvNet, Failure> {
    let mut watch = |p: quietly::Progress| {
        say(p.done, p.of);
        ControlFlow::Continue(())
    };
    Ok(plan.run_with(notebook, pictures, "picture", threads, &mut watch)?.0)
}

/// A number that identifies these pictures.
fn fingerprint(pictures: [&Pictures; 2]) -> Result<u64, Failure> {
    let bytes = |pictures: &Pictures, at: usize| {
        let (pixels, label) = pictures.show(at);
        let mut bytes: Vec<u8> = pixels.iter().flat_map(|x| x.to_le_bytes()).collect();
        bytes.extend(label.to_le_bytes());
        bytes
    };
    let all = pictures.into_iter().flat_map(|p| (0..p.len()).map(move |at| bytes(p, at)));
    let key = Key::from_seed(0).bound_to(all);
    Ok(key.stream("which pictures these are").bits(0)?.word()?)
}

/// The name of the training pictures.
fn called(snr: f64) -> String {
    if snr.is_finite() { format!("SNR {snr}") } else { "clean".into() }
}

/// What has no end is "inf".
fn word(x: f64) -> String {
    if x.is_finite() { x.to_string() } else { "inf".into() }
}

impl Outcome {
    fn json(&self, made_by: &Value) -> Value {
        json!({ "made_by": made_by, "accuracy": self.accuracy, "mass": self.mass, "maps": self.maps })
    }

    /// What was measured before, in the same way.
    fn read(
        path: &Path,
        made_by: &Value,
        (snr, epsilon): (f64, f64),
        side: usize,
    ) -> Option<Outcome> {
        let value: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        let number = |x: &Value| x.as_f64().map(|x| x as f32);
        let map = |map: &Value| map.as_array()?.iter().map(number).collect::<Option<Vec<f32>>>();
        let maps = value["maps"].as_array()?.iter().map(map).collect::<Option<Vec<_>>>()?;
        let (accuracy, mass) = (value["accuracy"].as_f64()?, value["mass"].as_f64());
        let fine = value["made_by"] == *made_by
            && maps.len() == SHOWN
            && maps.iter().all(|map| map.len() == side * side)
            && (0.0..=1.0).contains(&accuracy);
        fine.then_some(Outcome { snr, epsilon, accuracy, mass, maps })
    }
}

//! `quietly example`: a synthetic clinic, to try everything on.
use std::{fmt::Write as _, path::Path};

use quietly_noise::{Bits, Key};
use serde_json::json;

use crate::{error::Failure, output, terminal::Screen};

/// Rows to learn from, and rows to test on.
const ROWS: usize = 20_000;
const TEST: usize = 5_000;

const SCHEMA: &str = "\
# What is public about the table.
rows = 20000              # about how many
unit = \"patient\"          # what one row is
missing = \"middle\"        # an empty cell counts as the middle of its range

[columns]
age        = { range = [18, 100] }
sex        = { values = [\"F\", \"M\"] }
smoker     = { values = [\"no\", \"yes\"], other = true }
bmi        = { range = [12, 60], missing = 26 }
systolic   = { range = [80, 220] }
visits     = { range = [0, 40] }
department = { values = [\"surgery\", \"cardiology\", \"oncology\", \"neurology\"], other = true }
days       = { range = [0, 60] }
";

/// Writes `clinic.csv`, `clinic-test.csv` and `clinic.schema.toml` into a folder.
pub(crate) fn run(folder: &Path, json: bool, screen: &mut Screen) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| Failure::file(folder, &e))?;
    let mut people = People { bits: Key::from_seed(1912).stream("clinic").bits(0)? };
    let files = [
        ("clinic.csv", people.table(ROWS)?),
        ("clinic-test.csv", people.table(TEST)?),
        ("clinic.schema.toml", SCHEMA.into()),
    ];
    // An existing file may be the user's own: nothing is written unless all three can be.
    for (name, text) in &files {
        let path = folder.join(name);
        if path.exists() && std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            return Err(Failure::Exists(path.display().to_string()));
        }
    }
    let mut written = vec![];
    for (name, text) in files {
        let path = folder.join(name);
        output::write(&path, text.as_bytes())?;
        written.push(path.display().to_string());
    }
    if json {
        return Ok(screen.say_json(&json!({ "files": written }))?);
    }
    screen.say(&format!("{}: {ROWS} synthetic patients", written[0]))?;
    screen.say(&format!("{}: {TEST} more", written[1]))?;
    screen.say(&format!("{}: what is public about them", written[2]))?;
    let (table, schema) = (&written[0], &written[2]);
    Ok(screen.say(&format!(
        "\nnext: quietly fit linear {table} --target days --schema {schema} --epsilon 1 --output days.quietly"
    ))?)
}

/// Patients, one after the other, always the same ones.
struct People {
    bits: Bits,
}

impl People {
    fn table(&mut self, rows: usize) -> Result<String, Failure> {
        let mut text = String::from("age,sex,smoker,bmi,systolic,visits,department,days\n");
        for _ in 0..rows {
            self.row(&mut text)?;
        }
        Ok(text)
    }

    fn row(&mut self, text: &mut String) -> Result<(), Failure> {
        let age = (52.0 + 18.0 * self.normal()?).clamp(18.0, 99.0).round();
        let female = self.uniform()? < 0.52;
        let smoker = self.uniform()? < 0.22;
        let bmi = 26.0 + 4.5 * self.normal()? + 0.03 * (age - 52.0);
        let systolic = 125.0 + 0.35 * (age - 52.0) + 0.8 * (bmi - 26.0) + 13.0 * self.normal()?;
        let visits = (-4.0 * (1.0 - self.uniform()?).ln() + 0.04 * age).min(39.0).floor();
        let (department, stay) = match self.uniform()? {
            u if u < 0.35 => ("surgery", 0.0),
            u if u < 0.6 => ("cardiology", 1.2),
            u if u < 0.8 => ("oncology", 3.5),
            u if u < 0.95 => ("neurology", 2.0),
            _ => ("dermatology", -1.5),
        };
        let chance = -2.2 * (1.0 - self.uniform()?).ln() - 2.2;
        let days = 4.5
            + 0.07 * (age - 52.0)
            + 0.12 * (bmi - 26.0)
            + 0.02 * (systolic - 125.0)
            + 0.3 * visits
            + stay
            + if smoker { 1.1 } else { 0.0 }
            + if female { -0.3 } else { 0.0 }
            + chance
            + 0.8 * self.normal()?;
        let sex = if female { "F" } else { "M" };
        let smoker = match self.uniform()? {
            u if u < 0.06 => "",
            _ if smoker => "yes",
            _ => "no",
        };
        let bmi = if self.uniform()? < 0.08 { String::new() } else { format!("{bmi:.1}") };
        let days = days.clamp(0.0, 60.0);
        writeln!(text, "{age},{sex},{smoker},{bmi},{systolic:.0},{visits},{department},{days:.1}")
            .expect("a string takes everything");
        Ok(())
    }

    fn uniform(&mut self) -> Result<f64, Failure> {
        Ok((self.bits.word()? >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// Box and Muller's: an example needs no exact noise.
    fn normal(&mut self) -> Result<f64, Failure> {
        let (u, v) = (1.0 - self.uniform()?, self.uniform()?);
        Ok((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos())
    }
}

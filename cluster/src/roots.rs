//! The folders that an executor reads and writes.
use std::{
    fs,
    path::{Path, PathBuf},
};

use quietly::remote::{Job, TaskPart};

/// Canonical paths: what lies outside of them is refused, whatever links and `..` a path has.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    data: PathBuf,
    scratch: Option<PathBuf>,
}

impl Roots {
    pub(crate) fn new(data: &Path, scratch: Option<&Path>) -> Result<Self, String> {
        let whole = |flag: &str, path: &Path| {
            let found = fs::canonicalize(path).and_then(|path| path.read_dir().map(|_| path));
            found.map_err(|e| format!("{flag} {}: {e}", path.display()))
        };
        let scratch = scratch.map(|path| whole("--scratch-root", path)).transpose()?;
        Ok(Roots { data: whole("--data-root", data)?, scratch })
    }

    /// The same parts by canonical paths, if the job may be done with them here.
    pub(crate) fn admitted(&self, job: &Job, parts: &[TaskPart]) -> Result<Vec<TaskPart>, String> {
        let told = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
        if let Job::Prepare(preparing) = job {
            let folder = preparing.folder();
            let place = fs::canonicalize(folder).map_err(|e| told(folder, e))?;
            if !self.scratch.as_ref().is_some_and(|scratch| place.starts_with(scratch)) {
                let folder = folder.display();
                return Err(format!("{folder} is outside of this executor's --scratch-root"));
            }
        }
        let admit = |each: &TaskPart| {
            let path = &each.part.path;
            let place = fs::canonicalize(path).map_err(|e| told(path, e))?;
            let mut roots = [Some(&self.data), self.scratch.as_ref()].into_iter().flatten();
            if !roots.any(|root| place.starts_with(root)) {
                let path = path.display();
                return Err(format!("{path} is outside of this executor's --data-root"));
            }
            let mut each = each.clone();
            each.part.path = place;
            Ok(each)
        };
        parts.iter().map(admit).collect()
    }
}

#[cfg(test)]
mod tests {
    use quietly::{Key, PartitionedTable, Source};

    use super::*;

    #[test]
    fn paths_outside_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        ["data", "scratch", "elsewhere"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        crate::example::run(&crate::Example {
            folder: at("data/t"),
            rows: 100,
            features: 1,
            files: 1,
        })
        .unwrap();
        fs::copy(at("data/t/part-000.parquet"), at("elsewhere/x.parquet")).unwrap();
        let roots = Roots::new(&at("data"), Some(&at("scratch"))).unwrap();
        let source = Source::open([at("data/t")], &Default::default()).unwrap();
        let part = source.parts().unwrap().remove(0);
        let load = |path: &str| {
            let mut part = part.clone();
            part.path = at(path);
            vec![TaskPart { number: 0, part }]
        };
        let read = |path: &str| roots.admitted(&Job::Check, &load(path));
        assert!(read("data/t/part-000.parquet").is_ok());
        let inside = read("data/t/../t/part-000.parquet").unwrap();
        assert_eq!(inside[0].part.path, fs::canonicalize(at("data/t/part-000.parquet")).unwrap());
        for bad in ["elsewhere/x.parquet", "data/../elsewhere/x.parquet"] {
            assert!(read(bad).unwrap_err().contains("--data-root"), "{bad}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("elsewhere/x.parquet"), at("data/link.parquet")).unwrap();
            assert!(read("data/link.parquet").unwrap_err().contains("--data-root"));
        }
        let prepare = |folder: &str| {
            let key = Key::from_seed(1);
            Job::Prepare(PartitionedTable::begin(&source, 12, &at(folder), &key).unwrap().1)
        };
        let good = load("data/t/part-000.parquet");
        assert!(roots.admitted(&prepare("scratch/p"), &good).is_ok());
        for bad in ["elsewhere/p", "data/p", "scratch/../elsewhere/q"] {
            let refused = roots.admitted(&prepare(bad), &good).unwrap_err();
            assert!(refused.contains("--scratch-root"), "{refused}");
        }
        let without = Roots::new(&at("data"), None).unwrap();
        assert!(without.admitted(&prepare("scratch/q"), &good).is_err());
        assert!(Roots::new(&at("nothing"), None).unwrap_err().contains("--data-root"));
    }
}

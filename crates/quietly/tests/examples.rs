//! Every program in `examples/` runs to its end.
use std::{collections::BTreeSet, fs, path::Path};

/// Takes in each program as a module, runs its `main`, and lists their names.
macro_rules! examples {
    ($($name:ident)+) => {
        $(mod $name {
            include!(concat!("../examples/", stringify!($name), ".rs"));

            #[test]
            fn runs() {
                main().unwrap();
            }
        })+

        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

examples! { accountant backend fit from_files ledger }

#[test]
fn no_example_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let stem = |entry: fs::DirEntry| entry.path().file_stem().unwrap().to_owned();
    let files = fs::read_dir(folder).unwrap().map(|entry| stem(entry.unwrap()));
    assert_eq!(files.collect::<BTreeSet<_>>(), NAMES.iter().map(Into::into).collect());
}

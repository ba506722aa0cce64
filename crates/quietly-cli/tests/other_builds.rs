//! `--cluster`: parts of another build are refused, by version, before anything is charged.
#![cfg(unix)]
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use run::Folder;

mod run;

/// A `quietly-cluster` that answers every work with one task, whose answer is this.
fn fake_relay(folder: &Folder, answer: &str) {
    let octal = |bytes: &[u8]| bytes.iter().map(|b| format!("\\{b:03o}")).collect::<String>();
    let length = |n: usize| octal(&(n as u32).to_le_bytes());
    let (whole, task) = (length(1 + 4 + answer.len()), length(answer.len()));
    let reply = format!("{whole}\\000{task}{}", octal(answer.as_bytes()));
    let script = format!("#!/bin/sh\nhead -c 4 > /dev/null\nprintf '{reply}'\ncat > /dev/null\n");
    fs::create_dir_all(folder.path("bin")).unwrap();
    folder.write("bin/quietly-cluster", script);
    let path = folder.path("bin/quietly-cluster");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn an_answer_of_another_build_is_refused_before_the_charge() {
    let folder = Folder::with_tables();
    folder.good("budget l --limit 2 --delta 1e-4");
    let ledger = folder.read("l");
    let schema = std::sync::Arc::new(arrow_schema::Schema::new(
        ["a", "y"]
            .map(|n| arrow_schema::Field::new(n, arrow_schema::DataType::Float64, false))
            .to_vec(),
    ));
    let column = || std::sync::Arc::new(arrow_array::Float64Array::from(vec![1.0; 3000])) as _;
    let batch =
        arrow_array::RecordBatch::try_new(schema.clone(), vec![column(), column()]).unwrap();
    let file = fs::File::create(folder.path("t.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap());
    let words = "fit linear t.parquet --schema s.toml --features a --target y --epsilon 1 --method full-batch \
                 --ledger l --cluster df://127.0.0.1:1 --output m.quietly";
    for (answer, say) in [
        (
            "quietly 2 0.0.9 00000000deadbeef\n",
            "quietly 0.0.9 (protocol 2, sources 00000000deadbeef)",
        ),
        ("7", "this is not a message for quietly "),
    ] {
        fake_relay(&folder, answer);
        let output = Command::new(env!("CARGO_BIN_EXE_quietly"))
            .args(words.split_whitespace())
            .current_dir(folder.path("."))
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("error[Q08]: ") && said.contains(say), "{said}");
        assert_eq!(folder.read("l"), ledger, "nothing is charged");
        assert!(!folder.path("m.quietly").exists());
    }
}

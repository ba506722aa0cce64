//! Any text as a schema: nothing panics or grows without bound, and what parses is what it prints.
use quietly::{Budget, Link, Regression};
use quietly_data::{Encoding, Error, Options, Schema, Source, is_hidden};
use quietly_fuzz::arbitrary::Unstructured;

/// Keys and values; a tenth of what is built is taken from anywhere.
const PIECES: [&str; 24] = [
    "rows = 100\n",
    "rows = 3e4\n",
    "unit = \"person\"\n",
    "missing = \"drop\"\n",
    "features = 12\n",
    "header = true\n",
    "decimal = \",\"\n",
    "thousands = \".\"\n",
    "thousands = \"\u{a0}\"\n",
    "[columns]\n",
    "a = { range = [0, 10] }\n",
    "b = { range = [-1, 1.5], missing = 0.5 }\n",
    "\"home \\\"town\\\"\" = { values = [\"A\", \"B\"], other = true }\n",
    "c = { values = [1, 2.5, true] }\n",
    "y = { range = [0, 40] }\n",
    "\"*\" = { range = [0, 1] }\n",
    "\"\" = { range = [-1e150, 1e150] }\n",
    "'q' = { values = ['x', 'y'] }\n",
    "d = { range = [0, 1], missing = \"middle\" }\n",
    "features = 4000000000\n",
    "rows = \"?\"\n",
    "a = \"?\"\n",
    "[columns.e]\nrange = [0, 1]\n",
    "\u{feff}",
];

fn built(choices: &mut Unstructured<'_>) -> String {
    let mut text = String::from("rows = 100\n[columns]\n");
    while let Ok(choice) = choices.arbitrary::<u8>() {
        match usize::from(choice) {
            noise @ 230.. => {
                let mut at = noise % (text.len() + 1);
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                text.insert(at, char::from(choice & 0x7F));
            }
            piece => text += PIECES[piece % PIECES.len()],
        }
        if text.len() > 4000 {
            break;
        }
    }
    text
}

/// What a schema must hold to.
fn sound(text: &str) -> Result<(), String> {
    let Ok(schema) = Schema::parse(text) else { return Ok(()) };
    if Schema::parse(&schema.to_toml()).as_ref() != Ok(&schema) {
        return Err("what it prints is another schema".into());
    }
    if schema.to_toml().chars().any(|c| c != '\n' && is_hidden(c)) {
        return Err("a hidden character survives".into());
    }
    let columns: Vec<String> = schema.columns.iter().map(|(name, _)| name.clone()).collect();
    let target = columns.last().map(String::as_str);
    let Ok(encoding) = Encoding::new(&schema, &columns, None, target) else { return Ok(()) };
    let width = encoding.width();
    if width > 1_000_000 {
        return Err(format!("{width} features"));
    }
    // A plan takes time: the small ones, some of the time.
    if width <= 8 && text.len().is_multiple_of(64) {
        let budget = Budget::usual(1.0, None, schema.rows).map_err(|e| e.to_string())?;
        if let Ok(plan) = Regression::new(Link::Linear).plan(schema.rows, width, budget) {
            let certificate = plan.certificate(&schema.unit, None).map_err(|e| e.to_string())?;
            if certificate.epsilon > budget.epsilon() {
                return Err(format!("a plan of epsilon {}", certificate.epsilon));
            }
        }
    }
    Ok(())
}

#[test]
fn schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    quietly_fuzz::check("schemas", 4000, |bytes| {
        quietly_fuzz::within((64 << 20) + 64 * bytes.len(), || {
            let Some((kind, content)) = bytes.split_first() else { return Ok(()) };
            match kind {
                b'b' => sound(&built(&mut Unstructured::new(content))),
                b'h' => {
                    // The names of a header, as `init` writes them.
                    let path = folder.path().join("t.csv");
                    std::fs::write(&path, content).map_err(|e| e.to_string())?;
                    let options = Options { header: true, ..Options::default() };
                    let Ok(source) = Source::open([&path], &options) else { return Ok(()) };
                    let mut names = vec!["rows".to_string()];
                    names.extend(source.columns().iter().cloned());
                    match Schema::parse(&Schema::template(source.columns())) {
                        Err(Error::Unfinished { names: told }) if told == names => Ok(()),
                        other => Err(format!("init and parse disagree: {other:?}")),
                    }
                }
                _ => sound(&String::from_utf8_lossy(content)),
            }
        })
    });
}

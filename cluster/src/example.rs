//! `quietly-cluster example`: a made-up table of any size, to try a cluster on.
use std::{fs, path::Path, sync::Arc};

use datafusion::{
    arrow::{
        array::{ArrayRef, Float64Array, RecordBatch},
        datatypes::{DataType, Field, Schema},
    },
    parquet::{
        arrow::ArrowWriter,
        basic::Compression,
        file::properties::{EnabledStatistics, WriterProperties},
    },
};

use crate::Example;

/// Rows of a batch, and of a row group.
const BATCH: usize = 1 << 16;
const GROUP: usize = 1 << 17;

pub(crate) fn run(asked: &Example) -> Result<(), String> {
    let Example { folder, rows, features, files } = asked;
    if *features == 0 || *files == 0 || *rows == 0 {
        return Err("--rows, --features and --files must be at least 1".into());
    }
    let told = |e: &dyn std::fmt::Display| format!("{}: {e}", folder.display());
    fs::create_dir_all(folder).map_err(|e| told(&e))?;
    let schema_file = folder.with_extension("schema.toml");
    let mut text = format!("rows = {rows}\nunit = \"person\"\n\n[columns]\n");
    (0..*features).for_each(|k| text += &format!("x{k} = {{ range = [-1, 1] }}\n"));
    text += "y = { range = [-4, 4] }\nsick = { values = [\"0\", \"1\"] }\n";
    fs::write(&schema_file, text).map_err(|e| told(&e))?;
    let names = (0..*features).map(|k| format!("x{k}")).chain(["y".into(), "sick".into()]);
    let fields: Vec<Field> = names.map(|n| Field::new(n, DataType::Float64, false)).collect();
    let schema = Arc::new(Schema::new(fields));
    for file in 0..*files {
        let share = rows / files + usize::from(file < rows % files);
        let path = folder.join(format!("part-{file:03}.parquet"));
        write(&path, &schema, *features, share, file as u64).map_err(|e| told(&e))?;
    }
    println!("{} and {} hold {rows} made-up people", folder.display(), schema_file.display());
    Ok(())
}

fn write(
    path: &Path,
    schema: &Arc<Schema>,
    features: usize,
    rows: usize,
    seed: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(GROUP))
        .build();
    let mut writer =
        ArrowWriter::try_new(fs::File::create(path)?, schema.clone(), Some(properties))?;
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D);
    let mut done = 0;
    while done < rows {
        let batch = BATCH.min(rows - done);
        let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(batch); features + 2];
        for _ in 0..batch {
            let mut score = 0.0;
            for (k, column) in columns[..features].iter_mut().enumerate() {
                let x = random.number();
                score += x * (((k * 7) % 5) as f64 - 2.0) / 4.0;
                column.push(x);
            }
            let y = score + 0.5 * (random.number() + random.number());
            columns[features].push(y);
            columns[features + 1].push(f64::from(y > 0.0));
        }
        let columns = columns.into_iter().map(|c| Arc::new(Float64Array::from(c)) as ArrayRef);
        writer.write(&RecordBatch::try_new(schema.clone(), columns.collect())?)?;
        done += batch;
    }
    writer.close()?;
    Ok(())
}

/// Marsaglia's xorshift generator.
struct Random(u64);

impl Random {
    /// Uniform in [-1, 1).
    fn number(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / 2f64.powi(52) - 1.0
    }
}

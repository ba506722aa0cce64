//! Decodes cells to features and targets: an encoding, applied to the columns of a file.
use crate::{Encoding, Error, Missing, Notation, Rule, encoding::NullRows, value::Lookup};

/// Decodes the rows of a file: a decoder for every column.
pub(crate) struct RowDecoder {
    pub(crate) cells: Vec<ColumnDecoder>,
    pub(crate) width: usize,
    pub(crate) nulls: NullRows,
    /// The row whose cells are all 0, like those that libsvm text does not list.
    pub(crate) zero_row: ZeroRow,
    /// Whether sparse rows are wanted.
    pub(crate) sparse: bool,
    /// How numbers are written as text.
    pub(crate) notation: Notation,
    /// For every column, whether the schema or the model contains its name.
    pub(crate) named: Vec<bool>,
}

/// The row whose cells are all 0.
#[derive(Default)]
pub(crate) struct ZeroRow {
    pub(crate) features: Vec<f64>,
    pub(crate) target: f64,
    /// For every column, whether a 0 there makes the row a null row.
    pub(crate) null: Vec<bool>,
    /// The number of such columns.
    pub(crate) nulls: usize,
    /// Whether all features are 0.
    pub(crate) is_zero: bool,
}

/// Decodes the cells of one column.
pub(crate) enum ColumnDecoder {
    Skip,
    Number(Number),
    Category(Category),
    Target { lo: f64, hi: f64, notation: Notation },
    Class(Class),
}

/// A number becomes one feature.
pub(crate) struct Number {
    pub(crate) slot: usize,
    pub(crate) scaling: Scaling,
    notation: Notation,
}

/// A category sets at most one of its features.
pub(crate) struct Category {
    slot: usize,
    slots: usize,
    lookup: Lookup,
    /// The index of undeclared values. `None` makes the row a null row.
    unknown: Option<usize>,
}

/// A label becomes the number of its class.
pub(crate) struct Class {
    lookup: Lookup,
    /// The index of undeclared values. `None` makes the row a null row.
    unknown: Option<usize>,
}

/// Receives the features and the target of a row.
pub(crate) trait RowWriter {
    /// Sets a feature, which was zero.
    fn feature(&mut self, slot: usize, x: f64);
    /// Sets the target.
    fn target(&mut self, y: f64);
}

/// A dense row that is being filled. Its features start at zero.
pub(crate) struct DenseRow<'a> {
    pub(crate) features: &'a mut [f64],
    pub(crate) target: &'a mut f64,
}

impl RowWriter for DenseRow<'_> {
    #[inline(always)]
    fn feature(&mut self, slot: usize, x: f64) {
        self.features[slot] = x;
    }

    #[inline(always)]
    fn target(&mut self, y: f64) {
        *self.target = y;
    }
}

impl RowDecoder {
    pub(crate) fn new(encoding: &Encoding, columns: &[String]) -> Result<Self, Error> {
        let place: std::collections::HashMap<&str, usize> =
            columns.iter().enumerate().map(|(i, c)| (c.as_str(), i)).collect();
        let absent: Vec<String> =
            encoding.columns().filter(|c| !place.contains_key(c)).map(Into::into).collect();
        if !absent.is_empty() {
            return Err(Error::MissingColumns { names: absent });
        }
        let mut cells: Vec<ColumnDecoder> = columns.iter().map(|_| ColumnDecoder::Skip).collect();
        let mut named = vec![false; columns.len()];
        let mut width = 0;
        let (predicting, notation) = (encoding.is_predicting(), encoding.notation());
        for input in encoding.inputs() {
            named[place[input.column.as_str()]] = !input.from_header;
            cells[place[input.column.as_str()]] = match &input.rule {
                Rule::Range { lo, hi, missing } => ColumnDecoder::Number(Number::new(
                    width, *lo, *hi, *missing, predicting, notation,
                )),
                Rule::Values { values, other } => ColumnDecoder::Category(Category {
                    slot: width,
                    slots: input.width(),
                    lookup: Lookup::new(values, notation),
                    unknown: if *other { Some(values.len()) } else { predicting.then_some(0) },
                }),
            };
            width += input.width();
        }
        if let Some(target) = encoding.target().filter(|_| !predicting) {
            named[place[target.name.as_str()]] = true;
            cells[place[target.name.as_str()]] = if target.is_classes() {
                let unknown = target.other.then_some(target.classes.len());
                ColumnDecoder::Class(Class {
                    lookup: Lookup::new(&target.classes, notation),
                    unknown,
                })
            } else {
                ColumnDecoder::Target { lo: target.lo, hi: target.hi, notation }
            };
        }
        let zero_row = ZeroRow::new(&cells, width);
        let nulls = encoding.nulls();
        Ok(RowDecoder { cells, width, nulls, zero_row, sparse: false, notation, named })
    }

    /// Whether sparse input is decoded to sparse rows.
    pub(crate) fn reads_sparse(&self) -> bool {
        self.sparse && self.zero_row.is_zero
    }

    /// The columns that are used.
    pub(crate) fn used(&self) -> Vec<usize> {
        let used = |i: &usize| !matches!(self.cells[*i], ColumnDecoder::Skip);
        (0..self.cells.len()).filter(used).collect()
    }

    /// Fills a row that cannot be read: all its cells are missing in prediction. Otherwise it is a
    /// null row.
    pub(crate) fn unreadable(&self, row: &mut impl RowWriter) -> bool {
        self.nulls == NullRows::Fill && self.cells.iter().all(|cell| cell.text(b"", row))
    }
}

impl ZeroRow {
    fn new(cells: &[ColumnDecoder], width: usize) -> Self {
        let (mut features, mut target) = (vec![0.0; width], 0.0);
        let row = &mut DenseRow { features: &mut features, target: &mut target };
        let null: Vec<bool> = cells.iter().map(|cell| !cell.text(b"0", row)).collect();
        let nulls = null.iter().filter(|n| **n).count();
        let is_zero = features.iter().all(|x| *x == 0.0);
        ZeroRow { features, target, null, nulls, is_zero }
    }
}

impl ColumnDecoder {
    /// The values of a category or a class.
    pub(crate) fn lookup(&self) -> Option<&Lookup> {
        match self {
            ColumnDecoder::Category(category) => Some(&category.lookup),
            ColumnDecoder::Class(class) => Some(&class.lookup),
            _ => None,
        }
    }

    /// Decodes a text. False makes the row a null row.
    pub(crate) fn text(&self, text: &[u8], row: &mut impl RowWriter) -> bool {
        let text = text.trim_ascii();
        match self {
            ColumnDecoder::Skip => true,
            ColumnDecoder::Category(category) => category.place(category.lookup.text(text), row),
            ColumnDecoder::Class(class) => class.place(class.lookup.text(text), row),
            ColumnDecoder::Number(number) => self.number(number_or_nan(text, number.notation), row),
            ColumnDecoder::Target { notation, .. } => {
                self.number(number_or_nan(text, *notation), row)
            }
        }
    }

    /// Decodes a number, where NaN is missing. False makes the row a null row.
    #[inline(always)]
    pub(crate) fn number(&self, x: f64, row: &mut impl RowWriter) -> bool {
        match self {
            ColumnDecoder::Number(number) => match number.encode(x) {
                Some(encoded) => {
                    row.feature(number.slot, encoded);
                    true
                }
                None => false,
            },
            ColumnDecoder::Target { lo, hi, .. } => {
                row.target(clamp(x, *lo, *hi));
                !x.is_nan()
            }
            ColumnDecoder::Category(category) => category.number(x, row),
            ColumnDecoder::Class(class) => class.place(class.lookup.number(x), row),
            ColumnDecoder::Skip => true,
        }
    }

    /// The features that this column sets.
    pub(crate) fn slots(&self) -> std::ops::Range<usize> {
        match self {
            ColumnDecoder::Number(number) => number.slot..number.slot + 1,
            ColumnDecoder::Category(category) => category.slot..category.slot + category.slots,
            ColumnDecoder::Skip | ColumnDecoder::Target { .. } | ColumnDecoder::Class(_) => 0..0,
        }
    }

    /// Resets the features of a cell to zero.
    pub(crate) fn clear(&self, features: &mut [f64]) {
        if let ColumnDecoder::Category(category) = self {
            features[category.slot..category.slot + category.slots].fill(0.0);
        }
    }
}

/// Parses trimmed text as a number. Any other text is missing.
pub(crate) fn number_or_nan(text: &[u8], notation: Notation) -> f64 {
    match notation.read(text) {
        Some(x) => x,
        None if text.eq_ignore_ascii_case(b"true") => 1.0,
        None if text.eq_ignore_ascii_case(b"false") => 0.0,
        None => f64::NAN,
    }
}

impl Number {
    fn new(
        slot: usize,
        lo: f64,
        hi: f64,
        missing: Option<Missing>,
        predicting: bool,
        notation: Notation,
    ) -> Self {
        let (centre, half_width) = ((lo + hi) / 2.0, (hi - lo) / 2.0);
        let mut scaling = Scaling { lo, hi, centre, half_width, fill: f64::NAN };
        scaling.fill = match missing.unwrap_or(Missing::Middle).fill(lo, hi) {
            Some(fill) => scaling.encode(fill),
            None if predicting => 0.0,
            None => f64::NAN,
        };
        Number { slot, scaling, notation }
    }

    /// The feature, or `None` for a null row. Infinities are clamped.
    #[inline(always)]
    pub(crate) fn encode(&self, x: f64) -> Option<f64> {
        let encoded = self.scaling.encode(x);
        (!encoded.is_nan()).then_some(encoded)
    }
}

/// How a number is scaled to [-1, 1].
#[derive(Clone, Copy)]
pub(crate) struct Scaling {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) centre: f64,
    pub(crate) half_width: f64,
    /// The feature of a missing number. NaN makes the row a null row.
    pub(crate) fill: f64,
}

impl Scaling {
    /// The feature. NaN makes the row a null row.
    #[inline(always)]
    pub(crate) fn encode(&self, x: f64) -> f64 {
        let Scaling { lo, hi, centre, half_width, fill } = *self;
        if x.is_nan() { fill } else { encoded(x, lo, hi, centre, |x| x / half_width) }
    }
}

/// Clamps a number that is not NaN to its range and maps it to [-1, 1]. `scaled` divides by the half
/// width.
#[inline(always)]
pub(crate) fn encoded(x: f64, lo: f64, hi: f64, centre: f64, scaled: impl Fn(f64) -> f64) -> f64 {
    // Rounding may exceed 1 slightly.
    clamp(scaled(clamp(x, lo, hi) - centre), -1.0, 1.0)
}

/// [`f64::clamp`] for numbers that are not NaN: two instructions.
#[inline]
pub(crate) fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x > lo { x } else { lo };
    if x < hi { x } else { hi }
}

impl Category {
    #[inline(never)]
    fn number(&self, x: f64, row: &mut impl RowWriter) -> bool {
        self.place(self.lookup.number(x), row)
    }

    fn place(&self, found: Option<usize>, row: &mut impl RowWriter) -> bool {
        match found.or(self.unknown) {
            // The baseline has no feature.
            Some(0) => true,
            Some(place) => {
                row.feature(self.slot + place - 1, 1.0);
                true
            }
            None => false,
        }
    }
}

impl Class {
    fn place(&self, found: Option<usize>, row: &mut impl RowWriter) -> bool {
        match found.or(self.unknown) {
            Some(place) => {
                row.target(place as f64);
                true
            }
            None => false,
        }
    }
}

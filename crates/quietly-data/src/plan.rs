//! An encoding, applied to the columns of a file.
use crate::{Encoding, Error, Missing, Notation, Rule, encoding::Nulls, value::Lookup};

/// What to do with each column of a file.
pub(crate) struct Plan {
    pub(crate) cells: Vec<Cell>,
    pub(crate) width: usize,
    pub(crate) nulls: Nulls,
    /// What a row is whose cells are all 0, as those are that libsvm text leaves out.
    pub(crate) absent: Absent,
    /// Rows are wanted without their zeros.
    pub(crate) sparse: bool,
    /// How numbers are written as text.
    pub(crate) notation: Notation,
    /// For every column, whether the schema or the model says its name.
    pub(crate) named: Vec<bool>,
}

/// A row whose cells are all 0.
#[derive(Default)]
pub(crate) struct Absent {
    pub(crate) features: Vec<f64>,
    pub(crate) target: f64,
    /// For every column, whether a 0 there makes the row the null record.
    pub(crate) null: Vec<bool>,
    /// How many columns do.
    pub(crate) nulls: usize,
    /// Whether all features are 0.
    pub(crate) zero: bool,
}

/// What to do with a cell.
pub(crate) enum Cell {
    Skip,
    Number(Number),
    Category(Category),
    Target { lo: f64, hi: f64, notation: Notation },
    Class(Class),
}

/// A number goes to one place in the row.
pub(crate) struct Number {
    pub(crate) slot: usize,
    pub(crate) lane: Lane,
    notation: Notation,
}

/// A category sets at most one of a few places.
pub(crate) struct Category {
    slot: usize,
    slots: usize,
    lookup: Lookup,
    /// The place of all that is not found; `None` makes the row the null record.
    unknown: Option<usize>,
}

/// A label becomes the place of its class.
pub(crate) struct Class {
    lookup: Lookup,
    /// The place of all that is not found; `None` makes the row the null record.
    unknown: Option<usize>,
}

/// Where the numbers of a row go.
pub(crate) trait Fill {
    /// A feature, which was zero.
    fn feature(&mut self, slot: usize, x: f64);
    /// The target.
    fn target(&mut self, y: f64);
}

/// The row being filled. Its features start at zero.
pub(crate) struct Row<'a> {
    pub(crate) features: &'a mut [f64],
    pub(crate) target: &'a mut f64,
}

impl Fill for Row<'_> {
    #[inline(always)]
    fn feature(&mut self, slot: usize, x: f64) {
        self.features[slot] = x;
    }

    #[inline(always)]
    fn target(&mut self, y: f64) {
        *self.target = y;
    }
}

impl Plan {
    pub(crate) fn new(encoding: &Encoding, columns: &[String]) -> Result<Self, Error> {
        let place: std::collections::HashMap<&str, usize> =
            columns.iter().enumerate().map(|(i, c)| (c.as_str(), i)).collect();
        let absent: Vec<String> =
            encoding.columns().filter(|c| !place.contains_key(c)).map(Into::into).collect();
        if !absent.is_empty() {
            return Err(Error::MissingColumns { names: absent });
        }
        let mut cells: Vec<Cell> = columns.iter().map(|_| Cell::Skip).collect();
        let mut named = vec![false; columns.len()];
        let mut width = 0;
        let (predicting, notation) = (encoding.is_predicting(), encoding.notation());
        for input in encoding.inputs() {
            named[place[input.column.as_str()]] = !input.from_header;
            cells[place[input.column.as_str()]] = match &input.rule {
                Rule::Range { lo, hi, missing } => {
                    Cell::Number(Number::new(width, *lo, *hi, *missing, predicting, notation))
                }
                Rule::Values { values, other } => Cell::Category(Category {
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
                Cell::Class(Class { lookup: Lookup::new(&target.classes, notation), unknown })
            } else {
                Cell::Target { lo: target.lo, hi: target.hi, notation }
            };
        }
        let absent = Absent::new(&cells, width);
        let nulls = encoding.nulls();
        Ok(Plan { cells, width, nulls, absent, sparse: false, notation, named })
    }

    /// Whether libsvm text can be read without its zeros.
    pub(crate) fn thin(&self) -> bool {
        self.sparse && self.absent.zero
    }

    /// The columns that are used.
    pub(crate) fn used(&self) -> Vec<usize> {
        let used = |i: &usize| !matches!(self.cells[*i], Cell::Skip);
        (0..self.cells.len()).filter(used).collect()
    }

    /// Fills `row` for a line that cannot be read: all cells are missing when predicting, and
    /// otherwise it is the null record.
    pub(crate) fn broken(&self, row: &mut impl Fill) -> bool {
        self.nulls == Nulls::Filled && self.cells.iter().all(|cell| cell.text(b"", row))
    }
}

impl Absent {
    fn new(cells: &[Cell], width: usize) -> Self {
        let (mut features, mut target) = (vec![0.0; width], 0.0);
        let row = &mut Row { features: &mut features, target: &mut target };
        let null: Vec<bool> = cells.iter().map(|cell| !cell.text(b"0", row)).collect();
        let nulls = null.iter().filter(|n| **n).count();
        let zero = features.iter().all(|x| *x == 0.0);
        Absent { features, target, null, nulls, zero }
    }
}

impl Cell {
    /// Which values there are, of a category or a class.
    pub(crate) fn lookup(&self) -> Option<&Lookup> {
        match self {
            Cell::Category(category) => Some(&category.lookup),
            Cell::Class(class) => Some(&class.lookup),
            _ => None,
        }
    }

    /// Encodes a cell of text. False makes the row the null record.
    pub(crate) fn text(&self, text: &[u8], row: &mut impl Fill) -> bool {
        let text = text.trim_ascii();
        match self {
            Cell::Skip => true,
            Cell::Category(category) => category.place(category.lookup.text(text), row),
            Cell::Class(class) => class.place(class.lookup.text(text), row),
            Cell::Number(number) => self.number(number_or_nan(text, number.notation), row),
            Cell::Target { notation, .. } => self.number(number_or_nan(text, *notation), row),
        }
    }

    /// Encodes a cell that is a number; NaN is missing.
    #[inline(always)]
    pub(crate) fn number(&self, x: f64, row: &mut impl Fill) -> bool {
        match self {
            Cell::Number(number) => match number.encode(x) {
                Some(encoded) => {
                    row.feature(number.slot, encoded);
                    true
                }
                None => false,
            },
            Cell::Target { lo, hi, .. } => {
                row.target(clamp(x, *lo, *hi));
                !x.is_nan()
            }
            Cell::Category(category) => category.number(x, row),
            Cell::Class(class) => class.place(class.lookup.number(x), row),
            Cell::Skip => true,
        }
    }

    /// The places in a row that this cell may set.
    pub(crate) fn slots(&self) -> std::ops::Range<usize> {
        match self {
            Cell::Number(number) => number.slot..number.slot + 1,
            Cell::Category(category) => category.slot..category.slot + category.slots,
            Cell::Skip | Cell::Target { .. } | Cell::Class(_) => 0..0,
        }
    }

    /// Takes back what an absent cell had set.
    pub(crate) fn clear(&self, features: &mut [f64]) {
        if let Cell::Category(category) = self {
            features[category.slot..category.slot + category.slots].fill(0.0);
        }
    }
}

/// The number that trimmed text is. Whatever is no number is missing.
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
        let mut lane = Lane { lo, hi, centre, half_width, fill: f64::NAN };
        lane.fill = match missing.unwrap_or(Missing::Middle).fill(lo, hi) {
            Some(fill) => lane.encode(fill),
            None if predicting => 0.0,
            None => f64::NAN,
        };
        Number { slot, lane, notation }
    }

    /// Clamps infinities, too.
    #[inline(always)]
    pub(crate) fn encode(&self, x: f64) -> Option<f64> {
        let encoded = self.lane.encode(x);
        (!encoded.is_nan()).then_some(encoded)
    }
}

/// How a number is encoded.
#[derive(Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) centre: f64,
    pub(crate) half_width: f64,
    /// What a missing number is; NaN if it makes the row the null record.
    pub(crate) fill: f64,
}

impl Lane {
    /// The number of the row; NaN makes it the null record.
    #[inline(always)]
    pub(crate) fn encode(&self, x: f64) -> f64 {
        let Lane { lo, hi, centre, half_width, fill } = *self;
        if x.is_nan() { fill } else { encoded(x, lo, hi, centre, |x| x / half_width) }
    }
}

/// A number that is not NaN, clamped to its range and moved to [-1, 1], where `scaled` divides by half of the range.
#[inline(always)]
pub(crate) fn encoded(x: f64, lo: f64, hi: f64, centre: f64, scaled: impl Fn(f64) -> f64) -> f64 {
    // Rounding may end a little beyond 1.
    clamp(scaled(clamp(x, lo, hi) - centre), -1.0, 1.0)
}

/// [`f64::clamp`] for what is not NaN: two instructions.
#[inline]
pub(crate) fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x > lo { x } else { lo };
    if x < hi { x } else { hi }
}

impl Category {
    #[inline(never)]
    fn number(&self, x: f64, row: &mut impl Fill) -> bool {
        self.place(self.lookup.number(x), row)
    }

    fn place(&self, found: Option<usize>, row: &mut impl Fill) -> bool {
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
    fn place(&self, found: Option<usize>, row: &mut impl Fill) -> bool {
        match found.or(self.unknown) {
            Some(place) => {
                row.target(place as f64);
                true
            }
            None => false,
        }
    }
}

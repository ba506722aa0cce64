//! Pictures with classes: read, made up, and made worse.
use quietly_engine::{error::Error, normals::normals};
use quietly_noise::Key;

use crate::GRID;

/// Pictures of one size, each of some class.
#[derive(Clone)]
pub struct Pictures {
    side: usize,
    channels: usize,
    /// Picture by picture, row by row, pixel by pixel.
    values: Vec<f32>,
    labels: Vec<u32>,
}

/// One picture.
#[derive(Clone, Copy)]
pub(super) struct Picture<'a> {
    pub(super) values: &'a [f32],
    pub(super) label: u32,
}

impl Pictures {
    /// Pictures from their numbers, picture by picture, row by row, pixel by pixel. What is not finite counts as 0, and a
    /// picture of a class that a network does not know teaches it nothing, so that no picture can cause an error.
    ///
    /// # Panics
    ///
    /// If the lengths do not go together.
    pub fn new(side: usize, channels: usize, mut values: Vec<f32>, labels: Vec<u32>) -> Pictures {
        assert_eq!(values.len(), labels.len() * side * side * channels, "numbers of all pixels");
        values.iter_mut().filter(|x| !x.is_finite()).for_each(|x| *x = 0.0);
        Pictures { side, channels, values, labels }
    }

    /// The records of a CIFAR-10 file: a byte for the class, then 1024 of red, of green and of blue, which become -1 to 1. What is left at the end is
    /// no record.
    pub fn cifar10(bytes: &[u8]) -> Pictures {
        const PIXELS: usize = 32 * 32;
        let records = bytes.chunks_exact(1 + 3 * PIXELS);
        let mut values = Vec::with_capacity(records.len() * 3 * PIXELS);
        let mut labels = Vec::with_capacity(records.len());
        for record in records {
            labels.push(u32::from(record[0]));
            let colours = &record[1..];
            let pixel =
                |at: usize| [0, 1, 2].map(|c| f32::from(colours[c * PIXELS + at]) / 127.5 - 1.0);
            values.extend((0..PIXELS).flat_map(pixel));
        }
        Pictures::new(32, 3, values, labels)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `count` of every class, in their order: for public pictures.
    #[must_use]
    pub fn first_of_each(&self, count: usize) -> Pictures {
        let mut seen = std::collections::BTreeMap::new();
        let kept = |at: &usize| {
            let times = seen.entry(self.labels[*at]).or_insert(0);
            *times += 1;
            *times <= count
        };
        let kept: Vec<usize> = (0..self.labels.len()).filter(kept).collect();
        let values = kept.iter().flat_map(|at| self.picture(*at).values).copied().collect();
        let labels = kept.iter().map(|at| self.labels[*at]).collect();
        Pictures { values, labels, ..*self }
    }

    /// The numbers and the class of one picture: for public pictures.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn show(&self, at: usize) -> (&[f32], u32) {
        let picture = self.picture(at);
        (picture.values, picture.label)
    }

    /// Side and channels.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.side, self.channels)
    }

    pub(super) fn picture(&self, at: usize) -> Picture<'_> {
        let size = self.side * self.side * self.channels;
        Picture { values: &self.values[at * size..][..size], label: self.labels[at] }
    }

    /// Adds normal noise to every picture, other for each: its contrast (the standard deviation of its numbers) is `snr` times the
    /// deviation of the noise.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless the SNR is from 0.001 to 1e6.
    pub fn corrupt(&mut self, snr: f64, key: &Key) -> Result<(), Error> {
        Error::ensure((1e-3..=1e6).contains(&snr), "SNR", "from 0.001 to 1e6", snr)?;
        let stream = key.stream("corruption");
        let size = self.side * self.side * self.channels;
        for (at, picture) in self.values.chunks_exact_mut(size).enumerate() {
            let (_, deviation) = moments(picture);
            let noise = normals(&stream, at as u64, GRID, size)?;
            for (x, z) in picture.iter_mut().zip(noise) {
                *x += (deviation / snr * z) as f32;
            }
        }
        Ok(())
    }

    /// All there is to know of one picture, as bytes.
    pub(super) fn bytes(&self, at: usize) -> Vec<u8> {
        let picture = self.picture(at);
        let mut bytes = picture.label.to_le_bytes().to_vec();
        bytes.extend(picture.values.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }
}

impl Picture<'_> {
    /// The picture with mean square 1, or 0 if there is nothing in it: what networks see. Its mean stays where it is, as in
    /// [group norms](super::group_norm).
    #[inline(always)]
    pub(super) fn standardised(&self, out: &mut [f32]) {
        let (mean, deviation) = moments(self.values);
        let size = (mean * mean + deviation * deviation).sqrt();
        let inverse = if size > 1e-9 { 1.0 / size } else { 0.0 };
        for (out, x) in out.iter_mut().zip(self.values) {
            *out = (f64::from(*x) * inverse) as f32;
        }
    }
}

/// Mean and standard deviation, added up in four lanes.
#[inline(always)]
fn moments(values: &[f32]) -> (f64, f64) {
    let sum = |of: &dyn Fn(f64) -> f64| {
        let (fours, rest) = values.as_chunks::<4>();
        let mut lanes = [0.0; 4];
        for four in fours {
            for (lane, x) in lanes.iter_mut().zip(four) {
                *lane += of(f64::from(*x));
            }
        }
        (lanes[0] + lanes[1])
            + (lanes[2] + lanes[3])
            + rest.iter().map(|x| of(f64::from(*x))).sum::<f64>()
    };
    let count = values.len() as f64;
    let mean = sum(&|x| x) / count;
    (mean, (sum(&|x| (x - mean) * (x - mean)) / count).sqrt())
}

/// Where made-up pictures come from: noise, and somewhere in it a patch in the colour of the picture's class.
pub struct Pasted {
    side: usize,
    patch: usize,
    snr: f64,
    classes: u32,
    key: Key,
}

impl Pasted {
    /// Colour pictures of `side` pixels, of so many classes, whose patches are `patch` pixels wide. The noise around has
    /// deviation 1 and lies over the patch too, whose red, green and blue are ±`snr`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if a patch does not fit, or the SNR is not from 0 to 1e6.
    pub fn new(
        side: usize,
        patch: usize,
        classes: u32,
        snr: f64,
        key: Key,
    ) -> Result<Pasted, Error> {
        let fits = (1..=side).contains(&patch) && side <= 256;
        Error::ensure(fits, "patch", "from 1 pixel to the picture's side", patch)?;
        Error::ensure((0.0..=1e6).contains(&snr), "SNR", "from 0 to 1e6", snr)?;
        Error::ensure((2..=8).contains(&classes), "classes", "from 2 to 8", classes)?;
        Ok(Pasted { side, patch, snr, classes, key })
    }

    /// How many pixels wide a patch is.
    pub fn patch(&self) -> usize {
        self.patch
    }

    /// So many pictures, others for each `time`, and where each patch is: its first row and column.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if there is no randomness.
    pub fn draw(&self, time: u64, count: usize) -> Result<(Pictures, Vec<(usize, usize)>), Error> {
        let side = self.side;
        let size = side * side * 3;
        let stream = self.key.stream("pictures");
        let mut values: Vec<f32> =
            normals(&stream, 2 * time, GRID, count * size)?.into_iter().map(|z| z as f32).collect();
        let mut bits = stream.bits(2 * time + 1)?;
        let (mut labels, mut places) = (Vec::new(), Vec::new());
        for picture in values.chunks_exact_mut(size) {
            let label = bits.below(u64::from(self.classes))?;
            let room = (side - self.patch + 1) as u64;
            let (top, left) = (bits.below(room)? as usize, bits.below(room)? as usize);
            let colour = self.colour(label);
            for y in top..top + self.patch {
                let line = &mut picture[(y * side + left) * 3..][..self.patch * 3];
                for pixel in line.as_chunks_mut::<3>().0 {
                    pixel.iter_mut().zip(colour).for_each(|(x, v)| *x += v);
                }
            }
            labels.push(label as u32);
            places.push((top, left));
        }
        Ok((Pictures::new(side, 3, values, labels), places))
    }

    /// The patch of each class: one colour, ±SNR in red, green and blue.
    fn colour(&self, label: u64) -> [f32; 3] {
        [0, 1, 2].map(|bit| if label >> bit & 1 == 1 { self.snr as f32 } else { -self.snr as f32 })
    }
}

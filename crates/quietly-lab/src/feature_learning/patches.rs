//! Pictures as lists of patches, and the paper's law of them (Definition 3.1).
use quietly_engine::{
    error::Error,
    linalg::{add, dot, norm},
    normals::normals,
};
use quietly_noise::{Key, Stream};

use crate::GRID;

/// Pictures with labels -1 and 1, each a list of as many patches of as many numbers.
#[derive(Clone)]
pub struct Images {
    patches: usize,
    dimension: usize,
    values: Vec<f64>,
    labels: Vec<f64>,
    /// <x_p, x_p'> of every picture.
    grams: Vec<f64>,
}

impl Images {
    /// Pictures from their numbers, picture by picture and patch by patch. What is not finite counts as 0, and a label that
    /// is not above 0 as -1, so that no picture can cause an error.
    ///
    /// # Panics
    ///
    /// If there are no patches, or the lengths do not go together.
    pub fn new(
        patches: usize,
        dimension: usize,
        mut values: Vec<f64>,
        mut labels: Vec<f64>,
    ) -> Images {
        assert!(patches > 0 && dimension > 0, "a picture has patches, and a patch has numbers");
        assert_eq!(values.len(), labels.len() * patches * dimension, "numbers of all patches");
        values.iter_mut().filter(|x| !x.is_finite()).for_each(|x| *x = 0.0);
        labels.iter_mut().for_each(|y| *y = if *y > 0.0 { 1.0 } else { -1.0 });
        let mut grams = Vec::with_capacity(labels.len() * patches * patches);
        for image in values.chunks_exact(patches * dimension) {
            let patch = |p: usize| &image[p * dimension..][..dimension];
            for at in 0..patches * patches {
                grams.push(dot(patch(at / patches), patch(at % patches)));
            }
        }
        Images { patches, dimension, values, labels, grams }
    }

    /// How many pictures there are.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// How many patches a picture has.
    pub fn patches(&self) -> usize {
        self.patches
    }

    /// How many numbers a patch has.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// One picture: its patches, its label and the inner products of its patches.
    pub(crate) fn image(&self, at: usize) -> Image<'_> {
        let (size, pairs) = (self.patches * self.dimension, self.patches * self.patches);
        Image {
            dimension: self.dimension,
            values: &self.values[at * size..][..size],
            label: self.labels[at],
            gram: &self.grams[at * pairs..][..pairs],
        }
    }
}

/// One picture.
#[derive(Clone, Copy)]
pub(crate) struct Image<'a> {
    dimension: usize,
    values: &'a [f64],
    pub(crate) label: f64,
    pub(crate) gram: &'a [f64],
}

impl<'a> Image<'a> {
    pub(crate) fn patches(&self) -> usize {
        self.values.len() / self.dimension
    }

    pub(crate) fn patch(&self, p: usize) -> &'a [f64] {
        &self.values[p * self.dimension..][..self.dimension]
    }

    /// ‖x_p‖².
    pub(crate) fn square(&self, p: usize) -> f64 {
        self.gram[p * self.patches() + p]
    }
}

/// Where made-up pictures come from: the first patch is the label times a fixed signal v, the others are normal noise
/// orthogonal to v (Definition 3.1 has one of them).
pub struct World {
    /// v.
    pub(crate) signal: Vec<f64>,
    patches: usize,
    pictures: Stream,
}

impl World {
    /// A world of two patches with `dimension` numbers, noise of variance 1, and ‖v‖ = `snr`·√(dimension - 1).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless the SNR is from 0 to 1e6 and the dimension from 2 to a million.
    pub fn new(dimension: usize, snr: f64, key: &Key) -> Result<World, Error> {
        Error::ensure((0.0..=1e6).contains(&snr), "SNR", "from 0 to 1e6", snr)?;
        let fine = (2..=1_000_000).contains(&dimension);
        Error::ensure(fine, "dimension", "from 2 to a million", dimension)?;
        let mut signal = normals(&key.stream("signal"), 0, GRID, dimension)?;
        let length = snr * ((dimension - 1) as f64).sqrt() / norm(&signal);
        signal.iter_mut().for_each(|v| *v *= length);
        Ok(World { signal, patches: 2, pictures: key.stream("pictures") })
    }

    /// The same with more patches of noise.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless there are from 2 to 100 patches.
    pub fn patches(self, patches: usize) -> Result<World, Error> {
        Error::ensure((2..=100).contains(&patches), "patches", "from 2 to 100", patches)?;
        Ok(World { patches, ..self })
    }

    /// So many pictures, others for each `time`.
    ///
    /// # Errors
    ///
    /// [`Error::Noise`] if there is no randomness.
    pub fn draw(&self, time: u64, count: usize) -> Result<Images, Error> {
        let (d, size) = (self.signal.len(), self.signal.len() * self.patches);
        let square = dot(&self.signal, &self.signal).max(f64::MIN_POSITIVE);
        let mut values = normals(&self.pictures, 2 * time, GRID, count * size)?;
        let coins = normals(&self.pictures, 2 * time + 1, GRID, count)?;
        let labels: Vec<f64> = coins.iter().map(|c| if *c > 0.0 { 1.0 } else { -1.0 }).collect();
        for (image, label) in values.chunks_exact_mut(size).zip(&labels) {
            let (first, others) = image.split_at_mut(d);
            first.iter_mut().zip(&self.signal).for_each(|(x, v)| *x = label * v);
            for patch in others.chunks_exact_mut(d) {
                // Twice: what rounding leaves of v after the first time goes at the second.
                for _ in 0..2 {
                    let along = dot(patch, &self.signal) / square;
                    add(patch, &self.signal, -along);
                }
            }
        }
        Ok(Images::new(self.patches, d, values, labels))
    }
}

//! A small convolutional network, and the gradient of one picture.
//!
//! Three times a convolution, a group norm, tanh and a mean of 2x2 pixels, then one dense layer: "ConvNet-S" with its 19 546
//! weights on pictures of 32x32 pixels. Whatever is computed for a picture hangs on it and on the weights alone.
use quietly_engine::{error::Error, normals::normals};
use quietly_noise::Key;
use serde::Serialize;

use super::{
    conv::Conv,
    dataset::{Picture, Pictures},
    group_norm::{GroupNorm, bent, pool, unpool},
};
use crate::GRID;

/// How many blocks there are.
const BLOCKS: usize = 3;

/// How a network looks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConvShape {
    /// How many pixels wide and high pictures are: a multiple of 8.
    pub side: usize,
    /// How many numbers a pixel has.
    pub channels: usize,
    /// How many channels each convolution gives: multiples of [`group`](Self::group).
    pub widths: [usize; BLOCKS],
    /// How many channels are normalised together.
    pub group: usize,
    /// How many classes there are.
    pub classes: usize,
}

impl Default for ConvShape {
    /// Colour pictures of 32x32 pixels in ten classes.
    fn default() -> Self {
        ConvShape { side: 32, channels: 3, widths: [16, 32, 32], group: 4, classes: 10 }
    }
}

impl ConvShape {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let side = self.side.is_multiple_of(8) && (8..=256).contains(&self.side);
        Error::ensure(side, "side", "a multiple of 8, up to 256", self.side)?;
        let channels = (1..=64).contains(&self.channels);
        Error::ensure(channels, "channels", "from 1 to 64", self.channels)?;
        let group = (1..=256).contains(&self.group);
        Error::ensure(group, "channels of a group", "from 1 to 256", self.group)?;
        for width in self.widths {
            let fine = width.is_multiple_of(self.group) && (1..=256).contains(&width);
            Error::ensure(
                fine,
                "channels of a layer",
                "a multiple of the group, up to 256",
                width,
            )?;
        }
        let classes = (2..=1000).contains(&self.classes);
        Error::ensure(classes, "classes", "from 2 to 1000", self.classes)
    }

    fn blocks(&self) -> [Block; BLOCKS] {
        let (mut side, mut ins, mut at) = (self.side, self.channels, 0);
        self.widths.map(|outs| {
            let conv = Conv { side, channels: (ins, outs), stride: 1, padding: 1 };
            let block = Block { conv, norm: GroupNorm { channels: outs, group: self.group }, at };
            (side, ins, at) = (side / 2, outs, at + conv.weights() + 2 * outs);
            block
        })
    }

    /// How many numbers come before the dense layer.
    fn features(&self) -> usize {
        (self.side / 8).pow(2) * self.widths[BLOCKS - 1]
    }

    /// Where the dense layer's weights begin.
    fn head(&self) -> usize {
        let last = self.blocks()[BLOCKS - 1];
        last.at + last.conv.weights() + 2 * last.norm.channels
    }

    /// How many weights there are in all.
    pub fn weights(&self) -> usize {
        self.head() + (self.features() + 1) * self.classes
    }
}

/// A convolution, a group norm, tanh, a mean; its weights, scales and shifts begin at `at`.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) conv: Conv,
    pub(super) norm: GroupNorm,
    at: usize,
}

impl Block {
    /// The weights of the convolution, the scales and the shifts.
    fn parts<'a>(&self, all: &'a [f32]) -> (&'a [f32], &'a [f32], &'a [f32]) {
        let (weights, rest) = all[self.at..].split_at(self.conv.weights());
        let (scale, rest) = rest.split_at(self.norm.channels);
        (weights, scale, &rest[..self.norm.channels])
    }

    fn parts_mut<'a>(&self, all: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32], &'a mut [f32]) {
        let (weights, rest) = all[self.at..].split_at_mut(self.conv.weights());
        let (scale, rest) = rest.split_at_mut(self.norm.channels);
        (weights, scale, &mut rest[..self.norm.channels])
    }
}

/// A network for pictures.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvNet {
    shape: ConvShape,
    weights: Vec<f32>,
    /// Those of convolutions, as gradients by pictures want them.
    turned: Vec<f32>,
}

impl ConvNet {
    /// A network before any picture was seen: convolutions are drawn from a public seed, the dense layer is zero.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the shape makes no sense.
    pub fn new(shape: ConvShape, seed: u64) -> Result<ConvNet, Error> {
        shape.check()?;
        let mut weights = vec![0.0; shape.weights()];
        let stream = Key::from_seed(seed).stream("weights at the start");
        for (number, block) in shape.blocks().iter().enumerate() {
            let (conv, scale, _) = block.parts_mut(&mut weights);
            let spread = 1.0 / ((9 * block.conv.channels.0) as f64).sqrt();
            let drawn = normals(&stream, number as u64, GRID, conv.len())?;
            conv.iter_mut().zip(drawn).for_each(|(w, z)| *w = (spread * z) as f32);
            scale.fill(1.0);
        }
        let mut network = ConvNet { shape, turned: vec![0.0; shape.head()], weights };
        network.turn();
        Ok(network)
    }

    /// How it looks.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// All weights, layer by layer.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The same network with these weights.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    pub fn set_weights(&mut self, weights: &[f32]) {
        self.weights.copy_from_slice(weights);
        self.turn();
    }

    fn turn(&mut self) {
        for block in self.shape.blocks() {
            let range = block.at..block.at + block.conv.weights();
            block.conv.turned(&self.weights[range.clone()], &mut self.turned[range]);
        }
    }

    /// The share of pictures that get their own class.
    pub fn accuracy(&self, pictures: &Pictures, threads: usize) -> f64 {
        let all: Vec<usize> = (0..pictures.len()).collect();
        let share = all.len().div_ceil(threads.max(1)).max(1);
        let right = |part: &[usize]| {
            pulp::Arch::new()
                .dispatch(Walk { network: self, pictures, which: part, each: Right(0) })
                .0
        };
        let total: u64 = std::thread::scope(|scope| {
            let workers: Vec<_> =
                all.chunks(share).map(|p| scope.spawn(move || right(p))).collect();
            workers.into_iter().map(|w| w.join().expect("a look does not panic")).sum()
        });
        total as f64 / pictures.len().max(1) as f64
    }
}

/// How many pictures get their own class.
struct Right(u64);

impl Each for Right {
    #[inline(always)]
    fn picture(&mut self, network: &ConvNet, pass: &mut Pass, picture: Picture<'_>) {
        pass.look(network, picture);
        self.0 += u64::from(pass.best() == picture.label);
    }
}

/// What is done with every picture. Not a closure: those are not always inlined, and what is not inlined is compiled for
/// the least of all processors.
pub(super) trait Each {
    fn picture(&mut self, network: &ConvNet, pass: &mut Pass, picture: Picture<'_>);
}

/// Pictures, looked at one after the other with the best instructions this processor has.
pub(super) struct Walk<'a, I, E> {
    pub(super) network: &'a ConvNet,
    pub(super) pictures: &'a Pictures,
    pub(super) which: &'a [I],
    pub(super) each: E,
}

impl<I: Copy + TryInto<usize>, E: Each> pulp::NullaryFnOnce for Walk<'_, I, E> {
    type Output = E;

    #[inline(always)]
    fn call(mut self) -> E {
        let mut pass = Pass::new(self.network);
        for &at in self.which {
            let at = at.try_into().unwrap_or_else(|_| panic!("a picture's number"));
            self.each.picture(self.network, &mut pass, self.pictures.picture(at));
        }
        self.each
    }
}

/// Room for what is computed on the way through a block.
struct Room {
    /// What came in, with zeros around.
    padded: Vec<f32>,
    /// The convolution's answer, normalised.
    normal: Vec<f32>,
    inverse: Vec<f32>,
    bent: Vec<f32>,
    pooled: Vec<f32>,
    /// The gradient by the convolution's answer.
    back: Vec<f32>,
    /// The gradient by what came in, with room around.
    back_padded: Vec<f32>,
}

/// One picture's way through a network, and back.
pub(super) struct Pass {
    blocks: [Block; BLOCKS],
    rooms: Vec<Room>,
    input: Vec<f32>,
    scores: Vec<f32>,
    by_scores: Vec<f32>,
    by_pooled: Vec<f32>,
    /// By all weights; of no meaning before [`back`](Self::back).
    pub(super) gradient: Vec<f32>,
}

impl Pass {
    pub(super) fn new(network: &ConvNet) -> Pass {
        let shape = network.shape;
        let blocks = shape.blocks();
        let room = |block: &Block| {
            let (pixels, outs) = (block.conv.out().pow(2), block.norm.channels);
            let padded = vec![0.0; block.conv.padded().pow(2) * block.conv.channels.0];
            Room {
                normal: vec![0.0; pixels * outs],
                inverse: vec![0.0; outs],
                bent: vec![0.0; pixels * outs],
                pooled: vec![0.0; pixels / 4 * outs],
                back: vec![0.0; pixels * outs],
                back_padded: padded.clone(),
                padded,
            }
        };
        let rooms: Vec<Room> = blocks.iter().map(room).collect();
        let most = rooms.iter().map(|room| room.pooled.len()).max().unwrap_or(0);
        Pass {
            blocks,
            rooms,
            input: vec![0.0; shape.side.pow(2) * shape.channels],
            scores: vec![0.0; shape.classes],
            by_scores: vec![0.0; shape.classes],
            by_pooled: vec![0.0; most],
            gradient: vec![0.0; shape.weights()],
        }
    }

    /// Computes the scores of all classes.
    #[inline(always)]
    pub(super) fn look(&mut self, network: &ConvNet, picture: Picture<'_>) {
        picture.standardised(&mut self.input);
        for (number, block) in self.blocks.iter().enumerate() {
            let (before, rest) = self.rooms.split_at_mut(number);
            let room = &mut rest[0];
            let input = before.last().map_or(&self.input, |room| &room.pooled);
            let (weights, scale, shift) = block.parts(&network.weights);
            let side = block.conv.out();
            block.conv.pad(input, &mut room.padded);
            block.conv.answer(&room.padded, weights, &mut room.normal);
            block.norm.normalise(&mut room.normal, &mut room.inverse);
            bent(&room.normal, scale, shift, &mut room.bent);
            pool(&room.bent, (side, block.norm.channels), &mut room.pooled);
        }
        let features = &self.rooms[BLOCKS - 1].pooled;
        let classes = self.scores.len();
        let (head, constants) =
            network.weights[network.shape.head()..].split_at(features.len() * classes);
        self.scores.copy_from_slice(constants);
        for (x, line) in features.iter().zip(head.chunks_exact(classes)) {
            self.scores.iter_mut().zip(line).for_each(|(s, w)| *s = x.mul_add(*w, *s));
        }
    }

    /// The class with the highest score; the first of equals.
    pub(super) fn best(&self) -> u32 {
        let better = |a: usize, b: usize| if self.scores[b] > self.scores[a] { b } else { a };
        (0..self.scores.len()).reduce(better).unwrap_or(0) as u32
    }

    /// The scores after [`look`](Self::look).
    #[cfg(test)]
    pub(super) fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The maps of the last convolution as they go into the last mean.
    pub(super) fn maps(&self) -> &[f32] {
        &self.rooms[BLOCKS - 1].bent
    }

    /// The gradient of the logistic loss with this label, after [`look`](Self::look). False, and no gradient, if there is no
    /// such class.
    #[inline(always)]
    pub(super) fn back(&mut self, network: &ConvNet, label: u32) -> bool {
        let classes = self.scores.len();
        if label as usize >= classes {
            return false;
        }
        let highest = self.scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut total = 0.0;
        for (g, s) in self.by_scores.iter_mut().zip(&self.scores) {
            // Not the system's: the same bits everywhere.
            *g = libm::expf(s - highest);
            total += *g;
        }
        self.by_scores.iter_mut().for_each(|g| *g /= total);
        self.by_scores[label as usize] -= 1.0;

        let features = &self.rooms[BLOCKS - 1].pooled;
        let head = network.shape.head();
        let (by_head, by_constants) = self.gradient[head..].split_at_mut(features.len() * classes);
        by_constants.copy_from_slice(&self.by_scores);
        for (x, out) in features.iter().zip(by_head.chunks_exact_mut(classes)) {
            out.iter_mut().zip(&self.by_scores).for_each(|(out, g)| *out = x * g);
        }
        let lines = network.weights[head..].chunks_exact(classes);
        for (out, line) in self.by_pooled[..features.len()].iter_mut().zip(lines) {
            *out = line.iter().zip(&self.by_scores).fold(0.0, |sum, (w, g)| w.mul_add(*g, sum));
        }
        for (number, block) in self.blocks.iter().enumerate().rev() {
            let room = &mut self.rooms[number];
            let (_, scale, _) = block.parts(&network.weights);
            let (by_weights, by_scale, by_shift) = block.parts_mut(&mut self.gradient);
            let wide = (block.conv.out(), block.norm.channels);
            unpool(&self.by_pooled[..room.pooled.len()], wide, &room.bent, &mut room.back);
            let normal = (&room.normal[..], &room.inverse[..]);
            block.norm.back(normal, scale, &mut room.back, (by_scale, by_shift));
            block.conv.by_weights(&room.padded, &room.back, by_weights);
            if number > 0 {
                let turned = &network.turned[block.at..][..block.conv.weights()];
                let size = block.conv.side.pow(2) * block.conv.channels.0;
                let out = &mut self.by_pooled[..size];
                block.conv.by_picture(turned, &room.back, &mut room.back_padded, out);
            }
        }
        true
    }
}

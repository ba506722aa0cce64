//! Where a network looks: Grad-CAM.
//!
//! Selvaraju and others, *Grad-CAM: Visual Explanations from Deep Networks via Gradient-based Localization*, ICCV 2017. The maps
//! A of the last convolution are added up with weights α_k, the mean over pixels of the gradient of the class's score by map k;
//! what is below 0 is left out, and the sum is drawn at the size of the picture. Scores mean something against each other only: here
//! the score is that of the class less the mean of all, so that what all classes share is not drawn.
use super::{
    dataset::{Picture, Pictures},
    network::{ConvNet, Each, Pass, Walk},
};

/// Where a network looks in one picture: a number for each pixel, not below 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    side: usize,
    values: Vec<f32>,
}

impl ConvNet {
    /// Where it looks in public picture `at` for its class (or for the first, if it knows no such class).
    ///
    /// # Panics
    ///
    /// If there are not so many pictures, or they have not the network's size.
    pub fn attention(&self, pictures: &Pictures, at: usize) -> Attention {
        let walk = Walk { network: self, pictures, which: &[at], each: Map(Vec::new()) };
        let map = pulp::Arch::new().dispatch(walk).0;
        let side = self.shape().side;
        Attention { side, values: enlarged(&map, side / 4, side) }
    }

    /// ReLU(Σ α_k A_k) at the size of the last convolution.
    fn map(&self, maps: &[f32], class: u32) -> Vec<f32> {
        let shape = self.shape();
        let channels = shape.widths[2];
        let class = if (class as usize) < shape.classes { class as usize } else { 0 };
        // A score is the dense layer of means of four pixels: each pixel has a quarter of its cell's weight, and the mean
        // over pixels is a quarter of that over cells.
        let cells = (shape.side / 8).pow(2);
        let head = &self.weights()[self.weights().len() - (cells * channels + 1) * shape.classes..];
        let alpha = |k: usize| {
            let weight = |cell: usize| {
                let line = &head[(cell * channels + k) * shape.classes..][..shape.classes];
                line[class] - line.iter().sum::<f32>() / shape.classes as f32
            };
            (0..cells).map(weight).sum::<f32>() / (4 * cells) as f32
        };
        let alphas: Vec<f32> = (0..channels).map(alpha).collect();
        let along = |pixel: &[f32]| pixel.iter().zip(&alphas).map(|(a, alpha)| a * alpha).sum();
        maps.chunks_exact(channels).map(|pixel| f32::max(along(pixel), 0.0)).collect()
    }
}

/// The map of the last picture.
struct Map(Vec<f32>);

impl Each for Map {
    #[inline(always)]
    fn picture(&mut self, network: &ConvNet, pass: &mut Pass, picture: Picture<'_>) {
        pass.look(network, picture);
        self.0 = network.map(pass.maps(), picture.label);
    }
}

/// A map of `from` pixels drawn with `to`, bilinearly; beyond the middle of the outer pixels it stays as it is.
fn enlarged(map: &[f32], from: usize, to: usize) -> Vec<f32> {
    let place = |at: usize| {
        let middle = (at as f32 + 0.5) * from as f32 / to as f32 - 0.5;
        let low = middle.clamp(0.0, (from - 1) as f32);
        let first = low as usize;
        (first, (first + 1).min(from - 1), low - first as f32)
    };
    let pixel = |at: usize| {
        let ((top, bottom, down), (left, right, across)) = (place(at / to), place(at % to));
        let line =
            |y: usize| map[y * from + left] * (1.0 - across) + map[y * from + right] * across;
        line(top) * (1.0 - down) + line(bottom) * down
    };
    (0..to * to).map(pixel).collect()
}

impl Attention {
    /// Row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The share of it in the square with this first row and column; none if it looks nowhere.
    pub fn share_within(&self, (top, left): (usize, usize), square: usize) -> Option<f64> {
        let total: f64 = self.values.iter().map(|v| f64::from(*v)).sum();
        let inside = |at: &usize| {
            let (y, x) = (at / self.side, at % self.side);
            (top..top + square).contains(&y) && (left..left + square).contains(&x)
        };
        let within: f64 =
            (0..self.values.len()).filter(inside).map(|at| f64::from(self.values[at])).sum();
        (total > 0.0 && total.is_finite()).then(|| within / total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enlarging_keeps_lines_straight_and_shares_are_shares() {
        // x + 2y at the middles of four pixels, at twice the size.
        let map: Vec<f32> = (0..16).map(|at| (at % 4) as f32 + 2.0 * (at / 4) as f32).collect();
        let large = enlarged(&map, 4, 8);
        for (y, x) in [(1, 1), (1, 2), (3, 4), (6, 6)] {
            let wanted = (x as f32 - 0.5) / 2.0 + (y as f32 - 0.5);
            assert!((large[y * 8 + x] - wanted).abs() < 1e-6, "{y} {x}");
        }
        let flat = Attention { side: 8, values: vec![0.5; 64] };
        assert_eq!(flat.share_within((2, 3), 4), Some(0.25));
        let nowhere = Attention { side: 8, values: vec![0.0; 64] };
        assert_eq!(nowhere.share_within((0, 0), 8), None);
    }
}

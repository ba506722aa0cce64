//! A sheet of pictures: each as it is, and with what networks look at in it.
use super::png;

/// How many pixels one becomes in each direction.
const ZOOM: usize = 4;
const GAP: usize = 4;

/// One picture: its numbers, pixel by pixel, and a map for each network.
pub(super) struct Row {
    pub(super) picture: Vec<f32>,
    pub(super) maps: Vec<Vec<f32>>,
}

/// All rows as PNG. Where a network looks is red; the rest of the picture is grey.
pub(super) fn draw(rows: &[Row], side: usize) -> Vec<u8> {
    let (columns, cell) =
        (1 + rows.iter().map(|r| r.maps.len()).max().unwrap_or(0), side * ZOOM + GAP);
    let (width, height) = (columns * cell, rows.len().max(1) * cell);
    let mut pixels = vec![[255_u8; 3]; width * height];
    for (down, row) in rows.iter().enumerate() {
        let plain = colours(&row.picture);
        let drawn = row.maps.iter().map(|map| looked_at(&plain, map));
        for (across, square) in std::iter::once(plain.clone()).chain(drawn).enumerate() {
            for y in 0..side * ZOOM {
                for x in 0..side * ZOOM {
                    let place = (down * cell + y) * width + across * cell + x;
                    pixels[place] = square[y / ZOOM * side + x / ZOOM];
                }
            }
        }
    }
    png::encode(width, height, &pixels)
}

/// From the least number to the largest.
fn colours(picture: &[f32]) -> Vec<[u8; 3]> {
    let (low, high) =
        picture.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    let byte = |x: f32| (255.0 * (x - low) / (high - low).max(1e-9)) as u8;
    picture.as_chunks::<3>().0.iter().map(|pixel| pixel.map(byte)).collect()
}

fn looked_at(plain: &[[u8; 3]], map: &[f32]) -> Vec<[u8; 3]> {
    let most = map.iter().copied().fold(0.0_f32, f32::max).max(1e-9);
    let pixel = |(colour, heat): (&[u8; 3], &f32)| {
        let grey = colour.iter().map(|c| f32::from(*c)).sum::<f32>() / 6.0;
        let heat = heat / most;
        [grey + (255.0 - grey) * heat, grey * (1.0 - heat), grey * (1.0 - heat)].map(|c| c as u8)
    };
    plain.iter().zip(map).map(pixel).collect()
}

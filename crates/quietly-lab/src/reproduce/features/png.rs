//! Colour pictures as PNG (ISO/IEC 15948): a signature, a header, one compressed block of lines, an end.
use std::io::Write as _;

use flate2::{Compression, Crc, write::ZlibEncoder};

/// Pixels of red, green and blue, row by row.
///
/// # Panics
///
/// If there are not as many as that.
pub(super) fn encode(width: usize, height: usize, pixels: &[[u8; 3]]) -> Vec<u8> {
    assert_eq!(pixels.len(), width * height, "all pixels");
    let mut lines = ZlibEncoder::new(Vec::new(), Compression::default());
    for line in pixels.chunks_exact(width) {
        // 0: the line is written as it is.
        let line = [&[0], line.as_flattened()].concat();
        lines.write_all(&line).expect("memory can be written to");
    }
    let lines = lines.finish().expect("memory can be written to");
    let mut header = [(width as u32).to_be_bytes(), (height as u32).to_be_bytes()].concat();
    // Eight bits, red, green and blue, and the only ways there are to compress, filter and order.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", lines), (b"IEND", vec![])] {
        file.extend((data.len() as u32).to_be_bytes());
        let body = [&kind[..], &data].concat();
        let mut sum = Crc::new();
        sum.update(&body);
        file.extend(body);
        file.extend(sum.sum().to_be_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of every PNG file is known: its length 0, its name and 0xae426082.
    #[test]
    fn a_picture_is_framed_as_the_standard_says() {
        let file = encode(2, 1, &[[255, 0, 0], [0, 0, 255]]);
        assert!(
            file.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x01\x08\x02\0\0\0")
        );
        assert!(file.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"));
    }
}

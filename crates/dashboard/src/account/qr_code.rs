//! A QR code as the path of an SVG image: a square for each dark module, rows of them merged.

use std::fmt::Write;

use qrcode::types::QrError;
use qrcode::{Color, QrCode};

/// The blank margin that scanners need on each side, in modules.
const MARGIN: usize = 4;

/// A square image, as long on each side as `side` says.
pub(crate) struct QrImage {
    pub(crate) side: usize,
    pub(crate) path: String,
}

impl QrImage {
    pub(crate) fn of(text: &str) -> Result<Self, QrError> {
        let code = QrCode::new(text)?;
        let (width, modules) = (code.width(), code.to_colors());
        let mut path = String::new();
        for (y, row) in modules.chunks(width).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|one, other| one == other) {
                if run.first() == Some(&Color::Dark) {
                    let _ = write!(path, "M{} {}h{}v1h-{2}z", x + MARGIN, y + MARGIN, run.len());
                }
                x += run.len();
            }
        }
        Ok(Self { side: width + 2 * MARGIN, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_draws_every_dark_module_and_no_other() {
        let text = "otpauth://totp/intake:ada%40clinic.example?secret=ABC";
        let image = QrImage::of(text).unwrap();
        let code = QrCode::new(text).unwrap();
        let mut drawn = vec![Color::Light; code.width() * code.width()];
        for run in image.path.split_terminator('z') {
            let numbers = run.trim_start_matches('M').replace(['h', 'v', '-'], " ");
            let numbers: Vec<usize> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
            let start = (numbers[1] - MARGIN) * code.width() + numbers[0] - MARGIN;
            assert_eq!((numbers[3], numbers[2]), (1, numbers[4]), "{run}");
            drawn[start..start + numbers[2]].fill(Color::Dark);
        }
        assert!(drawn == code.to_colors());
        assert_eq!(image.side, code.width() + 8);
    }

    #[test]
    fn a_text_that_is_too_long_has_no_image() {
        assert!(QrImage::of(&"x".repeat(5000)).is_err());
    }
}

//! Two scales as a plot: the frame, the ticks and the names of the axes.
use super::{Anchor, Canvas, Scale};

/// A rectangle of a canvas with a scale in each direction.
#[derive(Clone, Debug)]
pub struct Plot {
    /// From left to right.
    pub x: Scale,
    /// From bottom to top.
    pub y: Scale,
}

impl Plot {
    /// The position of a point; none if it cannot be shown.
    pub fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x.at(x)?, self.y.at(y)?))
    }

    /// The lines to the left and below.
    pub fn draw_frame(&self, canvas: &mut Canvas) {
        let ((left, right), (bottom, top)) = (self.x.pixels(), self.y.pixels());
        canvas.polyline(&[(left, top), (left, bottom), (right, bottom)], "stroke=\"black\"");
    }

    /// Ticks below the plot.
    pub fn draw_x_ticks(&self, canvas: &mut Canvas, ticks: &[(f64, String)]) {
        let bottom = self.y.pixels().0;
        for (at, number) in ticks {
            canvas.line((*at, bottom), (*at, bottom + 5.0), "stroke=\"black\"");
            canvas.text((*at, bottom + 18.0), Anchor::Middle, number);
        }
    }

    /// Numbers to the left of the plot, with a light line across it.
    pub fn draw_y_ticks(&self, canvas: &mut Canvas, ticks: &[(f64, String)]) {
        let (left, right) = self.x.pixels();
        for (at, number) in ticks {
            canvas.line((left, *at), (right, *at), "stroke=\"#e0e0e0\"");
            canvas.text((left - 7.0, at + 4.0), Anchor::End, number);
        }
    }

    /// Grid, frame, ticks and names of both axes. The names need 45 pixels below and 50 to the
    /// left.
    pub fn draw_axes(&self, canvas: &mut Canvas) {
        self.draw_y_ticks(canvas, &self.y.ticks());
        self.draw_x_ticks(canvas, &self.x.ticks());
        self.draw_frame(canvas);
        let ((left, right), (bottom, top)) = (self.x.pixels(), self.y.pixels());
        let middle = 0.5 * (left + right);
        canvas.text((middle, bottom + 40.0), Anchor::Middle, self.x.label());
        canvas.upright_text((left - 46.0, 0.5 * (top + bottom)), self.y.label());
    }
}

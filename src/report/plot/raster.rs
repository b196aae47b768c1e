//! Many points as one picture within an SVG: a circle of text each takes megabytes, and as long to
//! show. What is not a point stays lines and text.

use super::picture::{Picture, Point, Shape, distance};

/// More dots than this beside each other become pixels.
const MOST_CIRCLES: usize = 3_000;

/// Pixels per pixel of the picture, so that points are round on paper too.
const FINE: f64 = 2.0;

/// Maximum number of pixels, 64 MiB.
const MOST_PIXELS: f64 = 16e6;

/// Dots as pixels.
pub(super) struct Raster {
    /// The upper left corner, layout units.
    pub from: Point,
    /// Width and height, layout units.
    pub extent: Point,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Red, green, blue, alpha, row by row.
    pub pixels: Vec<u8>,
}

/// The shapes in their order, many dots in separate groups.
pub(super) fn groups(picture: &Picture) -> impl Iterator<Item = &[Shape]> {
    picture.shapes.chunk_by(|one, next| is_dot(one) == is_dot(next))
}

/// Whether there are enough dots that pixels are less.
pub(super) fn is_crowd(shapes: &[Shape]) -> bool {
    shapes.len() > MOST_CIRCLES && shapes.first().is_some_and(is_dot)
}

const fn is_dot(shape: &Shape) -> bool {
    matches!(shape, Shape::Dot { .. })
}

impl Raster {
    /// Draws dots, the first one lowest; `scale` is pixels of the picture per layout unit.
    pub(super) fn of(dots: &[Shape], scale: f64) -> Self {
        let (mut from, mut to) = ((f64::MAX, f64::MAX), (f64::MIN, f64::MIN));
        for shape in dots {
            let Shape::Dot { at: (x, y), radius, .. } = shape else { continue };
            let room = radius + 1.0;
            from = (from.0.min(x - room), from.1.min(y - room));
            to = (to.0.max(x + room), to.1.max(y + room));
        }
        let extent = ((to.0 - from.0).max(1.0), (to.1 - from.1).max(1.0));
        let most = (MOST_PIXELS / (extent.0 * extent.1)).sqrt();
        let fine = (scale * FINE).min(most);
        let (width, height) = ((extent.0 * fine).ceil(), (extent.1 * fine).ceil());
        let mut raster = Self {
            from,
            extent: (width / fine, height / fine),
            width: width as u32,
            height: height as u32,
            pixels: vec![0; width as usize * height as usize * 4],
        };
        dots.iter().for_each(|dot| raster.dot(dot, fine));
        raster
    }

    fn dot(&mut self, shape: &Shape, fine: f64) {
        let Shape::Dot { at, radius, colour } = shape else { return };
        let (x, y) = ((at.0 - self.from.0) * fine, (at.1 - self.from.1) * fine);
        let radius = (radius * fine).max(0.5);
        let span = |middle: f64, most: u32| {
            let first = (middle - radius - 1.0).max(0.0) as u32;
            first..((middle + radius + 1.0).ceil().max(0.0) as u32).min(most)
        };
        for row in span(y, self.height) {
            for column in span(x, self.width) {
                let middle = (f64::from(column) + 0.5, f64::from(row) + 0.5);
                let cover = (radius + 0.5 - distance(middle, (x, y))).clamp(0.0, 1.0);
                let cover = cover * colour.alpha;
                let at = (row as usize * self.width as usize + column as usize) * 4;
                if let Some(pixel) = self.pixels.get_mut(at..at + 4).filter(|_| cover > 0.0) {
                    put(pixel, colour.rgb, cover);
                }
            }
        }
    }
}

/// Lays a colour over a pixel.
fn put(pixel: &mut [u8], (red, green, blue): (u8, u8, u8), cover: f64) {
    let &mut [ref mut r, ref mut g, ref mut b, ref mut alpha] = pixel else { return };
    let below = f64::from(*alpha) / 255.0 * (1.0 - cover);
    let sum = cover + below;
    let mix =
        |old: u8, new: u8| ((f64::from(new) * cover + f64::from(old) * below) / sum).round() as u8;
    (*r, *g, *b) = (mix(*r, red), mix(*g, green), mix(*b, blue));
    *alpha = (sum * 255.0).round() as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::picture::Colour;

    #[test]
    fn every_dot_leaves_its_colour_where_it_is() {
        let colour = Colour { rgb: (0, 114, 178), alpha: 0.75 };
        let place = |n: u32| (20.0 + f64::from(n * 7 % 400), 30.0 + f64::from(n * 13 % 300));
        let dots: Vec<Shape> =
            (0..4_000).map(|n| Shape::Dot { at: place(n), radius: 1.3, colour }).collect();
        let raster = Raster::of(&dots, 1.0);
        let fine = f64::from(raster.width) / raster.extent.0;
        for n in 0..4_000 {
            let (x, y) = place(n);
            let column = ((x - raster.from.0) * fine) as usize;
            let row = ((y - raster.from.1) * fine) as usize;
            let at = (row * raster.width as usize + column) * 4;
            assert_eq!(raster.pixels[at..at + 3], [0, 114, 178]);
            assert!(raster.pixels[at + 3] >= 190, "{}", raster.pixels[at + 3]);
        }
        assert!(raster.pixels.chunks(4).any(|pixel| pixel[3] == 0), "nothing between them");
    }

    #[test]
    fn a_huge_picture_has_no_more_pixels_than_fit() {
        let colour = Colour { rgb: (0, 0, 0), alpha: 1.0 };
        let corners = [(0.0, 0.0), (60_000.0, 60_000.0)];
        let dots = corners.map(|at| Shape::Dot { at, radius: 1.0, colour });
        let raster = Raster::of(&dots, 5.0);
        assert!(f64::from(raster.width) * f64::from(raster.height) < MOST_PIXELS * 1.01);
        assert!(raster.pixels.iter().any(|part| *part > 0), "a dot is never too small");
    }
}

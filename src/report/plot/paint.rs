//! From shapes to a file: SVG text, or the bytes of a PNG.
//!
//! The drawing library counts in whole pixels. So an SVG is drawn in tenths of one, and a PNG
//! several times as large and averaged down, which also smooths its edges.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use plotters::{
    backend::{BitMapBackend, SVGBackend},
    style::{
        RGBAColor, ShapeStyle, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};
use plotters_backend::{
    BackendColor, BackendCoord, DrawingBackend, DrawingErrorKind, FontTransform,
};

use super::{
    PlotError, Size,
    picture::{Align, Colour, Picture, Point, Shape, distance},
    raster::{self, Raster},
    text,
};

/// Steps of an SVG's coordinates per pixel.
const SVG_GRID: u32 = 10;

/// What the SVG back end divides a font's size by.
const SVG_FONT: f64 = 1.24;

/// How far below its anchor the SVG back end puts the base line, in em.
const SVG_BASE: f64 = 0.76;

/// The picture as an SVG document; `title` and `description` are for those who cannot see it.
///
/// # Errors
/// The drawing library fails.
pub(super) fn svg(
    picture: &Picture,
    size: Size,
    title: &str,
    description: &str,
) -> Result<String, PlotError> {
    let (width, height) = (size.width * SVG_GRID, size.height * SVG_GRID);
    let grid = f64::from(width) / picture.width;
    let mut shapes = String::new();
    for group in raster::groups(picture) {
        if raster::is_crowd(group) {
            let scale = f64::from(size.width) / picture.width;
            shapes.push_str(&image(&Raster::of(group, scale), grid)?);
        } else {
            shapes.push_str(&vector(group, (width, height), grid)?);
        }
    }
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {width} {height}\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n{shapes}</svg>\n",
        size.width,
        size.height,
        escaped(title),
        escaped(description),
    ))
}

/// Shapes as SVG, without a head and an end.
fn vector(shapes: &[Shape], size: (u32, u32), grid: f64) -> Result<String, PlotError> {
    let mut body = String::new();
    let backend = SVGBackend::with_string(&mut body, size);
    Painter { backend, grid, is_bitmap: false }.paint(shapes)?;
    // The head it wrote has the size of the grid, and no words.
    let inside = body.split_once('\n').map_or("", |(_, shapes)| shapes).trim_end();
    Ok(format!("{}\n", inside.strip_suffix("</svg>").unwrap_or(inside).trim_end()))
}

/// Pixels within an SVG.
fn image(raster: &Raster, grid: f64) -> Result<String, PlotError> {
    let file = encode(&raster.pixels, (raster.width, raster.height), png::ColorType::Rgba)?;
    let [x, y] = [raster.from.0, raster.from.1].map(|place| place * grid);
    let [width, height] = [raster.extent.0, raster.extent.1].map(|length| length * grid);
    let data = STANDARD.encode(file);
    Ok(format!(
        "<image x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         preserveAspectRatio=\"none\" href=\"data:image/png;base64,{data}\"/>\n"
    ))
}

fn escaped(text: &str) -> String {
    text::clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The picture as a PNG file.
///
/// # Errors
/// The drawing library or the encoder fails.
pub(super) fn png(picture: &Picture, size: Size) -> Result<Vec<u8>, PlotError> {
    let pixels = u64::from(size.width) * u64::from(size.height);
    let fine = match pixels {
        0..=2_000_000 => 3,
        2_000_001..=8_000_000 => 2,
        _ => 1,
    };
    let (width, height) = (size.width * fine, size.height * fine);
    let mut large = vec![255; width as usize * height as usize * 3];
    let backend = BitMapBackend::with_buffer(&mut large, (width, height));
    let grid = f64::from(width) / picture.width;
    Painter { backend, grid, is_bitmap: true }.paint(&picture.shapes)?;
    let pixels = averaged(&large, size, fine as usize);
    encode(&pixels, (size.width, size.height), png::ColorType::Rgb)
}

/// Pixels of a stretch of a row that [`averaged`] passes over if it is white, as most are.
const STRETCH: usize = 32;

/// Each pixel the mean of `fine` x `fine` of them.
fn averaged(large: &[u8], size: Size, fine: usize) -> Vec<u8> {
    let row = size.width as usize * 3;
    let white = vec![u8::MAX; 3 * STRETCH * fine];
    let mut out = vec![u8::MAX; row * size.height as usize];
    for (out, rows) in out.chunks_exact_mut(row).zip(large.chunks_exact(row * fine * fine)) {
        for (number, out) in out.chunks_mut(3 * STRETCH).enumerate() {
            let (from, length) = (3 * STRETCH * fine * number, out.len() * fine);
            let lines = rows.chunks_exact(row * fine);
            let lines: Vec<&[u8]> = lines.map(|line| &line[from..from + length]).collect();
            if lines.iter().any(|line| *line != &white[..length]) {
                average(out, &lines, fine);
            }
        }
    }
    out
}

/// Each pixel of `out` the mean of `fine` pixels of each line.
fn average(out: &mut [u8], lines: &[&[u8]], fine: usize) {
    let pixels = (lines.len() * fine) as u32;
    for (number, out) in out.chunks_exact_mut(3).enumerate() {
        let mut sums = [0_u32; 3];
        for line in lines {
            for pixel in line[3 * fine * number..][..3 * fine].chunks_exact(3) {
                sums[0] += u32::from(pixel[0]);
                sums[1] += u32::from(pixel[1]);
                sums[2] += u32::from(pixel[2]);
            }
        }
        out.copy_from_slice(&sums.map(|sum| (sum / pixels) as u8));
    }
}

fn encode(
    pixels: &[u8],
    (width, height): (u32, u32),
    colours: png::ColorType,
) -> Result<Vec<u8>, PlotError> {
    let failed = |error: png::EncodingError| PlotError::Draw(error.to_string());
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colours);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

struct Painter<B> {
    backend: B,
    /// Pixels of the back end per layout unit.
    grid: f64,
    is_bitmap: bool,
}

impl<B: DrawingBackend> Painter<B> {
    fn paint(mut self, shapes: &[Shape]) -> Result<(), PlotError> {
        if !text::prepare() {
            return Err(PlotError::Draw("its font cannot be read".into()));
        }
        let failed = |error: &dyn std::fmt::Display| PlotError::Draw(error.to_string());
        for shape in shapes {
            self.shape(shape).map_err(|error| failed(&error))?;
        }
        self.backend.present().map_err(|error| failed(&error))
    }

    fn at(&self, point: Point) -> BackendCoord {
        ((point.0 * self.grid).round() as i32, (point.1 * self.grid).round() as i32)
    }

    fn length(&self, length: f64) -> u32 {
        (length * self.grid).round().max(1.0) as u32
    }

    fn shape(&mut self, shape: &Shape) -> Painted<B> {
        match shape {
            Shape::Line { points, width, colour } => self.line(points, *width, *colour),
            Shape::Area { points, colour } => {
                let points: Vec<_> = points.iter().map(|point| self.at(*point)).collect();
                self.backend.fill_polygon(points, &style(*colour, 1))
            }
            Shape::Cell { from, to, colour } => {
                let (from, to) = (self.at(*from), self.at(*to));
                // A cell that is narrower than a pixel may hold the largest latency of all.
                let to = (to.0.max(from.0 + 1), to.1.max(from.1 + 1));
                self.backend.draw_rect(from, to, &style(*colour, 1), true)
            }
            Shape::Dot { at, radius, colour } => {
                let (at, radius) = (self.at(*at), self.length(*radius));
                self.backend.draw_circle(at, radius, &style(*colour, 1), true)
            }
            Shape::Ring { at, radius, width, colour } => {
                let (at, radius) = (self.at(*at), self.length(*radius));
                let style = style(*colour, self.length(*width));
                self.backend.draw_circle(at, radius, &style, false)
            }
            Shape::Text { .. } => self.text(shape),
        }
    }

    fn line(&mut self, points: &[Point], width: f64, colour: Colour) -> Painted<B> {
        let mut points: Vec<_> = points.iter().map(|point| self.at(*point)).collect();
        points.dedup();
        let width = self.length(width);
        if !self.is_bitmap {
            return self.backend.draw_path(points, &style(colour, width));
        }
        // The library's joints have spikes where a line turns sharply: draw them as circles.
        for (number, pair) in points.windows(2).enumerate() {
            let &[from, to] = pair else { continue };
            self.backend.fill_polygon(bar(from, to, f64::from(width)), &style(colour, 1))?;
            if number > 0 && width > 2 {
                self.backend.draw_circle(from, width / 2, &style(colour, 1), true)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, shape: &Shape) -> Painted<B> {
        let Shape::Text { at, text, size, align, upward, colour } = shape else { return Ok(()) };
        let em = size * self.grid;
        // Both put the upper end of a text at its anchor, but have their own idea of where its base
        // line is, and of what its size means.
        let (library_size, base) = if self.is_bitmap {
            (em * text::HEIGHT_PER_EM, em * text::HEIGHT_PER_EM / 2.0)
        } else {
            (em * SVG_FONT, em * SVG_BASE)
        };
        let turn = if *upward { FontTransform::Rotate270 } else { FontTransform::None };
        let align = match align {
            Align::Left => HPos::Left,
            Align::Centre => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = TextStyle {
            font: text::font(library_size).transform(turn),
            color: BackendColor { alpha: colour.alpha, rgb: colour.rgb },
            pos: Pos::new(align, VPos::Top),
        };
        let (x, y) = self.at(*at);
        let base = base.round() as i32;
        let at = if *upward { (x - base, y) } else { (x, y - base) };
        self.backend.draw_text(text, &style, at)
    }
}

type Painted<B> = Result<(), DrawingErrorKind<<B as DrawingBackend>::ErrorType>>;

fn style(colour: Colour, width: u32) -> ShapeStyle {
    let (r, g, b) = colour.rgb;
    ShapeStyle { color: RGBAColor(r, g, b, colour.alpha), filled: true, stroke_width: width }
}

/// The four corners of a straight line of some width.
fn bar(from: BackendCoord, to: BackendCoord, width: f64) -> Vec<BackendCoord> {
    let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = distance((0.0, 0.0), (dx, dy)).max(1e-9);
    let (nx, ny) = (-dy / length * width / 2.0, dx / length * width / 2.0);
    let corner = |(x, y): BackendCoord, side: f64| {
        let (x, y) = (f64::from(x) + nx * side, f64::from(y) + ny * side);
        (x.round() as i32, y.round() as i32)
    };
    vec![corner(from, 1.0), corner(to, 1.0), corner(to, -1.0), corner(from, -1.0)]
}

//! From shapes to a PDF file: one page, its words as text that can be searched and copied, with the
//! font that is built in. What `paint` is for SVG and PNG.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
};

use flate2::{Compression, write::ZlibEncoder};
use pdf_writer::{
    Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr,
    types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap},
};
use ttf_parser::{Face, GlyphId};

use super::{
    PlotError, Size,
    picture::{Align, Colour, Picture, Point, Shape},
    raster::{self, Raster},
    text,
};

/// Points of paper per pixel: 96 pixels are an inch, which is 72 points.
const POINTS: f64 = 0.75;

/// How far the control points of a quarter of a circle are from its ends, in radii.
const QUARTER: f64 = 0.552_285;

const FONT: Name<'static> = Name(b"F");

/// Six letters before a name say that not all letters of the font are there.
const FONT_NAME: Name<'static> = Name(b"TARDYS+DejaVuSans");

const GLYPHS: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const INFO: Ref = Ref::new(5);
const TYPE0_FONT: Ref = Ref::new(6);
const CID_FONT: Ref = Ref::new(7);
const DESCRIPTOR: Ref = Ref::new(8);
const FONT_FILE: Ref = Ref::new(9);
const LETTERS: Ref = Ref::new(10);
/// Opacities and images have the numbers from here on.
const FIRST_FREE: i32 = 11;

/// The picture as a PDF file; `title` is what readers show in their title bar.
///
/// # Errors
/// The font cannot be read, or nothing compressed.
pub(super) fn pdf(picture: &Picture, size: Size, title: &str) -> Result<Vec<u8>, PlotError> {
    let face = Face::parse(text::FONT, 0)
        .map_err(|error| PlotError::Draw(format!("its font cannot be read: {error}")))?;
    let mut painter = Painter::new(&face, f64::from(size.width) / picture.width);
    let (width, height) = (f64::from(size.width) * POINTS, f64::from(size.height) * POINTS);
    painter.paint(picture, height);
    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES).lang(TextStr("en"));
    pdf.pages(PAGES).kids([PAGE]).count(1);
    pdf.document_info(INFO).title(TextStr(&text::clean(title))).producer(TextStr("tardy"));
    painter.write(&mut pdf, Rect::new(0.0, 0.0, width as f32, height as f32))?;
    Ok(pdf.finish())
}

fn packed(bytes: &[u8]) -> Result<Vec<u8>, PlotError> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    let packed = packer.write_all(bytes).and_then(|()| packer.finish());
    packed.map_err(|error| PlotError::Draw(error.to_string()))
}

/// A hundredth of a layout unit is finer than any paper.
fn number(value: f64) -> f32 {
    ((value * 100.0).round() / 100.0) as f32
}

/// What is on the page, in layout units from its upper left corner.
struct Painter<'a> {
    face: &'a Face<'static>,
    /// Pixels per layout unit.
    scale: f64,
    content: Content,
    /// The colour that is set.
    ink: Option<Colour>,
    /// Opacities in use, percent.
    opacities: BTreeSet<u8>,
    /// Letters in use, by their glyphs.
    letters: BTreeMap<u16, char>,
    images: Vec<Raster>,
}

impl<'a> Painter<'a> {
    fn new(face: &'a Face<'static>, scale: f64) -> Self {
        Self {
            face,
            scale,
            content: Content::new(),
            ink: None,
            opacities: BTreeSet::new(),
            letters: BTreeMap::new(),
            images: Vec::new(),
        }
    }

    /// Draws all of it on a page of that height, in points.
    fn paint(&mut self, picture: &Picture, height: f64) {
        let unit = (self.scale * POINTS) as f32;
        self.content.transform([unit, 0.0, 0.0, -unit, 0.0, height as f32]);
        self.content.set_line_join(LineJoinStyle::RoundJoin);
        for group in raster::groups(picture) {
            if raster::is_crowd(group) {
                self.image(Raster::of(group, self.scale));
            } else {
                group.iter().for_each(|shape| self.shape(shape));
            }
        }
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, width, colour } => {
                self.colour(*colour);
                self.path(points);
                self.content.set_line_width(number(*width)).stroke();
            }
            Shape::Area { points, colour } => {
                self.colour(*colour);
                self.path(points);
                self.content.close_path().fill_nonzero();
            }
            Shape::Cell { from, to, colour } => {
                self.colour(*colour);
                // A cell that is narrower than a pixel may hold the largest latency of all.
                let least = 1.0 / self.scale;
                let to = (to.0.max(from.0 + least), to.1.max(from.1 + least));
                // Neighbours have the same number at their common edge, or paper shows between.
                self.path(&[*from, (to.0, from.1), to, (from.0, to.1)]);
                self.content.close_path().fill_nonzero();
            }
            Shape::Dot { at, radius, colour } => {
                self.colour(*colour);
                self.circle(*at, *radius);
                self.content.fill_nonzero();
            }
            Shape::Ring { at, radius, width, colour } => {
                self.colour(*colour);
                self.circle(*at, *radius);
                self.content.set_line_width(number(*width)).stroke();
            }
            Shape::Text { .. } => self.text(shape),
        }
    }

    /// What follows is in this colour.
    fn colour(&mut self, colour: Colour) {
        if self.ink == Some(colour) {
            return;
        }
        self.ink = Some(colour);
        let (r, g, b) = colour.rgb;
        let [r, g, b] = [r, g, b].map(|part| f32::from(part) / 255.0);
        self.content.set_fill_rgb(r, g, b).set_stroke_rgb(r, g, b);
        let percent = (colour.alpha * 100.0).round() as u8;
        self.opacities.insert(percent);
        self.content.set_parameters(Name(opacity(percent).as_bytes()));
    }

    fn path(&mut self, points: &[Point]) {
        for (at, (x, y)) in points.iter().enumerate() {
            let (x, y) = (number(*x), number(*y));
            match at {
                0 => self.content.move_to(x, y),
                _ => self.content.line_to(x, y),
            };
        }
    }

    fn circle(&mut self, (x, y): Point, radius: f64) {
        let near = radius * QUARTER;
        let at = |dx: f64, dy: f64| (number(x + dx), number(y + dy));
        let (start_x, start_y) = at(radius, 0.0);
        self.content.move_to(start_x, start_y);
        let (mut from, mut to) = ((1.0, 0.0), (0.0, 1.0));
        for _ in 0..4 {
            let bend = |end: (f64, f64), other: (f64, f64)| {
                at(end.0 * radius + other.0 * near, end.1 * radius + other.1 * near)
            };
            let (first, second) = (bend(from, to), bend(to, from));
            let end = at(to.0 * radius, to.1 * radius);
            self.content.cubic_to(first.0, first.1, second.0, second.1, end.0, end.1);
            (from, to) = (to, (-from.0, -from.1));
        }
        self.content.close_path();
    }

    fn text(&mut self, shape: &Shape) {
        let Shape::Text { at: (x, y), text, size, align, upward, colour } = shape else { return };
        if text.is_empty() {
            return;
        }
        self.colour(*colour);
        let before = match align {
            Align::Left => 0.0,
            Align::Centre => text::width(text, *size) / 2.0,
            Align::Right => text::width(text, *size),
        };
        // The page is upside down, so its letters are turned back.
        let matrix = if *upward {
            [0.0, -1.0, -1.0, 0.0, number(*x), number(y + before)]
        } else {
            [1.0, 0.0, 0.0, -1.0, number(x - before), number(*y)]
        };
        let glyphs: Vec<u8> =
            text.chars().flat_map(|letter| self.glyph(letter).to_be_bytes()).collect();
        self.content.begin_text().set_font(FONT, number(*size)).set_text_matrix(matrix);
        self.content.show(Str(&glyphs)).end_text();
    }

    /// The number of a letter in the font; that of a box where it has none.
    fn glyph(&mut self, letter: char) -> u16 {
        let glyph = self.face.glyph_index(letter).map_or(0, |glyph| glyph.0);
        self.letters.entry(glyph).or_insert(letter);
        glyph
    }

    fn image(&mut self, raster: Raster) {
        self.colour(Colour { rgb: (0, 0, 0), alpha: 1.0 });
        let [x, y, width, height] =
            [raster.from.0, raster.from.1, raster.extent.0, raster.extent.1].map(number);
        self.content.save_state().transform([width, 0.0, 0.0, -height, x, y + height]);
        self.content.x_object(Name(image(self.images.len()).as_bytes())).restore_state();
        self.images.push(raster);
    }

    /// The page and all that it needs.
    fn write(self, pdf: &mut Pdf, page_size: Rect) -> Result<(), PlotError> {
        pdf.stream(CONTENT, &packed(&self.content.finish())?).filter(Filter::FlateDecode);
        let mut next = Ref::new(FIRST_FREE);
        let opacities: Vec<(u8, Ref)> =
            self.opacities.into_iter().map(|percent| (percent, next.bump())).collect();
        let images: Vec<(Ref, Ref)> =
            self.images.iter().map(|_| (next.bump(), next.bump())).collect();
        let mut page = pdf.page(PAGE);
        page.media_box(page_size).parent(PAGES).contents(CONTENT);
        let mut resources = page.resources();
        resources.fonts().pair(FONT, TYPE0_FONT);
        let mut states = resources.ext_g_states();
        for (percent, id) in &opacities {
            states.pair(Name(opacity(*percent).as_bytes()), *id);
        }
        states.finish();
        let mut drawn = resources.x_objects();
        for (at, (id, _)) in images.iter().enumerate() {
            drawn.pair(Name(image(at).as_bytes()), *id);
        }
        drawn.finish();
        resources.finish();
        page.finish();
        for (percent, id) in opacities {
            let alpha = f32::from(percent) / 100.0;
            pdf.ext_graphics(id).stroking_alpha(alpha).non_stroking_alpha(alpha);
        }
        for (raster, ids) in self.images.iter().zip(images) {
            write_image(pdf, raster, ids)?;
        }
        write_font(pdf, self.face, &self.letters)?;
        write_letters(pdf, &self.letters)
    }
}

/// The name of an opacity.
fn opacity(percent: u8) -> String {
    format!("A{percent}")
}

/// The name of an image.
fn image(number: usize) -> String {
    format!("I{number}")
}

/// Colours and, as another image, how much of them covers.
fn write_image(pdf: &mut Pdf, raster: &Raster, (id, mask_id): (Ref, Ref)) -> Result<(), PlotError> {
    let pixels = || raster.pixels.chunks_exact(4);
    let colours: Vec<u8> = pixels().flat_map(|pixel| pixel.iter().take(3).copied()).collect();
    let covers: Vec<u8> = pixels().filter_map(|pixel| pixel.last().copied()).collect();
    let (colours, covers) = (packed(&colours)?, packed(&covers)?);
    let mut image = pdf.image_xobject(id, &colours);
    image.filter(Filter::FlateDecode);
    image.width(raster.width as i32).height(raster.height as i32).bits_per_component(8);
    image.color_space().device_rgb();
    image.s_mask(mask_id);
    image.finish();
    let mut mask = pdf.image_xobject(mask_id, &covers);
    mask.filter(Filter::FlateDecode);
    mask.width(raster.width as i32).height(raster.height as i32).bits_per_component(8);
    mask.color_space().device_gray();
    mask.finish();
    Ok(())
}

/// The font, and how wide its letters are.
fn write_font(
    pdf: &mut Pdf,
    face: &Face<'_>,
    letters: &BTreeMap<u16, char>,
) -> Result<(), PlotError> {
    let mut font = pdf.type0_font(TYPE0_FONT);
    font.base_font(FONT_NAME).encoding_predefined(Name(b"Identity-H"));
    font.descendant_font(CID_FONT).to_unicode(LETTERS);
    font.finish();
    let mut font = pdf.cid_font(CID_FONT);
    font.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(GLYPHS);
    font.font_descriptor(DESCRIPTOR).default_width(0.0);
    font.cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = font.widths();
    for glyph in letters.keys().copied() {
        let width = face.glyph_hor_advance(GlyphId(glyph)).unwrap_or(0);
        widths.consecutive(glyph, [f32::from(width) * thousandth(face)]);
    }
    widths.finish();
    font.finish();
    describe_font(pdf, face);
    let file = packed(text::FONT)?;
    let mut stream = pdf.stream(FONT_FILE, &file);
    stream.filter(Filter::FlateDecode).pair(Name(b"Length1"), text::FONT.len() as i32);
    stream.finish();
    Ok(())
}

/// A PDF measures letters in thousandths of their em.
fn thousandth(face: &Face<'_>) -> f32 {
    1000.0 / f32::from(face.units_per_em())
}

fn describe_font(pdf: &mut Pdf, face: &Face<'_>) {
    let scaled = |length: i16| f32::from(length) * thousandth(face);
    let bounds = face.global_bounding_box();
    let [left, bottom, right, top] =
        [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(scaled);
    let mut about = pdf.font_descriptor(DESCRIPTOR);
    about.name(FONT_NAME).flags(FontFlags::SYMBOLIC).bbox(Rect::new(left, bottom, right, top));
    about.italic_angle(0.0).ascent(scaled(face.ascender())).descent(scaled(face.descender()));
    about.cap_height(scaled(face.capital_height().unwrap_or(face.ascender()))).stem_v(80.0);
    about.font_file2(FONT_FILE);
    about.finish();
}

/// Which letter a glyph is, so that text can be searched and copied.
fn write_letters(pdf: &mut Pdf, letters: &BTreeMap<u16, char>) -> Result<(), PlotError> {
    let mut names = UnicodeCmap::new(Name(b"Letters"), GLYPHS);
    // Glyph 0 is the box of all letters that the font does not have.
    letters.iter().filter(|(glyph, _)| **glyph > 0).for_each(|(glyph, c)| names.pair(*glyph, *c));
    let names = packed(&names.finish())?;
    pdf.cmap(LETTERS, &names).filter(Filter::FlateDecode);
    Ok(())
}

//! Where shapes move, and how large they are.

use super::options::ShapesOptions;

/// Width and height of the canvas.
const CANVAS: (i32, i32) = (240, 270);

/// A shape that bounces off the edges of the canvas.
#[derive(Clone, Copy, Debug)]
pub struct Moving {
    pub x: i32,
    pub y: i32,
    velocity: (i32, i32),
    pub size: i32,
}

impl Moving {
    /// Somewhere on the canvas, as `seed` says.
    pub fn new(seed: u64, options: &ShapesOptions) -> Moving {
        let mut rng = thalweg_base::rng::Rng::new(seed);
        let mut below = |bound: i32| i32::try_from(rng.below(bound.unsigned_abs().into())).unwrap_or(0);
        let (x, y) = (below(CANVAS.0), below(CANVAS.1));
        let mut speed = || (below(5) + 1) * if below(2) == 0 { 1 } else { -1 };
        let velocity = (speed(), speed());
        let size = if options.size == 0 { 0 } else { i32::try_from(options.size).unwrap_or(i32::MAX) };
        Moving { x, y, velocity, size }
    }

    /// The next place and size.
    pub fn step(&mut self, options: &ShapesOptions) {
        bounce(&mut self.x, &mut self.velocity.0, CANVAS.0);
        bounce(&mut self.y, &mut self.velocity.1, CANVAS.1);
        if options.size == 0 {
            self.size = match options.size_modulo.and_then(|modulo| i32::try_from(modulo).ok()) {
                Some(modulo) => self.size % modulo + 1,
                None => self.size.saturating_add(1),
            };
        }
    }
}

fn bounce(place: &mut i32, velocity: &mut i32, end: i32) {
    *place += *velocity;
    if *place < 0 {
        (*place, *velocity) = (0, -*velocity);
    } else if *place > end {
        (*place, *velocity) = (end, -*velocity);
    }
}

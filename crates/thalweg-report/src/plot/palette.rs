//! Colours and styles that every figure shares, in the page and as a file of its own.
//!
//! The hues are those of Okabe and Ito, which people with any kind of colour blindness tell apart; dashes and markers say the same again.

/// Colours of series; further ones repeat.
pub const COLOURS: usize = 6;
/// Colour of what stands beside for comparison: the baseline, a limit.
pub const BESIDE: usize = 6;
/// Variables of the light scheme.
pub const LIGHT: &str = "--ink:#17222b;--soft:#576875;--grid:#e6ecf0;--wash:#e3f0f6;--warn-wash:#fff3dd;--warn:#8a4b00;\
    --c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b0568a;--c4:#a07a00;--c5:#5b4fb0;--c6:#8496a2";
/// Variables of the dark scheme.
pub const DARK: &str = "--ink:#e4ecf1;--soft:#93a5b1;--grid:#25313a;--wash:#12303f;--warn-wash:#3a2a10;--warn:#ffc978;\
    --c0:#5cb8e4;--c1:#f58f4e;--c2:#3ecb9f;--c3:#e29ac6;--c4:#e0b93c;--c5:#a99cf0;--c6:#6c7f8c";

/// Rules for what figures consist of; they need the variables of a scheme.
pub fn style() -> String {
    let colour = |index: usize| {
        format!(
            ".curve.c{index},.dots.c{index},.whisker.c{index}{{stroke:var(--c{index})}}\
             .dot.c{index},.swatch.c{index},.area.c{index},.mark.c{index}{{fill:var(--c{index})}}\n"
        )
    };
    (0..=BESIDE).map(colour).fold(include_str!("style.css").to_owned(), |rules, colour| rules + &colour)
}

/// A figure as a file of its own, light and dark.
pub fn standalone(figure: &str) -> String {
    let variables = format!(":root{{{LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK}}}}}");
    match figure.split_once('>') {
        Some((head, body)) => {
            let head = head.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
            format!("{head}><style>{variables}\n{}</style>{body}", style())
        }
        None => figure.to_owned(),
    }
}

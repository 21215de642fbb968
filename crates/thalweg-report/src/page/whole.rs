//! The page: a verdict and the main figures, one card for each experiment, the machine and the method.

use super::policy::{SCRIPT, policy};
use super::section::{Section, list};
use crate::plot::{self, escape};

/// One of the large figures at the top.
#[derive(Clone, Debug)]
pub struct Tile {
    /// The figure with its unit.
    pub figure: String,
    /// What it is, in a few words.
    pub meaning: String,
}

/// The answer to a question, above everything else.
#[derive(Clone, Debug)]
pub struct Card {
    /// How it turned out.
    pub standing: Standing,
    /// The same in a few words.
    pub headline: String,
    /// What it rests on.
    pub details: Vec<String>,
}

/// How a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Everything expected holds.
    Holds,
    /// Something expected does not hold.
    Fails,
    /// The data tell, and nothing was expected.
    Told,
    /// Too little was measured, or on too disturbed a machine, or nothing was expected.
    NotJudged,
}

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title of the page and of the browser's tab.
    pub title: String,
    /// When and how long, in one line.
    pub subtitle: String,
    /// The answers, the most important first; where there are none, the first thing that each section says stands in their place.
    pub cards: Vec<Card>,
    /// Main figures, three or four.
    pub tiles: Vec<Tile>,
    /// A warning above everything else; empty when there is nothing to warn of.
    pub warnings: Vec<String>,
    /// The experiments.
    pub sections: Vec<Section>,
    /// Name and value of each fact about the machine.
    pub facts: Vec<(&'static str, String)>,
    /// How quiet the machine was.
    pub conditions: Vec<String>,
    /// How the figures were obtained.
    pub method: Vec<String>,
    /// The command that makes such results; empty where it is not known.
    pub command: String,
}

impl Page {
    /// The file's text: complete in itself, and forbidding the browser to load anything.
    pub fn to_html(&self) -> String {
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
            policy(),
            escape(&self.title),
            style()
        );
        out.push_str(&self.header());
        out.push_str("<main>\n");
        for section in &self.sections {
            out.push_str(&section.to_html());
        }
        out.push_str(&self.machine());
        out.push_str(&format!("</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"));
        out
    }

    /// The answers and the sections for a terminal, and below them the warnings and how quiet the machine was.
    pub fn to_text(&self) -> String {
        let cards: String = self.cards.iter().map(Card::to_text).collect();
        let sections: String = self.sections.iter().map(Section::to_text).collect();
        let remarks = self.warnings.iter().chain(&self.conditions);
        format!("{cards}{sections}\n{}", remarks.map(|sentence| format!("  {sentence}\n")).collect::<String>())
    }

    fn header(&self) -> String {
        let tiles: String = self
            .tiles
            .iter()
            .map(|tile| format!("<li><b>{}</b><span>{}</span></li>\n", escape(&tile.figure), escape(&tile.meaning)))
            .collect();
        let warnings: String =
            self.warnings.iter().map(|text| format!("<p class=\"warning\">{}</p>\n", escape(text))).collect();
        format!(
            "{RIVER}<header>\n<button id=\"scheme\" type=\"button\" hidden>dark</button>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n\
             {}<ul class=\"tiles\">\n{tiles}</ul>\n{warnings}{}</header>\n",
            escape(&self.title),
            escape(&self.subtitle),
            self.cards_to_html(),
            self.contents()
        )
    }

    fn cards_to_html(&self) -> String {
        let said = |section: &Section| {
            let (headline, first) = (section.title.clone(), section.seen.first()?.clone());
            Some(Card { standing: Standing::Told, headline, details: vec![first] })
        };
        let cards = match self.cards.as_slice() {
            [] => self.sections.iter().filter_map(said).collect(),
            cards => cards.to_vec(),
        };
        let cards: String = cards.iter().map(Card::to_html).collect();
        if cards.is_empty() { cards } else { format!("<div class=\"cards\">\n{cards}</div>\n") }
    }

    /// Links to the sections, where there are enough to look for one.
    fn contents(&self) -> String {
        if self.sections.len() < 4 {
            return String::new();
        }
        let link = |section: &Section| format!("<a href=\"#{}\">{}</a>\n", section.anchor(), escape(&section.title));
        let links: String = self.sections.iter().map(link).collect();
        format!("<nav aria-label=\"Contents\">\n{links}<a href=\"#machine\">This machine</a>\n</nav>\n")
    }

    fn machine(&self) -> String {
        let facts: String = self
            .facts
            .iter()
            .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value)))
            .collect();
        let command = match self.command.as_str() {
            "" => String::new(),
            command => format!("<p>Made by <code>{}</code></p>\n", escape(command)),
        };
        format!(
            "<section class=\"machine\" id=\"machine\">\n<h2>This machine</h2>\n<dl>\n{facts}</dl>\n{command}{}\n<h2>Method</h2>\n{}</section>\n",
            list("notes", &self.conditions),
            list("notes", &self.method)
        )
    }
}

impl Standing {
    /// Class in the style sheet, a sign beside the colour for eyes and prints that do not tell colours apart, and a word.
    fn shown(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Standing::Holds => ("holds", "✓", "holds"),
            Standing::Fails => ("fails", "✗", "does not hold"),
            Standing::Told => ("told", "•", "measured"),
            Standing::NotJudged => ("unjudged", "?", "not judged"),
        }
    }
}

impl Card {
    /// The answer in lines of a terminal.
    pub fn to_text(&self) -> String {
        let (_, sign, _) = self.standing.shown();
        let details: String = self.details.iter().map(|detail| format!("    {detail}\n")).collect();
        format!("{sign} {}\n{details}", self.headline)
    }

    fn to_html(&self) -> String {
        let (class, sign, word) = self.standing.shown();
        format!(
            "<div class=\"card {class}\"><b role=\"img\" aria-label=\"{word}\">{sign}</b><div><p class=\"headline\">{}</p>\n{}</div></div>\n",
            escape(&self.headline),
            list("details", &self.details)
        )
    }
}

/// The rules of the page and its figures, for both schemes; prints are light.
fn style() -> String {
    let (light, dark) = (plot::LIGHT, plot::DARK);
    format!(
        ":root{{{light};{PAGE_LIGHT}}}\n@media screen{{\n:root[data-scheme=dark]{{{dark};{PAGE_DARK}}}\n\
         @media(prefers-color-scheme:dark){{:root:not([data-scheme=light]){{{dark};{PAGE_DARK}}}}}\n}}\n{}{}",
        include_str!("style.css"),
        plot::style()
    )
}

const PAGE_LIGHT: &str = "color-scheme:light;--ground:#f3f6f8;--card:#fff;--rule:#dde5ea;--accent:#0b6e99;\
    --good:#0b6b46;--good-wash:#e2f4ec;--poor:#a3260c;--poor-wash:#fde9e3";
const PAGE_DARK: &str = "color-scheme:dark;--ground:#0e1419;--card:#172028;--rule:#2a3741;--accent:#5cb8e4;\
    --good:#6fdcb0;--good-wash:#12352a;--poor:#ff9d83;--poor-wash:#43201a";
/// A river with its line of fastest flow, which is what the name means.
const RIVER: &str = "<svg class=\"river\" viewBox=\"0 0 1200 60\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
    <path class=\"bank\" d=\"M0 40C150 5 300 5 450 30S750 60 900 32 1100 8 1200 26V60H0Z\"/>\
    <path class=\"flow\" d=\"M0 50C150 18 300 16 450 40S750 66 900 43 1100 20 1200 36\"/></svg>\n";

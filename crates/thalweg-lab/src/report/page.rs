//! The page: a header with the main figures, one card for each experiment, the machine and the method.

use crate::plot::escape;
use crate::table::Table;

/// One of the large figures at the top.
#[derive(Clone, Debug)]
pub struct Tile {
    /// The figure with its unit.
    pub figure: String,
    /// What it is, in a few words.
    pub meaning: String,
}

/// One card: what was asked, what was seen, figures, tables.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Headline.
    pub title: String,
    /// What was measured and how, in a sentence or two.
    pub lead: String,
    /// What the data say; each sentence computed from them.
    pub seen: Vec<String>,
    /// SVG pictures with their captions.
    pub figures: Vec<(String, String)>,
    /// The numbers behind the figures.
    pub tables: Vec<Table>,
}

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title of the page and of the browser's tab.
    pub title: String,
    /// When and how long, in one line.
    pub subtitle: String,
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
}

impl Page {
    /// The file's text: complete in itself, and forbidding the browser to load anything.
    pub fn to_html(&self) -> String {
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            escape(&self.title)
        );
        out.push_str(&self.header());
        out.push_str("<main>\n");
        for section in &self.sections {
            out.push_str(&section.to_html());
        }
        out.push_str(&self.machine());
        out.push_str("</main>\n</body>\n</html>\n");
        out
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
            "{RIVER}<header>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n<ul class=\"tiles\">\n{tiles}</ul>\n{warnings}</header>\n",
            escape(&self.title),
            escape(&self.subtitle)
        )
    }

    fn machine(&self) -> String {
        let facts: String = self
            .facts
            .iter()
            .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value)))
            .collect();
        format!(
            "<section class=\"machine\">\n<h2>This machine</h2>\n<dl>\n{facts}</dl>\n{}\n<h2>Method</h2>\n{}</section>\n",
            list("notes", &self.conditions),
            list("notes", &self.method)
        )
    }
}

impl Section {
    fn to_html(&self) -> String {
        let figures: String = self
            .figures
            .iter()
            .map(|(caption, svg)| format!("<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>\n", escape(caption)))
            .collect();
        let tables: String = self.tables.iter().map(Table::to_html).collect();
        format!(
            "<section>\n<h2>{}</h2>\n<p class=\"lead\">{}</p>\n{}{tables}{figures}</section>\n",
            escape(&self.title),
            escape(&self.lead),
            list("seen", &self.seen)
        )
    }
}

fn list(class: &str, sentences: &[String]) -> String {
    let items: String = sentences.iter().map(|sentence| format!("<li>{}</li>\n", escape(sentence))).collect();
    if items.is_empty() { String::new() } else { format!("<ul class=\"{class}\">\n{items}</ul>\n") }
}

/// Nothing may be loaded: styles are inline, pictures are part of the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
const STYLE: &str = include_str!("style.css");
/// A river with its line of fastest flow, which is what the name means.
const RIVER: &str = "<svg class=\"river\" viewBox=\"0 0 1200 60\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
    <path class=\"bank\" d=\"M0 40C150 5 300 5 450 30S750 60 900 32 1100 8 1200 26V60H0Z\"/>\
    <path class=\"flow\" d=\"M0 50C150 18 300 16 450 40S750 66 900 43 1100 20 1200 36\"/></svg>\n";

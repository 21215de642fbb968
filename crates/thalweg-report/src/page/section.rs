//! A card of the page: what was asked, what was seen, figures, tables, files.

use super::figure::Figure;
use crate::plot::escape;
use crate::table::Table;

/// One card.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Headline.
    pub title: String,
    /// What was measured and how, in a sentence or two.
    pub lead: String,
    /// What the data say; each sentence computed from them.
    pub seen: Vec<String>,
    /// Pictures with what to see in them.
    pub figures: Vec<Figure>,
    /// Numbers that stand by themselves.
    pub tables: Vec<Table>,
    /// Files beside the page, in groups with a name.
    pub files: Vec<(String, Vec<PageLink>)>,
}

/// A file or folder beside the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLink {
    /// What is written.
    pub text: String,
    /// Where it lies, relative to the page.
    pub path: String,
}

impl Section {
    /// Headline, tables and sentences for a terminal.
    pub(super) fn to_text(&self) -> String {
        let tables: String = self.tables.iter().map(|table| format!("{}\n", table.to_text())).collect();
        let seen: String = self.seen.iter().map(|sentence| format!("  • {sentence}\n")).collect();
        format!("\n{}\n\n{tables}{seen}", self.title)
    }

    pub(super) fn to_html(&self) -> String {
        let figures: String = self.figures.iter().map(Figure::to_html).collect();
        let tables: String = self.tables.iter().map(Table::to_html).collect();
        format!(
            "<section id=\"{}\">\n<h2>{}</h2>\n{}<p class=\"lead\">{}</p>\n{tables}{figures}{}</section>\n",
            self.anchor(),
            escape(&self.title),
            list("seen", &self.seen),
            escape(&self.lead),
            self.files_to_html()
        )
    }

    /// Its name within the page.
    pub(super) fn anchor(&self) -> String {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        self.title.chars().map(letter).collect()
    }

    fn files_to_html(&self) -> String {
        let link = |link: &PageLink| format!("<a href=\"{}\">{}</a>", escape(&link.path), escape(&link.text));
        let group = |(name, links): &(String, Vec<PageLink>)| {
            let links: Vec<String> = links.iter().map(link).collect();
            format!("<li><span>{}</span> {}</li>\n", escape(name), links.join(" "))
        };
        let groups: String = self.files.iter().map(group).collect();
        if groups.is_empty() { groups } else { format!("<ul class=\"files\">\n{groups}</ul>\n") }
    }
}

/// Sentences as a list; nothing for none.
pub(super) fn list(class: &str, sentences: &[String]) -> String {
    let items: String = sentences.iter().map(|sentence| format!("<li>{}</li>\n", escape(sentence))).collect();
    if items.is_empty() { String::new() } else { format!("<ul class=\"{class}\">\n{items}</ul>\n") }
}

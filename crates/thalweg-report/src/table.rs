//! A table that reads the same in a terminal and in the report.

use crate::plot::escape;

/// Rows of text under a header; the first column names the row, the others hold figures unless [`Table::words`] says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table shows, with the unit of its figures.
    pub caption: String,
    /// Column titles.
    pub header: Vec<String>,
    /// As many cells a row as there are titles.
    pub rows: Vec<Vec<String>>,
    /// Columns that hold words, from 0: they begin at the left, as the first one does.
    pub words: Vec<usize>,
    /// What stands in place of the table until somebody asks for it, such as `12 inconclusive comparisons`; empty for a table that is shown.
    pub folded: String,
}

impl Table {
    /// An empty table.
    pub fn new(caption: impl Into<String>, header: &[&str]) -> Table {
        Table {
            caption: caption.into(),
            header: header.iter().map(|title| (*title).to_owned()).collect(),
            rows: Vec::new(),
            words: Vec::new(),
            folded: String::new(),
        }
    }

    /// A table of these rows.
    pub fn of(caption: impl Into<String>, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
        Table { rows: rows.into_iter().collect(), ..Table::new(caption, header) }
    }

    /// The same without the columns of figures that hold a dash in every row; a table without rows keeps all.
    pub fn without_empty_columns(mut self) -> Table {
        let is_empty = |column: &usize| {
            !self.rows.is_empty() && !self.holds_words(*column) && self.rows.iter().all(|row| row[*column] == "–")
        };
        let empty: Vec<usize> = (0..self.header.len()).filter(is_empty).collect();
        for column in empty.into_iter().rev() {
            self.header.remove(column);
            self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
            self.words.iter_mut().filter(|word| **word > column).for_each(|word| *word -= 1);
        }
        self
    }

    fn holds_words(&self, column: usize) -> bool {
        column == 0 || self.words.contains(&column)
    }

    /// Columns aligned with spaces, the caption above, two spaces of indentation; of a folded table what stands in its place.
    pub fn to_text(&self) -> String {
        if !self.folded.is_empty() {
            return format!("  {}\n", self.folded);
        }
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&self.header]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let mut out = format!("{}\n", self.caption);
        for row in [&self.header].into_iter().chain(&self.rows) {
            let mut line = String::from(" ");
            for (column, cell) in row.iter().enumerate() {
                let fill = " ".repeat(widths.get(column).map_or(0, |width| width.saturating_sub(cell.chars().count())));
                let (before, after) = if self.holds_words(column) { ("", fill.as_str()) } else { (fill.as_str(), "") };
                line.push_str(&format!(" {before}{cell}{after} "));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// The table as Markdown, its caption above it.
    pub fn to_markdown(&self) -> String {
        let line = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mark = |column| if self.holds_words(column) { "---|" } else { "---:|" };
        let ruler = format!("|{}\n", (0..self.header.len()).map(mark).collect::<String>());
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let table = format!("*{}*\n\n{}{ruler}{rows}", self.caption, line(&self.header));
        match self.folded.as_str() {
            "" => table,
            summary => format!("<details><summary>{}</summary>\n\n{table}\n</details>\n", escape(summary)),
        }
    }

    /// The table as HTML.
    pub fn to_html(&self) -> String {
        let cells = |tag: &str, row: &[String]| -> String {
            row.iter()
                .enumerate()
                .map(|(column, cell)| match column {
                    0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
                    _ if self.holds_words(column) => format!("<{tag} class=\"words\">{}</{tag}>", escape(cell)),
                    _ => format!("<{tag}>{}</{tag}>", escape(cell)),
                })
                .collect()
        };
        let rows: String = self.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
        let title = |(column, title): (usize, &String)| {
            let class = if self.words.contains(&column) { " class=\"words\"" } else { "" };
            format!("<th scope=\"col\"{class}>{}</th>", escape(title))
        };
        let header: String = self.header.iter().enumerate().map(title).collect();
        let table = format!(
            "<div class=\"scroll\"><table><caption>{}</caption>\n<thead><tr>{header}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n",
            escape(&self.caption)
        );
        match self.folded.as_str() {
            "" => table,
            summary => format!("<details><summary>{}</summary>\n{table}</details>\n", escape(summary)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let rows = [["Rhein", "7.2", "10"], ["Aare & Reuß", "12", "9"]];
        Table::of("Speed, km/h", &["river", "mean", "max"], rows.map(|row| row.map(str::to_owned).to_vec()))
    }

    #[test]
    fn text_columns_are_aligned() {
        let expect = "Speed, km/h\n  river        mean  max\n  Rhein         7.2   10\n  Aare & Reuß    12    9\n";
        assert_eq!(table().to_text(), expect);
    }

    #[test]
    fn markdown_has_a_ruler_and_keeps_bars_and_lines_apart() {
        let mut table = table();
        table.rows[0][0] = "a|b\nc".to_owned();
        let expect = "*Speed, km/h*\n\n| river | mean | max |\n|---|---:|---:|\n| a\\|b c | 7.2 | 10 |\n| Aare & Reuß | 12 | 9 |\n";
        assert_eq!(table.to_markdown(), expect);
    }

    #[test]
    fn columns_without_a_figure_are_left_out() {
        let mut dashes = Table { words: vec![2], ..table() };
        dashes.rows.iter_mut().for_each(|row| row[1] = "–".to_owned());
        let thin = dashes.without_empty_columns();
        assert_eq!((thin.header, thin.words), (vec!["river".to_owned(), "max".to_owned()], vec![1]));
        assert_eq!(thin.rows[1], ["Aare & Reuß", "9"]);
        assert_eq!(table().without_empty_columns(), table());
        assert_eq!(Table::new("", &["", "a"]).without_empty_columns().header.len(), 2);
    }

    #[test]
    fn a_folded_table_is_there_for_those_who_ask() {
        let table = Table { folded: "2 rivers & more".to_owned(), ..table() };
        assert_eq!(table.to_text(), "  2 rivers & more\n");
        let html = table.to_html();
        assert!(html.starts_with("<details><summary>2 rivers &amp; more</summary>\n<div class=\"scroll\">"), "{html}");
        assert!(html.ends_with("</table></div>\n</details>\n"), "{html}");
        let markdown = table.to_markdown();
        assert!(markdown.starts_with("<details><summary>2 rivers &amp; more</summary>\n\n*Speed"), "{markdown}");
        assert!(markdown.ends_with("| 12 | 9 |\n\n</details>\n"), "{markdown}");
    }

    #[test]
    fn columns_of_words_begin_at_the_left() {
        let table = Table { words: vec![1], ..table() };
        assert_eq!(
            table.to_text(),
            "Speed, km/h\n  river        mean  max\n  Rhein        7.2    10\n  Aare & Reuß  12      9\n"
        );
        assert!(table.to_markdown().contains("|---|---|---:|"), "{}", table.to_markdown());
        let html = table.to_html();
        assert!(html.contains("<th scope=\"col\" class=\"words\">mean</th><th scope=\"col\">max</th>"), "{html}");
        assert!(html.contains("<td class=\"words\">7.2</td><td>10</td>"), "{html}");
    }

    #[test]
    fn html_escapes_its_cells() {
        let html = table().to_html();
        assert!(html.contains("<th scope=\"row\">Aare &amp; Reuß</th><td>12</td>"), "{html}");
        assert_eq!(html.matches("<tr>").count(), html.matches("</tr>").count());
    }
}

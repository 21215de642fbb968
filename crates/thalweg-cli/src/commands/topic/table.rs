//! Samples as rows of comma-separated values (RFC 4180).

use thalweg_types::document::{Document, MapKey};

use super::expression::FieldPath;

/// Rows of one width: the columns are the chosen fields, else the values of the first sample that are no structures.
#[derive(Debug, Default)]
pub struct CommaTable {
    columns: Vec<FieldPath>,
    has_header: bool,
}

impl CommaTable {
    /// A table with a column for each of these fields; without any, the first sample decides.
    pub fn new(fields: &[FieldPath]) -> CommaTable {
        CommaTable { columns: fields.to_vec(), has_header: false }
    }

    /// The row of a sample, behind the header for the first one. A field that the sample has not is empty.
    pub fn row(&mut self, sample: &Document) -> String {
        if self.columns.is_empty() {
            leaves(&FieldPath::default(), sample, &mut self.columns);
        }
        let cells: Vec<String> = self.columns.iter().map(|path| cell(path.find(sample).as_deref())).collect();
        let row = cells.join(",");
        if std::mem::replace(&mut self.has_header, true) {
            return row;
        }
        let names: Vec<String> = self.columns.iter().map(|path| quoted(path.to_string())).collect();
        format!("{}\n{row}", names.join(","))
    }
}

fn leaves(path: &FieldPath, value: &Document, out: &mut Vec<FieldPath>) {
    match value {
        Document::Map(members) if !members.is_empty() => {
            for (key, value) in members {
                let name = match key {
                    MapKey::Text(name) => name.to_string(),
                    MapKey::Label(label) => label.to_string(),
                };
                leaves(&path.member(name), value, out);
            }
        }
        _ => out.push(path.clone()),
    }
}

fn cell(value: Option<&Document>) -> String {
    match value {
        None | Some(Document::Null) => String::new(),
        Some(Document::Text(text)) => quoted(text.clone()),
        Some(other) => {
            let json = other.to_json().map(|json| String::from_utf8_lossy(&json).into_owned()).unwrap_or_default();
            // A number that JSON has as text, and octets.
            quoted(json.trim_matches('"').to_owned())
        }
    }
}

fn quoted(text: String) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(json: &str) -> Document {
        Document::from_json(json.as_bytes()).expect("JSON")
    }

    #[test]
    fn the_first_sample_decides_the_columns() {
        let mut table = CommaTable::new(&[]);
        let first = sample(r#"{"a":{"b":1.5,"c":"x,\"y\""},"d":[1,2],"e":true}"#);
        assert_eq!(table.row(&first), "a.b,a.c,d,e\n1.5,\"x,\"\"y\"\"\",\"[1,2]\",true");
        assert_eq!(table.row(&sample(r#"{"a":{"b":2},"f":3}"#)), "2,,,");
    }

    #[test]
    fn chosen_fields_are_the_columns() {
        let fields: Vec<FieldPath> = ["d[1]", "a.b"].iter().map(|path| path.parse().expect("a path")).collect();
        let mut table = CommaTable::new(&fields);
        assert_eq!(table.row(&sample(r#"{"a":{"b":"RED"},"d":[1,2]}"#)), "d[1],a.b\n2,RED");
    }
}

//! A Markdown file that shows the table.

use std::path::{Path, PathBuf};

use super::Failure;

/// Lines between which the table stands.
const BEGIN: &str = "<!-- qwengpu bench: begin -->\n";
const END: &str = "<!-- qwengpu bench: end -->\n";

/// A file with a place for the table.
#[derive(Debug)]
pub(crate) struct Document {
    path: PathBuf,
    before: String,
    after: String,
}

impl Document {
    /// Reads the file; both lines must be there.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file("reading", path, &error))?;
        Self::split(path, &text).ok_or_else(|| {
            Failure::input(format!(
                "{}: there is no place for the table: write the lines {:?} and {:?}",
                path.display(),
                BEGIN.trim_end(),
                END.trim_end()
            ))
        })
    }

    fn split(path: &Path, text: &str) -> Option<Self> {
        let (before, rest) = text.split_once(BEGIN)?;
        let (_, after) = rest.split_once(END)?;
        Some(Self { path: path.to_owned(), before: before.to_owned(), after: after.to_owned() })
    }

    fn with(&self, table: &str) -> String {
        format!("{}{BEGIN}\n{table}\n{END}{}", self.before, self.after)
    }

    /// Writes the file with another table.
    pub(crate) fn write(&self, table: &str) -> Result<(), Failure> {
        std::fs::write(&self.path, self.with(table)).map_err(|error| Failure::file("writing", &self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_changes() {
        let text = format!("front\n{BEGIN}old\n{END}back\n");
        let document = Document::split(Path::new("x.md"), &text).expect("it has a place");
        let once = document.with("| new |\n");
        assert_eq!(once, format!("front\n{BEGIN}\n| new |\n\n{END}back\n"));
        assert_eq!(Document::split(Path::new("x.md"), &once).expect("still").with("| new |\n"), once);
        assert!(Document::split(Path::new("x.md"), "no place").is_none());
    }
}

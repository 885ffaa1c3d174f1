//! Renders tables: a heading, and columns as wide as the first page of rows needs. Control characters are escaped.

use anstyle::Style;

use super::{Colour, escape_text};

/// The text and the style of a cell. The text is one line: control characters in it are escaped.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: escape_text(&text.into()), style }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text.to_string(), Style::new())
    }
}

/// A column with its heading.
#[derive(Clone, Copy)]
struct Column {
    heading: &'static str,
    is_right: bool,
}

/// A table that is printed page by page.
pub(crate) struct Table {
    columns: Vec<Column>,
    /// Set by the first page.
    widths: Option<Vec<usize>>,
    colour: Colour,
}

impl Table {
    /// A table with these columns. The name of a right-aligned column begins with `>`. There is no heading when all
    /// names are empty.
    pub(crate) fn new(names: impl IntoIterator<Item = &'static str>, colour: Colour) -> Self {
        let column = |name: &'static str| match name.strip_prefix('>') {
            Some(heading) => Column { heading, is_right: true },
            None => Column { heading: name, is_right: false },
        };
        Self { columns: names.into_iter().map(column).collect(), widths: None, colour }
    }

    /// Renders a page of rows, each with a cell for each column. The first page has the heading and sets the widths.
    pub(crate) fn page(&mut self, rows: &[impl AsRef<[Cell]>]) -> String {
        let mut text = String::new();
        let widths = match self.widths.take() {
            Some(widths) => widths,
            None => {
                let widths = self.fit(rows);
                if self.columns.iter().any(|column| !column.heading.is_empty()) {
                    let bold = |column: &Column| Cell::styled(column.heading, Style::new().bold());
                    text += &self.row(&self.columns.iter().map(bold).collect::<Vec<_>>(), &widths);
                }
                widths
            }
        };
        for row in rows {
            text += &self.row(row.as_ref(), &widths);
        }
        self.widths = Some(widths);
        text
    }

    /// The width that each column needs for its heading and these rows.
    fn fit(&self, rows: &[impl AsRef<[Cell]>]) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|column| column.heading.len()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
                *width = cell.text.chars().count().max(*width);
            }
        }
        widths
    }

    fn row(&self, cells: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), column) in cells.iter().zip(widths).zip(&self.columns) {
            let gap = " ".repeat(width.saturating_sub(cell.text.chars().count()));
            let text = self.colour.paint(&cell.text, cell.style);
            line += &if column.is_right { format!("{gap}{text}  ") } else { format!("{text}{gap}  ") };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_the_first_page_needs_them() {
        let mut table = Table::new(["NAME", ">N"], Colour::No);
        let text = table.page(&[["a".into(), 1.into()], ["longer".into(), 234.into()]]);
        assert_eq!(text, "NAME      N\na         1\nlonger  234\n");
        assert_eq!(
            table.page(&[["much longer".into(), 5.into()], ["b".into(), "".into()]]),
            "much longer    5\nb\n"
        );
    }

    #[test]
    fn a_table_without_names_has_no_heading() {
        let mut table = Table::new([""; 2], Colour::No);
        assert_eq!(table.page(&[["a".into(), "b".into()]]), "a  b\n");
    }

    #[test]
    fn a_cell_is_one_line_that_does_nothing_to_a_terminal() {
        let mut table = Table::new([""; 2], Colour::No);
        assert_eq!(
            table.page(&[["a\u{1b}[31m\nb\u{202e}".into(), "c".into()]]),
            "a\\u{1b}[31m\\nb\\u{202e}  c\n"
        );
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let mut table = Table::new([""; 2], Colour::Yes);
        let text = table.page(&[[Cell::styled("x", Style::new().bold()), "y".into()]]);
        assert_eq!(text, "\u{1b}[1mx\u{1b}[0m  y\n");
    }
}

//! Tables for people: a heading, and columns as wide as the first page of rows needs.

use anstyle::Style;

use super::Colour;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The text and the style of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text.to_string(), Style::new())
    }
}

/// A table that is printed page by page.
pub(crate) struct Table<const N: usize> {
    columns: [(&'static str, Align); N],
    /// Set by the first page.
    widths: Option<[usize; N]>,
    colour: Colour,
}

impl<const N: usize> Table<N> {
    /// A table with these columns. It has no heading when all names are empty.
    pub(crate) fn new(columns: [(&'static str, Align); N], colour: Colour) -> Self {
        Self { columns, widths: None, colour }
    }

    /// More rows, each with a line break. The first page has the heading.
    pub(crate) fn page(&mut self, rows: &[[Cell; N]]) -> String {
        let mut text = String::new();
        let widths = match self.widths {
            Some(widths) => widths,
            None => {
                let widths = std::array::from_fn(|column| self.width(rows, column));
                if self.columns.iter().any(|(name, _)| !name.is_empty()) {
                    let heading = self.columns.map(|(name, _)| Cell::styled(name, Style::new().bold()));
                    text += &self.row(&heading, &widths);
                }
                widths
            }
        };
        self.widths = Some(widths);
        for row in rows {
            text += &self.row(row, &widths);
        }
        text
    }

    fn width(&self, rows: &[[Cell; N]], column: usize) -> usize {
        let texts = rows.iter().map(|row| row[column].text.chars().count());
        texts.max().unwrap_or(0).max(self.columns[column].0.len())
    }

    fn row(&self, cells: &[Cell; N], widths: &[usize; N]) -> String {
        let mut line = String::new();
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            let gap = " ".repeat(width.saturating_sub(cell.text.chars().count()));
            let text = self.colour.paint(&cell.text, cell.style);
            match align {
                Align::Left => line += &format!("{text}{gap}  "),
                Align::Right => line += &format!("{gap}{text}  "),
            }
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
        let mut table = Table::new([("NAME", Align::Left), ("N", Align::Right)], Colour::No);
        let text = table.page(&[["a".into(), 1.into()], ["longer".into(), 234.into()]]);
        assert_eq!(text, "NAME      N\na         1\nlonger  234\n");
        assert_eq!(
            table.page(&[["much longer".into(), 5.into()], ["b".into(), "".into()]]),
            "much longer    5\nb\n"
        );
    }

    #[test]
    fn a_table_without_names_has_no_heading() {
        let mut table = Table::new([("", Align::Left); 2], Colour::No);
        assert_eq!(table.page(&[["a".into(), "b".into()]]), "a  b\n");
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let mut table = Table::new([("", Align::Left); 2], Colour::Yes);
        let text = table.page(&[[Cell::styled("x", Style::new().bold()), "y".into()]]);
        assert_eq!(text, "\u{1b}[1mx\u{1b}[0m  y\n");
    }
}

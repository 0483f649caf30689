//! Text in columns, as wide as kubectl makes them. Nothing in a cell is obeyed by a terminal.

use super::harmless;

/// Narrowest column, and what stands between two, as kubectl has them.
const NARROWEST: usize = 6;
const GAP: usize = 3;

/// Column widths, which only grow: rows that come later stay below those that were printed.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// Lays out rows below each other.
    pub(crate) fn lines(&mut self, rows: &[Vec<String>]) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
        for row in &rows {
            // The last cell of a row takes what room it needs.
            let padded = row.len().saturating_sub(1);
            if self.widths.len() < padded {
                self.widths.resize(padded, NARROWEST);
            }
            for (cell, width) in row.iter().take(padded).zip(&mut self.widths) {
                *width = (*width).max(cell.chars().count() + GAP);
            }
        }
        let mut out = String::new();
        for row in &rows {
            for (at, cell) in row.iter().enumerate() {
                if at + 1 < row.len() {
                    out.push_str(cell);
                    let width = self.widths.get(at).copied().unwrap_or_default();
                    let missing = width.saturating_sub(cell.chars().count());
                    out.extend(std::iter::repeat_n(' ', missing));
                    continue;
                }
                // Further lines of the last cell stay in its column.
                let begin = self.widths.iter().take(at).sum();
                for (number, line) in cell.split('\n').enumerate() {
                    if number > 0 {
                        out.push('\n');
                        out.extend(std::iter::repeat_n(' ', begin));
                    }
                    out.push_str(line);
                }
            }
            out.push('\n');
        }
        out
    }
}

/// Cells as they are shown; further lines there are only in the last.
fn cells(row: &[String]) -> Vec<String> {
    let last = row.len().saturating_sub(1);
    let shown = |(at, cell): (usize, &String)| {
        let lines: Vec<String> = cell.split('\n').map(harmless).collect();
        lines.join(if at == last { "\n" } else { " " })
    };
    row.iter().enumerate().map(shown).collect()
}

/// Rows in columns, each line moved in.
pub(crate) fn indented(rows: &[Vec<String>], indent: usize) -> String {
    let mut out = String::new();
    for line in Columns::default().lines(rows).lines() {
        out.extend(std::iter::repeat_n(' ', indent));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut columns = Columns::default();
        let text =
            columns.lines(&[row(&["NAME", "A", "AGE"]), row(&["mnist-worker-0", "1", "3s"])]);
        assert_eq!(text, "NAME             A     AGE\nmnist-worker-0   1     3s\n");
    }

    #[test]
    fn further_lines_of_the_last_cell_stay_in_its_column() {
        let rows = [row(&["Reason", "Message"]), row(&["Failed", "one\ntwo"])];
        let text = indented(&rows, 2);
        assert_eq!(text, "  Reason   Message\n  Failed   one\n           two\n");
    }

    #[test]
    fn no_cell_gives_orders_or_makes_rows() {
        let cells = row(&["a\u{1b}]0;x\u{7}", "b\nWarning", "c\u{9b}\nd\u{202e}"]);
        let text = Columns::default().lines(&[cells]);
        assert_eq!(
            text,
            "a^[]0;x\u{fffd}   b Warning   c\u{fffd}\n                       d\u{fffd}\n"
        );
    }

    #[test]
    fn later_rows_stay_in_line() {
        let mut columns = Columns::default();
        columns.lines(&[row(&["long-name-here", "x"])]);
        assert_eq!(columns.lines(&[row(&["ü", "y"])]), "ü                y\n");
    }
}

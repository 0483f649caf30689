//! Text in columns, as wide as kubectl makes them.

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
        for row in rows {
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
        for row in rows {
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
    fn later_rows_stay_in_line() {
        let mut columns = Columns::default();
        columns.lines(&[row(&["long-name-here", "x"])]);
        assert_eq!(columns.lines(&[row(&["ü", "y"])]), "ü                y\n");
    }
}

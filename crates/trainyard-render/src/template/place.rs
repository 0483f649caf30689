//! Places in a text: from byte offsets to lines and columns.

/// Where the lines of a text start.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The line of a place, counted from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// The column of a place, counted from 1 in characters.
    pub(super) fn column(&self, text: &str, at: usize) -> usize {
        let start = self.starts.get(self.line(at) - 1).copied().unwrap_or_default();
        1 + text.get(start..at).map_or(0, |before| before.chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_one_in_characters() {
        let text = "ab\né{{x";
        let lines = Lines::of(text);
        let place = |at| (lines.line(at), lines.column(text, at));
        assert_eq!(place(0), (1, 1));
        assert_eq!(place(2), (1, 3));
        assert_eq!(place(text.len() - 1), (2, 4));
    }
}

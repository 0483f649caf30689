//! How far a making is, by the lines that the installing program prints. Pure.
//!
//! `uv` announces all downloads and tells of each one's end; `pip` fetches one after the other, and nobody
//! knows how many are to come. Parts of the whole are those of a TensorFlow environment.

use crate::image::{Progress, Step};
use crate::tools::download;

/// Smaller downloads are not worth a line of their own.
const LARGE: u64 = 20_000_000;

/// Percents at which the parts of a making begin.
pub(crate) const RESOLVING: u8 = 5;
const FETCHING: u8 = 10;
const PLACING: u8 = 60;
const COMPILING: u8 = 70;
pub(crate) const CHECKING: u8 = 90;

/// What is known of one installation.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// How many packages there are, once that is known.
    packages: Option<u64>,
    /// Downloads under way, with their sizes.
    open: Vec<(String, u64)>,
    announced: u64,
    fetched: u64,
    percent: u8,
}

impl Gauge {
    /// Takes a line in; answers with what is worth telling.
    pub(crate) fn hear(&mut self, line: &str) -> Option<Progress> {
        let line = line.trim();
        if let Some((name, bytes)) = download(line) {
            return self.begins(name, bytes);
        }
        if let Some(name) = line.strip_prefix("Downloaded ") {
            return self.ends(name);
        }
        if let Some(count) = counted(line, "Resolved ") {
            self.packages = Some(count);
            return Some(self.at(
                FETCHING,
                Step::Installing,
                format!("fetching {}", packages(count)),
            ));
        }
        if let Some(count) = counted(line, "Prepared ") {
            let words = format!("putting {} in place", packages(count));
            return Some(self.at(PLACING, Step::Installing, words));
        }
        if let Some(count) = counted(line, "Installed ") {
            let words = format!("compiling {}", packages(count));
            return Some(self.at(COMPILING, Step::Installing, words));
        }
        if let Some(names) = line.strip_prefix("Installing collected packages: ") {
            let count = u64::try_from(names.split(',').count()).unwrap_or(u64::MAX);
            let words = format!("compiling {}", packages(count));
            return Some(self.at(PLACING, Step::Installing, words));
        }
        None
    }

    fn begins(&mut self, name: &str, bytes: u64) -> Option<Progress> {
        if self.packages.is_none() {
            // One at a time: whatever came before is here.
            self.fetched = self.announced;
        }
        self.announced += bytes;
        self.open.push((name.to_owned(), bytes));
        if bytes < LARGE {
            return None;
        }
        let so_far = match self.fetched / 1_000_000 {
            0 => String::new(),
            megabytes => format!(", {megabytes} MB fetched"),
        };
        let words = format!("downloading {name} ({} MB){so_far}", bytes / 1_000_000);
        let progress = self.at(FETCHING, Step::Downloading, words);
        Some(Progress { bytes: Some(bytes), ..progress })
    }

    fn ends(&mut self, name: &str) -> Option<Progress> {
        let place = self.open.iter().position(|(known, _)| known == name)?;
        let (_, bytes) = self.open.swap_remove(place);
        self.fetched += bytes;
        if bytes < LARGE {
            return None;
        }
        let (fetched, all) = (self.fetched / 1_000_000, self.announced / 1_000_000);
        let part = u64::from(PLACING - FETCHING) * self.fetched / self.announced.max(1);
        let percent = FETCHING.saturating_add(u8::try_from(part).unwrap_or(0));
        let words = format!("downloaded {name}: {fetched} of {all} MB");
        Some(self.at(percent, Step::Downloading, words))
    }

    /// It never goes back.
    fn at(&mut self, percent: u8, step: Step, words: String) -> Progress {
        self.percent = self.percent.max(percent);
        Progress::new(step, words).at(self.percent)
    }
}

fn packages(count: u64) -> String {
    format!("{count} package{}", if count == 1 { "" } else { "s" })
}

/// The number in `Resolved 35 packages in 1.2s`.
fn counted(line: &str, word: &str) -> Option<u64> {
    line.strip_prefix(word)?.split_once(" package")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Vec<(u8, String)> {
        let mut gauge = Gauge::default();
        let heard = lines.iter().filter_map(|line| gauge.hear(line));
        heard.map(|progress| (progress.percent.unwrap(), progress.words)).collect()
    }

    #[test]
    fn uv_tells_what_it_fetches() {
        let told = told(&[
            "Using Python 3.11.7 environment at: v0",
            "Resolved 35 packages in 439ms",
            "Downloading tensorflow-cpu (248.0MiB)",
            "Downloading numpy (15.6MiB)",
            "Downloading h5py (30MiB)",
            " Downloaded numpy",
            " Downloaded tensorflow-cpu",
            " Downloaded unheard-of",
            " Downloaded h5py",
            "Prepared 35 packages in 24.05s",
            "Installed 1 package in 19ms",
            "Bytecode compiled 586 files in 1.74s",
            " + six==1.17.0",
        ]);
        let wanted = [
            (10, "fetching 35 packages"),
            (10, "downloading tensorflow-cpu (260 MB)"),
            (10, "downloading h5py (31 MB)"),
            (54, "downloaded tensorflow-cpu: 276 of 307 MB"),
            (60, "downloaded h5py: 307 of 307 MB"),
            (60, "putting 35 packages in place"),
            (70, "compiling 1 package"),
        ];
        let wanted: Vec<(u8, String)> =
            wanted.iter().map(|(percent, words)| (*percent, (*words).to_owned())).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn pip_fetches_one_after_the_other() {
        let told = told(&[
            "Collecting tensorflow-cpu==2.21.0",
            "  Downloading tensorflow_cpu-2.21.0-cp311-manylinux.whl (273.8 MB)",
            "Collecting keras",
            "  Downloading keras-3.0-py3-none-any.whl (1.4 MB)",
            "  Downloading libclang-18-py2.whl (24.5 MB)",
            "Installing collected packages: libclang, keras, tensorflow-cpu",
        ]);
        let wanted = [
            (10, "downloading tensorflow_cpu-2.21.0-cp311-manylinux.whl (273 MB)"),
            (10, "downloading libclang-18-py2.whl (24 MB), 275 MB fetched"),
            (60, "compiling 3 packages"),
        ];
        let wanted: Vec<(u8, String)> =
            wanted.iter().map(|(percent, words)| (*percent, (*words).to_owned())).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn odd_lines_say_nothing() {
        assert!(told(&["", "Resolved", "Resolved many packages in 1s", "Downloaded "]).is_empty());
    }
}

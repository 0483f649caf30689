//! Arguments of plugins, as Go's flag package writes them: `--x=y`, `-x y`, `--x`.
//!
//! What means nothing is ignored and told, never refused. Must not know what arguments mean.

use crate::plan::Event;

/// The arguments of a plugin, of which it takes those that it knows.
pub(super) struct Flags<'s> {
    words: Vec<&'s str>,
    known: Vec<&'static str>,
    bad: Vec<String>,
}

impl<'s> Flags<'s> {
    /// Reads a list of arguments.
    pub(super) fn read(words: &'s [String]) -> Self {
        let words = words.iter().flat_map(|word| word.split_whitespace()).collect();
        Self { words, known: Vec::new(), bad: Vec::new() }
    }

    /// Takes all arguments of that name; the last counts.
    fn take(&mut self, name: &'static str, is_switch: bool) -> Option<String> {
        self.known.push(name);
        let mut found = None;
        let mut left = Vec::new();
        let mut words = std::mem::take(&mut self.words).into_iter().peekable();
        while let Some(word) = words.next() {
            let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
            match bare.map(|bare| bare.split_once('=').map_or((bare, None), |(k, v)| (k, Some(v))))
            {
                Some((key, Some(value))) if key == name => found = Some(value.to_owned()),
                Some((key, None)) if key == name && is_switch => found = Some("true".to_owned()),
                Some((key, None)) if key == name => {
                    match words.next_if(|next| !next.starts_with('-')) {
                        Some(value) => found = Some(value.to_owned()),
                        None => self.bad.push(word.to_owned()),
                    }
                }
                _ => left.push(word),
            }
        }
        self.words = left;
        found
    }

    /// A text.
    pub(super) fn text(&mut self, name: &'static str, default: &str) -> String {
        self.take(name, false).unwrap_or_else(|| default.to_owned())
    }

    /// A number; one out of bounds is ignored.
    pub(super) fn port(&mut self, name: &'static str, default: u16) -> u16 {
        let Some(text) = self.take(name, false) else {
            return default;
        };
        text.parse().ok().filter(|port| *port > 0).unwrap_or_else(|| {
            self.bad.push(format!("--{name}={text}"));
            default
        })
    }

    /// A switch.
    pub(super) fn switch(&mut self, name: &'static str, default: bool) -> bool {
        let Some(text) = self.take(name, true) else {
            return default;
        };
        match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            _ => {
                self.bad.push(format!("--{name}={text}"));
                default
            }
        }
    }

    /// What is told about arguments that mean nothing.
    pub(super) fn unknown(self, plugin: &str) -> Option<Event> {
        let bad: Vec<String> = self.words.into_iter().map(str::to_owned).chain(self.bad).collect();
        let known = match self.known.as_slice() {
            [] => "no arguments".to_owned(),
            known => format!("--{}", known.join(", --")),
        };
        (!bad.is_empty()).then(|| {
            let message = format!(
                "spec.plugins.{plugin}: {:?} means nothing here and is ignored; the plugin takes \
                 {known}",
                bad.join(" ")
            );
            Event::warning("PluginError", message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn all_spellings_of_go() {
        let list = words(&["--ps=a", "-worker", "b", "--port 7", "--on", "-off=false"]);
        let mut flags = Flags::read(&list);
        assert_eq!((flags.text("ps", "x"), flags.text("worker", "x")), ("a".into(), "b".into()));
        assert_eq!((flags.port("port", 1), flags.port("other", 2)), (7, 2));
        assert!(flags.switch("on", false) && !flags.switch("off", true));
        assert_eq!(flags.unknown("p"), None);
    }

    #[test]
    fn what_means_nothing_is_ignored_and_told() {
        let list = words(&["9090", "--port=many", "--no-root", "--ps=a"]);
        let mut flags = Flags::read(&list);
        assert_eq!((flags.port("port", 22), flags.text("ps", "x")), (22, "a".into()));
        let told = flags.unknown("svc").unwrap().message;
        assert_eq!(
            told,
            "spec.plugins.svc: \"9090 --no-root --port=many\" means nothing here and is ignored; \
             the plugin takes --port, --ps"
        );
    }
}

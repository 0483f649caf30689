//! What is known of TensorFlow's releases: which Pythons each has wheels for, which Python its
//! official image had, under which name it is published, and what must be held back beside it.
//! Pure; a release newer than the table is taken to be like the newest one in it.

use crate::version::{Python, Version, Wanted};

/// One minor release.
struct Minor {
    release: (u32, u32),
    /// Minor versions of Python 3 that every patch of it has wheels for.
    pythons: (u32, u32),
    /// The one nearest to the official image's.
    preferred: u32,
    /// The last patch release known.
    last: &'static str,
}

const fn minor(
    release: (u32, u32),
    pythons: (u32, u32),
    preferred: u32,
    last: &'static str,
) -> Minor {
    Minor { release, pythons, preferred, last }
}

const MINORS: [Minor; 38] = [
    minor((1, 0), (3, 6), 5, "1.0.1"),
    minor((1, 1), (3, 6), 5, "1.1.0"),
    minor((1, 2), (3, 6), 5, "1.2.1"),
    minor((1, 3), (3, 6), 5, "1.3.0"),
    minor((1, 4), (3, 6), 5, "1.4.1"),
    minor((1, 5), (3, 6), 5, "1.5.1"),
    minor((1, 6), (3, 6), 5, "1.6.0"),
    minor((1, 7), (3, 6), 5, "1.7.1"),
    minor((1, 8), (3, 6), 5, "1.8.0"),
    minor((1, 9), (3, 6), 5, "1.9.0"),
    minor((1, 10), (3, 6), 5, "1.10.1"),
    minor((1, 11), (3, 6), 5, "1.11.0"),
    minor((1, 12), (3, 6), 5, "1.12.3"),
    minor((1, 13), (3, 7), 5, "1.13.2"),
    minor((1, 14), (3, 7), 6, "1.14.0"),
    minor((1, 15), (6, 7), 6, "1.15.5"),
    minor((2, 0), (6, 7), 6, "2.0.4"),
    minor((2, 1), (6, 7), 6, "2.1.4"),
    minor((2, 2), (6, 8), 6, "2.2.3"),
    minor((2, 3), (6, 8), 6, "2.3.4"),
    minor((2, 4), (6, 8), 6, "2.4.4"),
    minor((2, 5), (7, 9), 8, "2.5.3"),
    minor((2, 6), (7, 9), 8, "2.6.5"),
    minor((2, 7), (7, 9), 8, "2.7.4"),
    minor((2, 8), (7, 10), 8, "2.8.4"),
    minor((2, 9), (7, 10), 8, "2.9.3"),
    minor((2, 10), (7, 10), 8, "2.10.1"),
    minor((2, 11), (8, 10), 8, "2.11.1"),
    minor((2, 12), (8, 11), 8, "2.12.1"),
    minor((2, 13), (8, 11), 8, "2.13.1"),
    minor((2, 14), (9, 11), 11, "2.14.1"),
    minor((2, 15), (9, 11), 11, "2.15.1"),
    minor((2, 16), (9, 12), 11, "2.16.2"),
    minor((2, 17), (9, 12), 11, "2.17.1"),
    minor((2, 18), (9, 12), 11, "2.18.1"),
    minor((2, 19), (9, 12), 11, "2.19.1"),
    minor((2, 20), (9, 13), 11, "2.20.0"),
    minor((2, 21), (10, 13), 11, "2.21.0"),
];

const NEWEST: &Minor = &MINORS[MINORS.len() - 1];

fn find(version: &Version) -> Option<&'static Minor> {
    MINORS.iter().find(|minor| minor.release == version.major_minor())
}

/// Whether this Python has wheels of that release, as far as is known.
pub(crate) fn supports(version: &Version, python: Python) -> bool {
    if python.major != 3 {
        return false;
    }
    match find(version) {
        Some(minor) => (minor.pythons.0..=minor.pythons.1).contains(&python.minor),
        None => version.major_minor() > NEWEST.release && python.minor >= NEWEST.pythons.0,
    }
}

/// Whether this Python may have the newest release there is, known or not.
pub(crate) fn may_have_newest(python: Python) -> bool {
    python.major == 3 && python.minor >= NEWEST.pythons.0
}

/// Sorts Pythons: the official image's first, then the nearest to it, the newer first.
pub(crate) fn preference(version: &Version, python: Python) -> (u32, bool) {
    let preferred = find(version).unwrap_or(NEWEST).preferred;
    (python.minor.abs_diff(preferred), python.minor < preferred)
}

/// The Pythons a release has wheels for, in words: `3.9 to 3.12`.
pub(crate) fn pythons_in_words(version: &Version) -> Option<String> {
    find(version).map(|minor| format!("3.{} to 3.{}", minor.pythons.0, minor.pythons.1))
}

/// The release that a tag means without asking anyone: minor releases that were followed by two
/// others get no more patches. None where only the index knows, as for any release newer than the table.
pub(crate) fn settled(wanted: &Wanted) -> Option<Version> {
    match wanted {
        Wanted::Exact(version) => {
            let last = find(version).map(|minor| Version::parse(minor.last));
            let known = version.major_minor() < NEWEST.release && last.is_none();
            (known || last.flatten() >= Some(version.clone())).then(|| version.clone())
        }
        Wanted::Prefix(prefix) => {
            let closed = &MINORS[..MINORS.len() - 2];
            let last = match prefix.as_slice() {
                [1] => MINORS.iter().rfind(|minor| minor.release.0 == 1)?.last,
                [major, minor] => closed.iter().find(|m| m.release == (*major, *minor))?.last,
                _ => return None,
            };
            Version::parse(last)
        }
        Wanted::Latest => None,
    }
}

/// The newest known release that a tag can mean and one of these Pythons can install.
pub(crate) fn newest_known(wanted: &Wanted, pythons: &[Python]) -> Option<Version> {
    MINORS.iter().rev().filter_map(|minor| Version::parse(minor.last)).find(|version| {
        wanted.matches(version) && pythons.iter().any(|python| supports(version, *python))
    })
}

/// The known release nearest to the one wanted that one of these Pythons can install.
pub(crate) fn nearest(wanted: &Wanted, pythons: &[Python]) -> Option<Version> {
    let at = match wanted {
        Wanted::Latest => NEWEST.release,
        Wanted::Prefix(prefix) => {
            (prefix.first().copied().unwrap_or(2), prefix.get(1).copied().unwrap_or(0))
        }
        Wanted::Exact(version) => version.major_minor(),
    };
    let place = |release: (u32, u32)| {
        MINORS.iter().position(|minor| minor.release >= release).unwrap_or(MINORS.len())
    };
    MINORS
        .iter()
        .filter_map(|minor| Some((minor, Version::parse(minor.last)?)))
        .filter(|(_, version)| pythons.iter().any(|python| supports(version, *python)))
        .min_by_key(|(minor, _)| (place(minor.release).abs_diff(place(at)), minor.release < at))
        .map(|(_, version)| version)
}

/// The name a release is published under, with the extra to ask for.
pub(crate) fn package(version: &Version, gpu: bool, machine: &str) -> (&'static str, &'static str) {
    let release = version.major_minor();
    if gpu {
        return match release {
            (1, _) | (2, 0) => ("tensorflow-gpu", ""),
            (2, 1..=13) => ("tensorflow", ""),
            _ => ("tensorflow", "[and-cuda]"),
        };
    }
    // Before 2.1 the plain name was the CPU build; off x86-64 it still is.
    if machine == "x86_64" && release >= (2, 1) {
        ("tensorflow-cpu", "")
    } else {
        ("tensorflow", "")
    }
}

/// What must be held back so that an old release works: most bound their dependencies only from
/// below, and newer ones have since broken them.
pub(crate) fn constraints(version: &Version) -> Vec<String> {
    let release = version.major_minor();
    let (major, minor) = release;
    let mut lines = Vec::new();
    // Its web server imports `pkg_resources`, which later versions no longer bring.
    lines.push("setuptools<81".to_owned());
    if release < (2, 12) {
        lines.push("protobuf<3.21".to_owned());
        lines.push("numpy<1.24".to_owned());
    }
    if release < (2, 1) {
        lines.push("h5py<3".to_owned());
    }
    if release < (1, 15) {
        lines.push("numpy<1.17".to_owned());
    }
    if ((2, 6)..(2, 16)).contains(&release) {
        lines.push(format!("keras=={major}.{minor}.*"));
        lines.push(format!("tensorflow-estimator=={major}.{minor}.*"));
    }
    // From 2.16 on any newer Keras is admitted: these are the ones of each release's time.
    let keras = match release {
        (2, 16) => Some("keras<3.4"),
        (2, 17) => Some("keras<3.5"),
        (2, 18) => Some("keras<3.7"),
        (2, 19) => Some("keras<3.10"),
        (2, 20) => Some("keras<3.12"),
        _ => None,
    };
    lines.extend(keras.map(str::to_owned));
    lines
}

/// Packages that a release asks for in versions which were published as sources only.
pub(crate) fn without_wheels(version: &Version) -> &'static [&'static str] {
    if version.major_minor() < (2, 7) { &["gast", "termcolor", "wrapt"] } else { &[] }
}

/// The TensorBoard that goes with a release, as a requirement. The newest releases do not bring it.
pub(crate) fn tensorboard(version: &Version) -> Option<String> {
    let (major, minor) = version.major_minor();
    ((major, minor) >= (1, 15)).then(|| format!("tensorboard>={major},<{major}.{}", minor + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    fn python(minor: u32) -> Python {
        Python { major: 3, minor, patch: 0 }
    }

    #[test]
    fn the_table_is_in_order_and_readable() {
        for pair in MINORS.windows(2) {
            assert!(pair[0].release < pair[1].release);
        }
        for minor in &MINORS {
            assert_eq!(version(minor.last).major_minor(), minor.release);
            assert!(minor.pythons.0 <= minor.preferred && minor.preferred <= minor.pythons.1);
        }
    }

    #[test]
    fn wheels_are_known_per_python() {
        assert!(supports(&version("2.21.0"), python(11)));
        assert!(!supports(&version("2.21.0"), python(9)));
        assert!(supports(&version("1.15.5"), python(7)));
        assert!(!supports(&version("1.13.1"), python(8)));
        assert!(supports(&version("2.40.0"), python(15)), "a newer release than the table");
        assert!(!supports(&version("0.12.0"), python(11)));
        assert!(!supports(&version("1.15.0"), Python { major: 2, minor: 7, patch: 18 }));
    }

    #[test]
    fn the_python_of_the_official_image_comes_first() {
        let mut pythons = [python(13), python(12), python(11), python(10)];
        pythons.sort_by_key(|p| preference(&version("2.21.0"), *p));
        assert_eq!(pythons.map(|p| p.minor), [11, 12, 10, 13]);
    }

    #[test]
    fn old_minors_are_settled_without_asking() {
        assert_eq!(settled(&Wanted::Prefix(vec![2, 16])), Some(version("2.16.2")));
        assert_eq!(settled(&Wanted::Prefix(vec![1])), Some(version("1.15.5")));
        assert_eq!(settled(&Wanted::Prefix(vec![2, 21])), None);
        assert_eq!(settled(&Wanted::Prefix(vec![2])), None);
        assert_eq!(settled(&Wanted::Latest), None);
        let exact = |text| settled(&Wanted::Exact(version(text))).is_some();
        assert!(exact("2.21.0") && exact("2.15.0.post1") && exact("0.12.0"));
        assert!(!exact("2.21.1") && !exact("2.16.9") && !exact("9.9.9"));
    }

    #[test]
    fn the_nearest_release_is_one_that_works_here() {
        let exact = |text| Wanted::Exact(version(text));
        assert_eq!(nearest(&exact("1.13.1"), &[python(11)]), Some(version("2.12.1")));
        assert_eq!(nearest(&exact("1.13.1"), &[python(7), python(11)]), Some(version("1.13.2")));
        assert_eq!(nearest(&exact("2.3.0"), &[python(13)]), Some(version("2.20.0")));
        assert_eq!(nearest(&exact("9.0.0"), &[python(11)]), Some(version("2.21.0")));
        assert_eq!(nearest(&Wanted::Latest, &[python(2)]), None);
        assert_eq!(newest_known(&Wanted::Latest, &[python(9)]), Some(version("2.20.0")));
        assert_eq!(newest_known(&Wanted::Prefix(vec![1]), &[python(9)]), None);
    }

    #[test]
    fn the_cpu_wheel_is_taken_where_there_is_one() {
        assert_eq!(package(&version("2.21.0"), false, "x86_64"), ("tensorflow-cpu", ""));
        assert_eq!(package(&version("2.21.0"), false, "aarch64"), ("tensorflow", ""));
        assert_eq!(package(&version("1.13.1"), false, "x86_64"), ("tensorflow", ""));
        assert_eq!(package(&version("2.21.0"), true, "x86_64"), ("tensorflow", "[and-cuda]"));
        assert_eq!(package(&version("2.9.1"), true, "x86_64"), ("tensorflow", ""));
        assert_eq!(package(&version("1.15.2"), true, "x86_64"), ("tensorflow-gpu", ""));
    }

    #[test]
    fn old_releases_hold_back_what_broke_them() {
        assert!(constraints(&version("2.5.0")).contains(&"protobuf<3.21".to_owned()));
        assert!(constraints(&version("2.9.1")).contains(&"keras==2.9.*".to_owned()));
        assert!(constraints(&version("2.16.2")).contains(&"keras<3.4".to_owned()));
        assert!(!constraints(&version("2.21.0")).iter().any(|line| line.starts_with("keras")));
        assert_eq!(tensorboard(&version("2.21.0")).unwrap(), "tensorboard>=2,<2.22");
        assert_eq!(tensorboard(&version("1.13.1")), None);
    }
}

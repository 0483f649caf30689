//! What an image looks like once its environment is known: variables, command, views of the root, and
//! the words that say what stands in. Reads links on disk, makes nothing.

use std::path::{Path, PathBuf};

use crate::demand::{Demand, What};
use crate::image::{Image, View, ViewMode};
use crate::settings::{CodeMount, Mapping};
use crate::store::Environment;
use crate::system;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What is known of an image besides its environment.
pub(crate) struct Words<'a> {
    pub(crate) reference: &'a str,
    pub(crate) mapping: Option<&'a Mapping>,
    /// Its own command is known and kept.
    pub(crate) keeps_command: bool,
    pub(crate) remarks: &'a [String],
}

/// The image that an environment of ours stands for.
pub(crate) fn environment(
    found: &Environment,
    demand: &Demand,
    words: &Words<'_>,
    mounts: &[CodeMount],
) -> Image {
    let marker = &found.marker;
    let name = found.dir.file_name().unwrap_or_default().to_string_lossy();
    let what = format!("a Python environment with {}", marker.recipe.words(marker.python));
    let mut image = start(format!("trainyard://env/{name}"), words, &what);
    image.env = variables(Some(&found.dir));
    if words.keeps_command {
        let (cmd, working_dir) = official(demand);
        image.cmd = cmd;
        image.working_dir = working_dir;
    }
    let led = match &marker.prefixes {
        Some(prefixes) => prefixes.clone(),
        None => prefixes(&found.dir.join("bin/python")),
    };
    let base = Some(marker.base_prefix.as_path());
    let mut views = python_views(base, &led, &found.dir);
    views.push(private(&found.dir));
    finish(image, words, views, mounts)
}

/// The image that a folder of the user's stands for.
pub(crate) fn folder(words: &Words<'_>, dir: &Path, mounts: &[CodeMount]) -> Result<Image, String> {
    let dir = dir.canonicalize().map_err(|error| error.to_string())?;
    if !dir.join("bin/python").exists() {
        return Err("it has no bin/python".to_owned());
    }
    let base = std::fs::read_to_string(dir.join("pyvenv.cfg")).ok().and_then(|text| home(&text));
    let id = format!("trainyard://env{}", dir.display());
    let mut image = start(id, words, &format!("the Python environment in {}", dir.display()));
    image.env = variables(Some(&dir));
    let mut views = python_views(base.as_deref(), &prefixes(&dir.join("bin/python")), &dir);
    views.push(private(&dir));
    Ok(finish(image, words, views, mounts))
}

/// The host itself as an image.
pub(crate) fn host(words: &Words<'_>, mounts: &[CodeMount]) -> Image {
    let mut image = start("trainyard://host".to_owned(), words, "the host's own programs");
    image.env = variables(None);
    finish(image, words, Vec::new(), mounts)
}

fn start(id: String, words: &Words<'_>, what: &str) -> Image {
    let mut note = format!("using {what} in place of image {:?}", words.reference);
    for remark in words.remarks {
        note = format!("{note}; {remark}");
    }
    Image {
        id,
        reference: words.reference.to_owned(),
        entrypoint: Vec::new(),
        cmd: Vec::new(),
        env: Vec::new(),
        working_dir: PathBuf::from("/"),
        user: None,
        root: vec![View::System],
        note,
    }
}

fn finish(mut image: Image, words: &Words<'_>, views: Vec<View>, mounts: &[CodeMount]) -> Image {
    image.root.extend(views);
    image.root.extend(mounts.iter().map(|mount| View::Directory {
        source: mount.source.clone(),
        target: mount.target.clone(),
        mode: if mount.read_only { ViewMode::ReadOnly } else { ViewMode::Writable },
    }));
    if let Some(mapping) = words.mapping {
        if !mapping.entrypoint.is_empty() {
            image.entrypoint.clone_from(&mapping.entrypoint);
            image.cmd.clear();
        }
        if let Some(dir) = &mapping.working_dir {
            image.working_dir.clone_from(dir);
        }
    }
    image
}

/// As the official images set them, and output unbuffered: a log that shows a line when it was printed,
/// and shows it at all when the process is killed, is worth the few more writes.
fn variables(env: Option<&Path>) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let path = env.map_or(PATH.to_owned(), |dir| format!("{}:{PATH}", dir.join("bin").display()));
    let mut found = vec![pair("PATH", &path), pair("HOME", "/root"), pair("LANG", "C.UTF-8")];
    if let Some(dir) = env {
        found.push(pair("PYTHONUNBUFFERED", "1"));
        found.push(pair("VIRTUAL_ENV", &dir.display().to_string()));
    }
    found
}

/// What the official images run when the pod says nothing, and where.
fn official(demand: &Demand) -> (Vec<String>, PathBuf) {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match &demand.what {
        What::Tensorflow { jupyter: true, .. } => {
            let notebook =
                "jupyter notebook --notebook-dir=/tf --ip 0.0.0.0 --no-browser --allow-root";
            (words(&["bash", "-c", notebook]), PathBuf::from("/tf"))
        }
        What::Tensorflow { .. } => (words(&["/bin/bash"]), PathBuf::from("/")),
        What::Python { .. } => (words(&["python3"]), PathBuf::from("/")),
    }
}

/// The environment where it is: its programs name their own path. It is written only privately.
fn private(dir: &Path) -> View {
    let (source, target) = (dir.to_owned(), dir.to_owned());
    View::Directory { source, target, mode: ViewMode::PrivateCopy }
}

/// The prefixes that a Python leads to: its links may lead through others, which must exist inside as
/// well.
pub(crate) fn prefixes(python: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut link = python.to_owned();
    for _ in 0..16 {
        let Ok(next) = std::fs::read_link(&link) else { break };
        link = link.parent().unwrap_or(Path::new("/")).join(next);
        found.extend(link.parent().and_then(Path::parent).map(Path::to_owned));
    }
    found
}

/// The Python that the environment in `dir` is made from: where it is installed, and where links lead to.
pub(crate) fn python_views(base: Option<&Path>, led: &[PathBuf], dir: &Path) -> Vec<View> {
    let mut prefixes: Vec<PathBuf> = Vec::new();
    for prefix in base.into_iter().chain(led.iter().map(PathBuf::as_path)) {
        for path in [Some(prefix.to_owned()), prefix.canonicalize().ok()].into_iter().flatten() {
            if !prefixes.contains(&path) {
                prefixes.push(path);
            }
        }
    }
    prefixes
        .iter()
        .filter(|prefix| !system::is_shown(prefix) && !prefix.starts_with(dir))
        .flat_map(|prefix| parts(prefix))
        .filter_map(|path| {
            let source = path.canonicalize().ok()?;
            Some(View::Directory { source, target: path, mode: ViewMode::ReadOnly })
        })
        .collect()
}

/// All of a prefix, but of one that holds more than a Python (a home, the root) only what is Python's.
fn parts(prefix: &Path) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let broad = prefix.components().count() <= 2
        || home.is_some_and(|home| home.starts_with(prefix))
        || ["lib", "bin"].iter().any(|part| !prefix.join(part).is_dir());
    if !broad {
        return vec![prefix.to_owned()];
    }
    ["bin", "lib"]
        .iter()
        .map(|part| prefix.join(part))
        .filter(|path| path.is_dir() && !system::is_shown(path))
        .collect()
}

/// `home = /usr/bin` in pyvenv.cfg names the folder of the Python; its prefix is the one above.
fn home(text: &str) -> Option<PathBuf> {
    let line =
        text.lines().find_map(|line| line.split_once('=').filter(|(k, _)| k.trim() == "home"))?;
    Path::new(line.1.trim()).parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn words(mapping: Option<&Mapping>) -> Words<'_> {
        Words { reference: "gcr.io/me/mnist:1", mapping, keeps_command: false, remarks: &[] }
    }

    /// A Python reached through a link, as uv keeps them, and an environment made from it.
    fn pythons() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("pythons/3.11.7");
        for part in ["bin", "lib"] {
            std::fs::create_dir_all(real.join(part)).unwrap();
        }
        std::fs::write(real.join("bin/python3.11"), "").unwrap();
        symlink("3.11.7", dir.path().join("pythons/3.11")).unwrap();
        let bin = dir.path().join("env/bin");
        std::fs::create_dir_all(&bin).unwrap();
        symlink(dir.path().join("pythons/3.11/bin/python3.11"), bin.join("python")).unwrap();
        let cfg = format!("home = {}\n", dir.path().join("pythons/3.11/bin").display());
        std::fs::write(dir.path().join("env/pyvenv.cfg"), cfg).unwrap();
        dir
    }

    #[test]
    fn an_environment_shows_itself_and_its_python() {
        let dir = pythons();
        let root = dir.path().canonicalize().unwrap();
        let image = folder(&words(None), &root.join("env"), &[]).unwrap();
        assert_eq!(image.root[0], View::System);
        let view = |target: &str, source: &str, mode| View::Directory {
            source: root.join(source),
            target: root.join(target),
            mode,
        };
        assert!(image.root.contains(&view("pythons/3.11", "pythons/3.11.7", ViewMode::ReadOnly)));
        assert!(image.root.contains(&view("pythons/3.11.7", "pythons/3.11.7", ViewMode::ReadOnly)));
        assert_eq!(image.root.last(), Some(&view("env", "env", ViewMode::PrivateCopy)));
        assert_eq!(image.root.len(), 4);
        let path = &image.env.iter().find(|(name, _)| name == "PATH").unwrap().1;
        assert!(path.starts_with(&format!("{}:", root.join("env/bin").display())), "{path}");
        assert!(image.cmd.is_empty() && image.entrypoint.is_empty());
    }

    #[test]
    fn a_folder_that_is_no_environment_says_why() {
        let dir = tempfile::tempdir().unwrap();
        assert!(folder(&words(None), dir.path(), &[]).unwrap_err().contains("bin/python"));
        assert!(folder(&words(None), &dir.path().join("x"), &[]).is_err());
    }

    #[test]
    fn mounts_and_what_a_mapping_says_come_last() {
        let mut mapping = Mapping::parse("gcr.io/me/mnist=host", Path::new("/")).unwrap();
        mapping.entrypoint = vec!["python3".to_owned(), "/app/main.py".to_owned()];
        mapping.working_dir = Some(PathBuf::from("/app"));
        let mount = CodeMount::parse("/code:/app:ro", Path::new("/")).unwrap();
        let image = host(&words(Some(&mapping)), &[mount]);
        assert_eq!(image.entrypoint, ["python3", "/app/main.py"]);
        assert_eq!(image.working_dir, Path::new("/app"));
        assert_eq!(image.id, "trainyard://host");
        let code = View::Directory {
            source: "/code".into(),
            target: "/app".into(),
            mode: ViewMode::ReadOnly,
        };
        assert_eq!(image.root, [View::System, code]);
        assert!(image.note.contains("in place of image \"gcr.io/me/mnist:1\""), "{}", image.note);
    }

    #[test]
    fn a_home_is_never_shown_whole() {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        assert!(!parts(&home).contains(&home));
        assert!(!parts(Path::new("/")).contains(&PathBuf::from("/")));
    }
}

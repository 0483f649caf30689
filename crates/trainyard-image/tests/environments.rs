//! Real environments, made from the package index with pip and with uv. Needs the network, a Python 3 with
//! venv, and for the last test some gigabytes and minutes; run with `--ignored`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trainyard_image::{Ground, Image, ImageError, Images, Installer, PullPolicy, Settings, Step};

struct Yard {
    dir: tempfile::TempDir,
    installer: Installer,
}

impl Yard {
    fn with_pip() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), installer: Installer::Pip }
    }

    /// With `uv` in the tools folder beside the environments, fetched as a package.
    fn with_uv() -> Self {
        let yard = Self { dir: tempfile::tempdir().unwrap(), installer: Installer::Any };
        let venv = yard.dir.path().join("uv");
        run(Path::new("python3"), &["-m", "venv", &venv.display().to_string()]);
        run(&venv.join("bin/pip"), &["install", "--quiet", "uv"]);
        let tools = yard.dir.path().join("tools/bin");
        std::fs::create_dir_all(&tools).unwrap();
        std::fs::copy(venv.join("bin/uv"), tools.join("uv")).unwrap();
        yard
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("envs")
    }

    fn images(&self, offline: bool) -> Images {
        let settings = Settings {
            cache: self.cache(),
            installer: self.installer,
            offline,
            ..Settings::default()
        };
        let images = Images::new(settings).unwrap();
        images.make_on(Ground::Machine);
        images
    }

    /// Folders of environments, whole or not, and whatever is left of their making.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten();
        let cache = self.cache();
        entries(&cache)
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir() && !path.ends_with(".locks") && !path.ends_with(".work"))
            .chain(entries(&cache.join(".work")).map(|entry| entry.unwrap().path()))
            .collect()
    }
}

async fn get(
    images: &Images,
    reference: &str,
    requirements: &[&str],
) -> (Result<Arc<Image>, ImageError>, Vec<Step>) {
    let steps = Mutex::new(Vec::new());
    let lines: Vec<String> = requirements.iter().map(|line| (*line).to_owned()).collect();
    let policy = PullPolicy::IfNotPresent;
    let hear = |progress: trainyard_image::Progress| {
        println!("{}", progress.words);
        steps.lock().unwrap().push(progress.step);
    };
    let image = images.resolve(reference, &lines, policy, hear).await;
    (image, steps.into_inner().unwrap())
}

fn run(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{} {args:?}: {said}{}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

/// The Python of an image, as a container finds it.
fn python(image: &Image) -> PathBuf {
    let path = &image.env.iter().find(|(name, _)| name == "PATH").unwrap().1;
    Path::new(path.split(':').next().unwrap()).join("python")
}

async fn a_small_environment(yard: &Yard) {
    let images = yard.images(false);
    let (first, second) =
        tokio::join!(get(&images, "python:3", &["six"]), get(&images, "python:3", &["six"]));
    let image = first.0.unwrap();
    assert_eq!(image.id, second.0.unwrap().id);
    for steps in [&first.1, &second.1] {
        let making = steps.iter().filter(|step| **step == Step::Making).count();
        assert_eq!(making, 1, "both hear of one making: {steps:?}");
    }
    assert_eq!(yard.folders().len(), 1);
    assert_eq!(image.cmd, ["python3"]);
    run(&python(&image), &["-c", "import six, pip"]);
    assert!(run(&python(&image), &["-m", "pip", "--version"]).contains("pip"));
    let site = run(&python(&image), &["-c", "import six; print(six.__cached__)"]);
    assert!(Path::new(site.trim()).exists(), "bytecode is there before the first import: {site}");

    let (again, steps) = get(&yard.images(true), "python:3", &["six"]).await;
    assert_eq!(again.unwrap(), image, "it works without a network once made");
    assert_eq!(steps, []);
    let (other, _) = get(&yard.images(true), "python:3", &["six", "nonesuch-of-ours"]).await;
    assert_eq!(other.unwrap_err().kind(), "ErrImagePull");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "uses the package index"]
async fn a_small_environment_is_made_once_with_pip() {
    a_small_environment(&Yard::with_pip()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "uses the package index"]
async fn a_small_environment_is_made_once_with_uv() {
    a_small_environment(&Yard::with_uv()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "uses the package index"]
async fn two_processes_make_one_environment() {
    let yard = Yard::with_pip();
    // Locks belong to open files: two of these exclude each other as two processes do.
    let (one, two) = (yard.images(false), yard.images(false));
    let late = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        get(&two, "python:3", &[]).await
    };
    let (first, second) = tokio::join!(get(&one, "python:3", &[]), late);
    assert_eq!(first.0.unwrap().id, second.0.unwrap().id);
    assert!(first.1.contains(&Step::Making));
    assert!(!second.1.contains(&Step::Making), "{:?}", second.1);
}

#[test]
#[ignore = "uses the package index"]
fn a_build_that_was_broken_off_is_made_anew() {
    let yard = Yard::with_pip();
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let broken = runtime();
    let images = yard.images(false);
    broken.spawn(async move { get(&images, "python:3", &["six"]).await.0.map(drop) });
    while yard.folders().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    broken.shutdown_background();
    std::thread::sleep(Duration::from_millis(500));
    let folder = yard.folders().remove(0);
    assert!(!folder.join(".complete").exists());
    assert_eq!(processes_naming(&folder), 0, "what was making it has ended");
    std::fs::write(folder.join("rubbish"), "left over").unwrap();

    let (image, steps) = runtime().block_on(get(&yard.images(false), "python:3", &["six"]));
    run(&python(&image.unwrap()), &["-c", "import six"]);
    assert!(steps.contains(&Step::Making));
    assert_eq!(yard.folders(), std::slice::from_ref(&folder));
    assert!(folder.join(".complete").exists() && !folder.join("rubbish").exists());
}

fn processes_naming(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(&folder))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "uses the package index"]
async fn failures_say_what_the_installer_said() {
    for yard in [Yard::with_pip(), Yard::with_uv()] {
        let images = yard.images(false);
        let (image, _) = get(&images, "python:3", &["nonesuch-of-ours==1.2.3"]).await;
        let error = image.unwrap_err();
        assert_eq!(error.kind(), "ErrImagePull");
        assert!(error.to_string().contains("nonesuch-of-ours"), "{error}");
        assert_eq!(yard.folders(), Vec::<PathBuf>::new(), "nothing is left of it");
        let words = ["nonesuch-of-ours"];
        let (image, steps) = get(&images, "tensorflow/tensorflow:2.21.0", &words).await;
        let error = image.unwrap_err().to_string();
        assert!(error.contains("nonesuch-of-ours cannot be installed beside"), "{error}");
        assert!(!steps.contains(&Step::Downloading), "TensorFlow is fetched first: {steps:?}");
        let (image, _) = get(&images, "tensorflow/tensorflow:2.99.0", &[]).await;
        let error = image.unwrap_err().to_string();
        assert!(
            error.contains("--image tensorflow/tensorflow:2.99.0=tensorflow/tensorflow:2."),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "uses the package index"]
async fn nothing_is_built_unless_that_is_asked_for() {
    let yard = Yard::with_pip();
    let images = yard.images(false);
    let (image, _) = get(&images, "python:3", &["termcolor==1.1.0"]).await;
    let error = image.unwrap_err().to_string();
    assert!(error.contains("--allow-source-packages"), "it has no wheel: {error}");
    let address = "six @ https://files.example.com/six.tar.gz";
    let (image, _) = get(&images, "python:3", &[address]).await;
    assert!(image.unwrap_err().to_string().contains("names an address"));
}

async fn tensorflow(yard: &Yard) {
    // `tf-keras` depends on `tensorflow`, which must not be put over `tensorflow-cpu`.
    let images = yard.images(false);
    let (image, _) =
        get(&images, "docker.io/tensorflow/tensorflow:latest-gpu", &["tf-keras"]).await;
    let image = image.unwrap();
    assert!(image.id.starts_with("trainyard://env/tensorflow-cpu-2."), "{}", image.id);
    assert!(image.note.contains("no GPU"), "{}", image.note);
    let listed = "from importlib.metadata import distribution as d; \
                  print(d('tensorflow').read_text('INSTALLER').strip(), d('tensorflow-cpu').version)";
    let said = run(&python(&image), &["-c", listed]);
    assert!(said.starts_with("trainyard 2."), "{said}");
    run(&python(&image), &["-c", "import tensorflow, tf_keras, tensorboard.main"]);
    let dry = ["-m", "pip", "install", "--dry-run", "tf-keras", "tensorflow"];
    assert!(!run(&python(&image), &dry).contains("Would install"));
    let (offline, steps) = get(&yard.images(true), "tensorflow/tensorflow", &["tf-keras"]).await;
    assert_eq!(offline.unwrap().id, image.id);
    assert_eq!(steps, []);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "installs TensorFlow from the package index"]
async fn tensorflow_is_made_with_pip() {
    tensorflow(&Yard::with_pip()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "installs TensorFlow from the package index"]
async fn tensorflow_is_made_with_uv() {
    tensorflow(&Yard::with_uv()).await;
}

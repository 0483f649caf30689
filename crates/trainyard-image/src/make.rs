//! Makes one environment, step by step, in its final folder (environments cannot be moved): the empty
//! environment, the packages, the check that they can be imported. In a sandbox, wherever there is one: what
//! is installed may run code of anybody's. Knows nothing of who waits for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{Invocation, Outcome};
use crate::compose;
use crate::demand::{FORMAT, Recipe};
use crate::error::{ImageError, ONLY_WHEELS};
use crate::gauge::{self, Gauge};
use crate::ground::Ground;
use crate::image::{Progress, Step};
use crate::interpreters::Interpreter;
use crate::releases;
use crate::requirements;
use crate::room::Room;
use crate::settle;
use crate::share::Teller;
use crate::store::{Environment, Marker, Store};
use crate::tools::{Failure, Sources, Tool, classify, failed};

const CHECKING: Duration = Duration::from_mins(10);
/// Holds what was asked for, inside the environment.
const NOTES: &str = ".trainyard";

/// Why an environment was not made.
#[derive(Debug)]
pub(crate) struct NotMade {
    pub(crate) kind: Failure,
    pub(crate) error: ImageError,
}

impl From<ImageError> for NotMade {
    fn from(error: ImageError) -> Self {
        let kind = match error {
            ImageError::DiskFull { .. } => Failure::DiskFull,
            ImageError::NoNetwork { .. } => Failure::Network,
            _ => Failure::Other,
        };
        Self { kind, error }
    }
}

/// One environment to be made.
pub(crate) struct Making<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) store: &'a Store,
    pub(crate) recipe: &'a Recipe,
    pub(crate) python: &'a Interpreter,
    pub(crate) tool: &'a Tool,
    pub(crate) offline: bool,
    pub(crate) teller: &'a Teller,
}

impl Making<'_> {
    /// Makes it. Whatever a build that was broken off left behind is removed first, and what a failed
    /// one leaves afterwards. The caller holds the lock.
    pub(crate) async fn make(&self) -> Result<Environment, NotMade> {
        let name = self.recipe.name(self.python);
        self.store.clear(&name).await?;
        let dir = self.store.dir(&name);
        let made = match self.steps(&dir, &self.store.work(&name)).await {
            Ok(prefixes) => self.finish(&name, &dir, prefixes).await.map_err(NotMade::from),
            Err(not_made) => Err(not_made),
        };
        if made.is_err()
            && let Err(error) = self.store.clear(&name).await
        {
            tracing::warn!(%error, "what a failed build left was not removed");
        }
        made
    }

    /// Takes from what was made what nobody else must get, and declares it whole.
    async fn finish(
        &self,
        name: &str,
        dir: &Path,
        prefixes: Vec<PathBuf>,
    ) -> Result<Environment, ImageError> {
        self.store.clear_work(name).await?;
        let folder = dir.to_owned();
        tokio::task::spawn_blocking(move || settle::settle(&folder))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(ImageError::files("settling", dir))?;
        let marker = Marker {
            format: FORMAT,
            recipe: self.recipe.clone(),
            python: self.python.version,
            base_prefix: self.python.base_prefix.clone(),
            made_by: self.tool.name().to_owned(),
            prefixes: Some(prefixes),
        };
        self.store.complete(name, marker).await
    }

    /// All steps; answers with where the environment's Python leads.
    async fn steps(&self, dir: &Path, work: &Path) -> Result<Vec<PathBuf>, NotMade> {
        let what = self.recipe.words(self.python.version);
        let doing = format!("making an environment with {what}");
        self.refuse_addresses()?;
        self.tell(Step::Making, 0, format!("{doing}, by {}", self.tool.name()));
        for folder in [dir, work] {
            let made = tokio::fs::create_dir_all(folder).await;
            made.map_err(ImageError::files("making", folder))?;
        }
        let room = Room::open(self.ground, (self.python, self.tool), dir, work);
        for run in self.tool.make(self.python, dir, self.offline) {
            self.run(run, &room, &doing, |_| None).await?;
        }
        // From here on others may have laid links.
        let prefixes = compose::prefixes(&dir.join("bin/python"));
        if let Some(name) = self.recipe.stands_for() {
            self.stand_in(dir, name).await?;
        }
        let lines = self.recipe.lines();
        if !lines.is_empty() {
            let notes = dir.join(NOTES);
            tokio::fs::create_dir_all(&notes).await.map_err(ImageError::files("making", &notes))?;
            let asked = self.note(&notes.join("requirements.txt"), &lines).await?;
            let limits =
                self.note(&notes.join("constraints.txt"), &self.recipe.constraints()).await?;
            let extra = self.note(&notes.join("extra.txt"), &self.recipe.requirements).await?;
            self.resolve(dir, &room, (&asked, &extra), &limits).await?;
            let words = format!("installing and compiling {}", lines.join(", "));
            self.tell(Step::Installing, gauge::RESOLVING, words);
            let how = (self.offline, self.sources());
            let run = self.tool.install(dir, (&asked, &limits), how, !self.runs_nothing());
            let mut gauge = Gauge::default();
            let doing = format!("installing {}", lines.join(", "));
            self.run(run, &room, &doing, move |line| gauge.hear(line)).await?;
            if let Some(run) = self.tool.compile(dir).filter(|_| self.runs_nothing()) {
                // Packages hold files for other Pythons, which cannot be compiled.
                room.run(run, &mut |_| ()).await?;
            }
        }
        self.check(dir, work).await?;
        Ok(prefixes)
    }

    /// Which packages may be built.
    fn sources(&self) -> Sources {
        match self.ground {
            Ground::Machine => Sources::None,
            Ground::Sandbox(_) if self.recipe.sources => Sources::All,
            Ground::Sandbox(_) => match releases::without_wheels(&self.recipe.version) {
                names if self.recipe.is_tensorflow() && !names.is_empty() => Sources::Named(names),
                _ => Sources::None,
            },
        }
    }

    /// Whether nothing of what is installed may run: somebody asked for it, and there is no sandbox.
    fn runs_nothing(&self) -> bool {
        matches!(self.ground, Ground::Machine) && !self.recipe.requirements.is_empty()
    }

    /// An installer builds what it finds at an address, whatever else it is told.
    fn refuse_addresses(&self) -> Result<(), ImageError> {
        let mut lines = self.recipe.requirements.iter();
        match lines.find(|line| self.runs_nothing() && requirements::is_address(line)) {
            Some(line) => Err(ImageError::Requirement {
                line: line.clone(),
                why: "it names an address, and there is no sandbox here in which what lies there could be \
                      built"
                    .to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Finds out whether the packages that are wanted beside the main one can be had, before that one,
    /// which is large, is fetched.
    async fn resolve(
        &self,
        dir: &Path,
        room: &Room<'_>,
        (all, extra): (&Path, &Path),
        limits: &Path,
    ) -> Result<(), NotMade> {
        // Those who bring old Pythons bring a pip that cannot try.
        let can_try = *self.tool != Tool::Pip || self.python.version.minor >= 9;
        if self.recipe.requirements.is_empty() || !can_try {
            return Ok(());
        }
        let packages = self.recipe.requirements.join(", ");
        self.tell(Step::Installing, gauge::RESOLVING, format!("looking for {packages}"));
        let run = self.tool.resolve(dir, (all, extra), limits, (self.offline, self.sources()));
        let outcome = room.run(run, &mut |_| ()).await?;
        if outcome.is_good() {
            return Ok(());
        }
        let doing = format!("looking for {packages}");
        let said = outcome.all();
        match self.classify(&outcome) {
            // A pip that is too old to try; the installation will tell.
            _ if said.contains("no such option") => Ok(()),
            Failure::Other => {
                let alone = Recipe { requirements: Vec::new(), ..self.recipe.clone() };
                let beside = alone.words(self.python.version);
                let (said, only_wheels) = (outcome.last_words(), self.sources() != Sources::All);
                let error = ImageError::Unresolvable { packages, beside, said, only_wheels };
                Err(NotMade { kind: Failure::Other, error })
            }
            kind => Err(self.not_made(kind, &doing, &outcome)),
        }
    }

    /// Imports what was installed, as programs in containers will: they can change nothing of it.
    async fn check(&self, dir: &Path, work: &Path) -> Result<(), NotMade> {
        // From 2.16 on Keras is a package of its own, loaded when first touched.
        let (what, flags, script) = if self.runs_nothing() {
            ("starting Python", "-IS", "import ssl, sys; print(sys.version)")
        } else if self.recipe.is_tensorflow() {
            (
                "importing tensorflow",
                "-I",
                "import pip, tensorflow as tf; tf.keras.layers; print(tf.__version__)",
            )
        } else {
            ("starting Python", "-I", "import pip, ssl, sys; print(sys.version)")
        };
        let words = format!("checking the environment by {what}");
        self.tell(Step::Checking, gauge::CHECKING, words);
        let run = Invocation::new(dir.join("bin/python"), CHECKING)
            .args([flags, "-c", script])
            .env("CUDA_VISIBLE_DEVICES", "-1")
            .env("TF_CPP_MIN_LOG_LEVEL", "2");
        let room = Room::to_look(self.ground, self.python, dir, work);
        let outcome = room.run(run, &mut |_| ()).await?;
        if outcome.is_good() {
            return Ok(());
        }
        let doing = format!("checking the new environment by {what}");
        Err(self.not_made(Failure::Other, &doing, &outcome))
    }

    async fn run(
        &self,
        run: Invocation,
        room: &Room<'_>,
        doing: &str,
        mut hear: impl FnMut(&str) -> Option<Progress> + Send,
    ) -> Result<(), NotMade> {
        let teller = self.teller.clone();
        let mut tell = move |line: &str| {
            if let Some(progress) = hear(line) {
                teller.tell(progress);
            }
        };
        let outcome = room.run(run, &mut tell).await?;
        if outcome.is_good() {
            return Ok(());
        }
        Err(self.not_made(self.classify(&outcome), doing, &outcome))
    }

    fn classify(&self, outcome: &Outcome) -> Failure {
        match classify(&outcome.all(), &self.recipe.package) {
            // Another Python would not help.
            Failure::NoRelease if !self.recipe.is_tensorflow() => Failure::Other,
            kind => kind,
        }
    }

    fn not_made(&self, kind: Failure, doing: &str, outcome: &Outcome) -> NotMade {
        let mut error = failed(doing, self.tool.name(), kind, outcome, self.store.root());
        if let ImageError::Failed { said, .. } = &mut error
            && self.sources() != Sources::All
            && lacks_a_wheel(&outcome.all())
        {
            said.push_str(ONLY_WHEELS);
        }
        NotMade { kind, error }
    }

    /// Lists the package under the name by which others depend on it. Without that, installing one of
    /// them (here, or by a program in a container) would put the full wheel over the CPU one.
    async fn stand_in(&self, dir: &Path, name: &str) -> Result<(), ImageError> {
        let Recipe { package, version, .. } = self.recipe;
        let minor = self.python.version.minor;
        let folder = format!("{name}-{version}.dist-info");
        let info = dir.join(format!("lib/python3.{minor}/site-packages")).join(&folder);
        tokio::fs::create_dir_all(&info).await.map_err(ImageError::files("making", &info))?;
        let metadata = format!(
            "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: Stands for {package}, which \
             holds the same modules\nRequires-Dist: {package}=={version}\n"
        );
        let record = format!("{folder}/METADATA,,\n{folder}/INSTALLER,,\n{folder}/RECORD,,\n");
        for (file, text) in
            [("METADATA", metadata), ("INSTALLER", "trainyard\n".to_owned()), ("RECORD", record)]
        {
            let path = info.join(file);
            tokio::fs::write(&path, text).await.map_err(ImageError::files("writing", &path))?;
        }
        Ok(())
    }

    async fn note(&self, path: &Path, lines: &[String]) -> Result<PathBuf, ImageError> {
        let text = lines.join("\n") + "\n";
        tokio::fs::write(path, text).await.map_err(ImageError::files("writing", path))?;
        Ok(path.to_owned())
    }

    fn tell(&self, step: Step, percent: u8, words: String) {
        self.teller.tell(Progress::new(step, words).at(percent));
    }
}

/// Whether an installer looked for a wheel in vain.
fn lacks_a_wheel(said: &str) -> bool {
    ["No matching distribution found", "no usable wheels"].iter().any(|words| said.contains(words))
}

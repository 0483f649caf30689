//! What programs that make an environment see of the machine, and what they are told. Starts them there.

use std::path::{Path, PathBuf};

use crate::command::{Invocation, Outcome, Place};
use crate::compose;
use crate::error::ImageError;
use crate::ground::{Ground, Server};
use crate::image::{View, ViewMode};
use crate::interpreters::Interpreter;
use crate::system;
use crate::tools::Tool;
use crate::variables::{self, Given};

/// A home inside that belongs to the sandbox.
const HOME: &str = "/root";

/// Where programs run, with what they see there.
pub(crate) struct Room<'a> {
    ground: &'a Ground,
    root: Vec<View>,
    variables: Vec<(String, String)>,
    /// None: the index is not asked.
    servers: Option<Vec<Server>>,
    cwd: PathBuf,
}

impl<'a> Room<'a> {
    /// For making an environment in `dir`: it, and what is needed on the way in `work`, can be written; the
    /// package index can be asked as the administrator says.
    pub(crate) fn open(
        ground: &'a Ground,
        (python, tool): (&Interpreter, &Tool),
        dir: &Path,
        work: &Path,
    ) -> Self {
        let given = Given::here();
        let mut root = seen(python, dir);
        if let Tool::Uv(uv) = tool {
            root.extend(view(uv, ViewMode::ReadOnly).filter(|_| !system::is_shown(uv)));
        }
        let files = given.files.iter().filter(|file| !system::shows(file));
        root.extend(files.filter_map(|file| view(file, ViewMode::ReadOnly)));
        root.extend([dir, work].iter().filter_map(|folder| view(folder, ViewMode::Writable)));
        let variables = [variables::plain(work), given.variables].concat();
        Self { ground, root, variables, servers: Some(given.servers), cwd: work.to_owned() }
    }

    /// For looking at what was made: it cannot be changed, and nothing is said of indexes.
    pub(crate) fn to_look(
        ground: &'a Ground,
        python: &Interpreter,
        dir: &Path,
        work: &Path,
    ) -> Self {
        let mut root = seen(python, dir);
        root.extend(view(dir, ViewMode::ReadOnly));
        let home = match ground {
            Ground::Sandbox(_) => Path::new(HOME),
            Ground::Machine => work,
        };
        let (variables, servers) = (variables::plain(home), None);
        Self { ground, root, variables, servers, cwd: home.to_owned() }
    }

    /// Runs a program to its end.
    pub(crate) async fn run(
        &self,
        run: Invocation,
        tell: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Outcome, ImageError> {
        let program = run.program().to_owned();
        let place = match self.ground {
            Ground::Machine => Place::Machine,
            Ground::Sandbox(sandbox) => {
                Place::Inside(&**sandbox, &self.root, self.servers.as_deref())
            }
        };
        let run = run.at(&self.cwd).envs(&self.variables);
        run.run(place, tell).await.map_err(ImageError::files("starting", program))
    }
}

/// The system and the Python that an environment is made from.
fn seen(python: &Interpreter, dir: &Path) -> Vec<View> {
    let mut led = compose::prefixes(&python.executable);
    led.extend(python.executable.parent().and_then(Path::parent).map(Path::to_owned));
    let mut root = vec![View::System];
    root.extend(compose::python_views(Some(&python.base_prefix), &led, dir));
    root
}

/// A file or folder at its own place, if it is there.
fn view(path: &Path, mode: ViewMode) -> Option<View> {
    let source = path.canonicalize().ok()?;
    Some(View::Directory { source, target: path.to_owned(), mode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreters::tests::interpreter;

    fn writable(room: &Room<'_>) -> Vec<PathBuf> {
        let views = room.root.iter().filter_map(|view| match view {
            View::Directory { target, mode: ViewMode::Writable, .. } => Some(target.clone()),
            _ => None,
        });
        views.collect()
    }

    #[test]
    fn only_the_environment_and_its_work_are_written_and_only_while_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, work) = (folder.path().join("env"), folder.path().join("work"));
        for folder in [&dir, &work] {
            std::fs::create_dir(folder).unwrap();
        }
        let python = interpreter(11, 0);
        let ground = Ground::Machine;
        let room = Room::open(&ground, (&python, &Tool::Pip), &dir, &work);
        assert_eq!(writable(&room), [dir.clone(), work.clone()]);
        let room = Room::to_look(&ground, &python, &dir, &work);
        assert_eq!(writable(&room), Vec::<PathBuf>::new());
        assert_eq!(room.servers, None);
        assert!(!room.variables.iter().any(|(name, _)| name == "PIP_INDEX_URL"));
    }
}

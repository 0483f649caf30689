//! The image of the small programs that tests' pods run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::archive::{Archive, Settings};
use super::program::{SEARCH_PATH, add_libraries};
use super::{BUSYBOX, folder, in_background};
use crate::packages;

const PACKAGE: [(&str, &str); 1] = [("busybox", "busybox")];

pub(super) async fn archive() -> Result<PathBuf> {
    packages::install(&PACKAGE).await?;
    in_background(make).await
}

fn make() -> Result<PathBuf> {
    let program = ["/usr/bin/busybox", "/bin/busybox"].map(Path::new);
    let program = program.into_iter().find(|path| path.is_file());
    let program = program.context("there is no busybox: install the package of that name")?;
    let list = std::process::Command::new(program).arg("--list").output()?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let applets: BTreeSet<_> = list.split_whitespace().filter(|name| *name != "busybox").collect();
    ensure!(applets.contains("sh"), "{} lists no shell", program.display());
    let path = folder()?.join("busybox.tar");
    let mut archive = Archive::create(&path)?;
    archive.folder("tmp", 0o1777)?;
    for name in ["dev", "proc", "root", "sys", "var", "www"] {
        archive.folder(name, 0o755)?;
    }
    archive.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")?;
    archive.text("etc/group", "root:x:0:\n")?;
    archive.text("etc/nsswitch.conf", "hosts: files dns\n")?;
    archive.file("bin/busybox", program)?;
    for applet in applets {
        archive.link(&format!("bin/{applet}"), "busybox")?;
    }
    add_libraries(&mut archive, program)?;
    let settings = Settings {
        command: vec!["sh".to_owned()],
        environment: vec![SEARCH_PATH.to_owned()],
        ..Settings::default()
    };
    archive.finish(BUSYBOX, &settings)?;
    Ok(path)
}

//! The archive of an image with one layer, as Docker saves it. Knows the format, not what is in the layer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::full_name;
use super::tar::{BLOCK, Kind, header, padding};

/// The layer's name in the archive.
const LAYER: &str = "layer.tar";
/// Images of equal content are equal.
const CREATED: &str = "2026-01-01T00:00:00Z";

/// How containers of an image start.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) entrypoint: Vec<String>,
    pub(super) command: Vec<String>,
    pub(super) environment: Vec<String>,
    pub(super) user: String,
}

/// An archive that is being written; it takes its place when it is finished.
pub(super) struct Archive {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    digest: Sha256,
    /// The layer's size so far.
    size: u64,
    folders: BTreeSet<String>,
}

impl Archive {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let folder = path.parent().unwrap_or(path);
        let file = NamedTempFile::new_in(folder)
            .with_context(|| format!("cannot write in {}", folder.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        // The layer's header is written when its size is known.
        file.write_all(&[0; BLOCK])?;
        let (digest, folders) = (Sha256::new(), BTreeSet::new());
        Ok(Self { path: path.to_owned(), file, digest, size: 0, folders })
    }

    /// A file of the machine, with its mode, and the folders above it.
    pub(super) fn file(&mut self, path: &str, source: &Path) -> Result<()> {
        let read = || format!("cannot read {}", source.display());
        let mut file = File::open(source).with_context(read)?;
        let metadata = file.metadata().with_context(read)?;
        let mode = metadata.permissions().mode() & 0o755;
        self.entry(path, Kind::File, mode, metadata.len())?;
        self.copy(&mut file).with_context(read)?;
        self.pad(metadata.len())
    }

    /// A file with this text.
    pub(super) fn text(&mut self, path: &str, text: &str) -> Result<()> {
        self.entry(path, Kind::File, 0o644, text.len() as u64)?;
        self.write(text.as_bytes())?;
        self.pad(text.len() as u64)
    }

    pub(super) fn link(&mut self, path: &str, target: &str) -> Result<()> {
        self.entry(path, Kind::Link(target), 0o777, 0)
    }

    pub(super) fn folder(&mut self, path: &str, mode: u32) -> Result<()> {
        if self.folders.insert(path.to_owned()) {
            self.entry(&format!("{path}/"), Kind::Folder, mode, 0)?;
        }
        Ok(())
    }

    /// A whole layer that another program makes, without its end.
    pub(super) fn layer(&mut self, mut source: impl Read) -> Result<()> {
        self.copy(&mut source).map(drop).context("cannot copy the layer")
    }

    fn entry(&mut self, path: &str, kind: Kind<'_>, mode: u32, size: u64) -> Result<()> {
        let above = path.trim_end_matches('/').rsplit_once('/');
        if let Some((parent, _)) = above {
            self.folder(parent, 0o755)?;
        }
        let header = header(path, kind, mode, size)?;
        Ok(self.write(&header)?)
    }

    fn pad(&mut self, size: u64) -> Result<()> {
        Ok(self.write(&[0; BLOCK][..padding(size)])?)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.size += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn copy(&mut self, source: &mut impl Read) -> io::Result<u64> {
        let mut buffer = vec![0; 1 << 20];
        let mut total = 0;
        loop {
            let length = source.read(&mut buffer)?;
            if length == 0 {
                return Ok(total);
            }
            self.write(&buffer[..length])?;
            total += length as u64;
        }
    }

    /// Ends the layer and puts the archive in its place, as an image of this name.
    pub(super) fn finish(mut self, name: &str, settings: &Settings) -> Result<()> {
        // Two empty blocks end an archive; a layer that another program made has its own already.
        self.write(&[0; 2 * BLOCK])?;
        let size = self.size;
        let digest = hex(&self.digest.finalize_reset());
        let configuration = json!({
            "architecture": architecture(),
            "os": "linux",
            "created": CREATED,
            "config": {
                "Entrypoint": settings.entrypoint,
                "Cmd": settings.command,
                "Env": settings.environment,
                "User": settings.user,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
            "history": [{"created": CREATED}],
        });
        let configuration = configuration.to_string();
        let configuration_name = format!("{}.json", hex(&Sha256::digest(&configuration)));
        let manifest = json!([{
            "Config": configuration_name, "RepoTags": [full_name(name)], "Layers": [LAYER],
        }]);
        self.file.write_all(&[0; BLOCK][..padding(size)])?;
        for (name, text) in
            [(&*configuration_name, configuration), ("manifest.json", manifest.to_string())]
        {
            let size = text.len() as u64;
            self.file.write_all(&header(name, Kind::File, 0o644, size)?)?;
            self.file.write_all(text.as_bytes())?;
            self.file.write_all(&[0; BLOCK][..padding(size)])?;
        }
        self.file.write_all(&[0; 2 * BLOCK])?;
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file_mut().seek(SeekFrom::Start(0))?;
        file.write_all(&header(LAYER, Kind::File, 0o644, size)?)?;
        file.persist(&self.path)
            .with_context(|| format!("cannot put {} in place", self.path.display()))?;
        Ok(())
    }
}

/// The machine's architecture in the words of container tools.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn tar(words: &[&str], archive: &Path) -> String {
        let output = Command::new("tar").args(words).arg(archive).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn an_archive_is_read_by_other_programs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image.tar");
        let mut archive = Archive::create(&path).unwrap();
        archive.folder("tmp", 0o1777).unwrap();
        archive.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n").unwrap();
        archive.link("bin/sh", "busybox").unwrap();
        archive.file("bin/true", Path::new("/bin/true")).unwrap();
        archive
            .finish("local/x:1", &Settings { user: "1:2".into(), ..Settings::default() })
            .unwrap();
        let outer = tar(&["-tf"], &path);
        assert!(outer.starts_with("layer.tar\n") && outer.ends_with("manifest.json\n"), "{outer}");
        let layer = dir.path().join("layer.tar");
        tar(&["-C", dir.path().to_str().unwrap(), "-xf"], &path);
        let listed = tar(&["--numeric-owner", "-tvf"], &layer);
        let modes: Vec<_> = listed.lines().map(|line| &line[..10]).collect();
        assert_eq!(
            modes,
            ["drwxrwxrwt", "drwxr-xr-x", "-rw-r--r--", "drwxr-xr-x", "lrwxrwxrwx", "-rwxr-xr-x"],
            "{listed}"
        );
        let manifest = fs::read_to_string(dir.path().join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest[0]["RepoTags"][0], "docker.io/local/x:1");
        let name = manifest[0]["Config"].as_str().unwrap();
        let text = fs::read_to_string(dir.path().join(name)).unwrap();
        let configuration: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = format!("sha256:{}", hex(&Sha256::digest(fs::read(&layer).unwrap())));
        assert_eq!(configuration["rootfs"]["diff_ids"][0], expected);
        assert_eq!(configuration["config"]["User"], "1:2");
    }
}

//! The notice at a yard's door: who runs it, and where it is.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::yard::folder::Folder;

/// Who runs a yard, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Notice {
    pub(super) pid: u32,
    pub(in crate::commands) url: String,
}

impl Notice {
    /// Puts it up.
    pub(super) fn write(&self, folder: &Folder) -> Result<(), Failure> {
        let text = json!({"pid": self.pid, "url": self.url, "running": true}).to_string();
        put(folder, &text).map_err(|error| Failure::other("writing the yard's notice", &error))
    }

    /// Reads it; `None` when no yard runs here.
    pub(in crate::commands) fn read(folder: &Folder) -> Option<Self> {
        let value = value(folder)?;
        if value["running"] != true {
            return None;
        }
        let pid = u32::try_from(value["pid"].as_u64()?).ok()?;
        Some(Self { pid, url: value["url"].as_str()?.to_owned() })
    }

    /// Says that nobody runs it any more; where it was is kept, so that it comes back there.
    pub(super) fn remove(folder: &Folder) {
        if let Some(mut value) = value(folder) {
            value["running"] = json!(false);
            let _ = put(folder, &value.to_string());
        }
    }

    /// The port of last time.
    pub(super) fn read_port(folder: &Folder) -> Option<u16> {
        value(folder)?["url"].as_str()?.rsplit_once(':')?.1.parse().ok()
    }
}

fn value(folder: &Folder) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(folder.notice()).ok()?).ok()
}

fn put(folder: &Folder, text: &str) -> std::io::Result<()> {
    // No secret, but written as one: nothing that others have put there is followed.
    trainyard_apiserver::write_secret(&folder.notice(), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_was_is_remembered() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        assert_eq!(Notice::read(&folder), None);
        let notice = Notice { pid: 7, url: "https://127.0.0.1:7001".into() };
        notice.write(&folder).unwrap();
        assert_eq!(Notice::read(&folder), Some(notice));
        Notice::remove(&folder);
        assert_eq!(Notice::read(&folder), None);
        assert_eq!(Notice::read_port(&folder), Some(7001));
    }
}

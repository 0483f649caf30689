//! Volumes and `subPath` under attack: a pod that exchanges a folder for a link out of its volume, without
//! pause, while other containers mount that folder.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use trainyard_holder::protocol::{Mount, Reach, RefusalKind};

use crate::bed::{Bed, NOBODY, Who, as_each, volume_at};

/// Mounts that are tried.
const MOUNTS: usize = 1000;

/// Exchanges two names by `renameat2`, for which no program of every Debian has an option.
const EXCHANGE: &str = r#"
    my $call = `uname -m` =~ /aarch64/ ? 276 : 316;
    my ($a, $b) = ("/volume/a", "/volume/b");
    $| = 1; print "up\n";
    while (1) { syscall($call, -100, $a, -100, $b, 2) == 0 or die "$!" }
"#;

/// A part of a volume, or what one is that a pod can reach by another: a `hostPath` in a `hostPath`.
fn sub_path(volume: &Path, path: &str, read_only: bool) -> Mount {
    Mount::Volume {
        name: "v".to_owned(),
        place: volume.to_owned(),
        part: path.into(),
        target: "/part".into(),
        read_only,
    }
}

// Where the holder opened the checked path again by its name, some of these mounts were the folder
// outside, readable and writable, as root and as an ordinary user: of a subPath and of a whole volume.
#[test]
fn a_pod_that_exchanges_a_folder_for_a_link_gets_nothing_outside_its_volume() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let (volume, outside) = (bed.make("volume"), bed.make("outside"));
        fs::set_permissions(&outside, PermissionsExt::from_mode(0o700)).unwrap();
        fs::write(outside.join("secret"), "of the host\n").unwrap();
        let inner = bed.make("volume/a");
        fs::write(inner.join("inner"), "of the volume\n").unwrap();
        symlink(&outside, volume.join("b")).unwrap();
        if who == Who::Nobody {
            std::os::unix::fs::chown(outside.join("secret"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        bed.add("attacker", 1);
        let mut attacker = bed.container("attacker", "exchange", "");
        attacker.argv = ["perl", "-e", EXCHANGE].map(str::to_owned).to_vec();
        attacker.mounts.push(Mount::Bind {
            source: volume.clone(),
            target: "/volume".into(),
            read_only: false,
        });
        let mut exchange = bed.start(attacker).unwrap();
        assert_eq!(exchange.line(), "up", "the attack does not run");

        bed.add("victim", 2);
        let mut mounted = [0; 2];
        for number in 0..MOUNTS {
            let script = "cat /part/*; echo planted >/part/planted";
            let mut spec = bed.container("victim", &format!("c{number}"), script);
            let (kind, mount) = match number % 2 {
                0 => (RefusalKind::Part, sub_path(&volume, "a", false)),
                _ => (RefusalKind::Mount, volume_at(&inner, "/part")),
            };
            spec.mounts.push(mount);
            let output = match bed.start(spec) {
                Ok(output) => output,
                Err(refused) => {
                    assert_eq!(refused.kind, kind, "{refused}");
                    continue;
                }
            };
            let text = output.text();
            assert!(!text.contains("of the host"), "mount {number} read what is outside");
            assert!(!outside.join("planted").exists(), "mount {number} wrote outside");
            mounted[number % 2] += usize::from(text.contains("of the volume"));
            bed.ending(&format!("c{number}"));
        }
        assert!(mounted.iter().all(|made| *made > MOUNTS / 40), "mounts made: {mounted:?}");
        bed.signal("exchange", 9, Reach::All);
        bed.ending("exchange");
    });
}

#[test]
fn a_sub_path_is_a_file_or_folder_of_the_volume_or_refused() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let volume = bed.make("volume");
        bed.make("volume/data/deep");
        bed.make("outside");
        fs::set_permissions(&volume, PermissionsExt::from_mode(0o1775)).unwrap();
        fs::write(volume.join("data/file"), "content\n").unwrap();
        symlink("data", volume.join("link")).unwrap();
        symlink("../outside", volume.join("out")).unwrap();
        bed.add("p", 1);
        for (number, (path, script, expected)) in [
            ("data", "cat /part/file", "content\n"),
            ("link/file", "cat /part", "content\n"),
            ("data/deep", "touch /part/new; ls /part", "new\n"),
            ("made/for/it", "stat -c %a /part", "1775\n"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut spec = bed.container("p", &format!("c{number}"), script);
            spec.mounts.push(sub_path(&volume, path, false));
            assert_eq!(bed.run(spec).0, expected, "{path}");
        }
        let mut spec = bed.container("p", "closed", "touch /part/no");
        spec.mounts.push(sub_path(&volume, "data", true));
        assert!(bed.run(spec).0.contains("Read-only file system"));
        for (number, path) in ["out", "../outside", "/etc", "out/new"].into_iter().enumerate() {
            let mut spec = bed.container("p", &format!("r{number}"), "true");
            spec.mounts.push(sub_path(&volume, path, false));
            let refused = bed.start(spec).err().unwrap();
            assert_eq!(refused.kind, RefusalKind::Part, "{path}: {refused}");
            assert!(!bed.folder.join("outside/new").exists(), "{path}");
            // It says nothing about the host.
            assert!(!refused.to_string().contains("outside"), "{refused}");
        }
    });
}

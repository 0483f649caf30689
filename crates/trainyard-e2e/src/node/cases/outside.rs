//! Another machine, for cases about the way to other machines: a network namespace at the end of a link of
//! this machine's own, with a server in it. Needs root. Knows no case.

use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

fn run(words: &str) -> Result<()> {
    let mut parts = words.split(' ');
    let mut command = Command::new(parts.next().unwrap_or_default());
    let output = command.args(parts).output().with_context(|| format!("running {words}"))?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{words}: {error}");
    Ok(())
}

/// A machine beside this one, at the other end of a link. Gone when dropped.
pub(super) struct Outside {
    /// This machine's own address on the link.
    pub(super) ours: String,
    /// The other machine's.
    pub(super) theirs: String,
    link: String,
    machine: Child,
    server: Option<Child>,
}

/// Tells whoever asks by which address it came; takes and gives a lot for the asking.
const SERVER: &str = "
import socket, threading
PORT = 7000
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('', PORT))
t = socket.create_server(('', PORT), backlog=64)
def datagrams():
    while True:
        data, peer = u.recvfrom(65536)
        u.sendto(data + b' ' + peer[0].encode(), peer)
def stream(c, peer):
    try:
        serve(c.makefile('rwb'), peer)
    except OSError:
        pass # Agents are killed, and connections with them.
def serve(f, peer):
    for line in f:
        word, _, count = line.decode().strip().partition(' ')
        if word == 'take':
            f.write(b'x' * int(count))
        elif word == 'give':
            f.write(b'got %d\\n' % len(f.read(int(count))))
        else:
            f.write(line.strip() + b' ' + peer[0].encode() + b'\\n')
        f.flush()
threading.Thread(target=datagrams, daemon=True).start()
print('listens', flush=True)
while True:
    c, peer = t.accept()
    threading.Thread(target=stream, args=(c, peer), daemon=True).start()
";

impl Outside {
    pub(super) fn open() -> Result<Self> {
        // No two runs of these cases on a machine have the same.
        let number = std::process::id();
        let at = |last: u32| format!("198.18.{}.{}", number / 63 % 256, number % 63 * 4 + last);
        let mut machine = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo up; exec sleep 1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("making a network namespace")?;
        first_line(&mut machine)?;
        let link = format!("tyo{number}");
        let pid = machine.id();
        let mut outside =
            Self { ours: at(1), theirs: at(2), link: link.clone(), machine, server: None };
        run(&format!("ip link add {link} type veth peer name eth0 netns {pid}"))?;
        run(&format!("ip address add {}/30 dev {link}", outside.ours))?;
        run(&format!("ip link set {link} up"))?;
        let inside = format!("nsenter --target {pid} --net");
        run(&format!("{inside} ip address add {}/30 dev eth0", outside.theirs))?;
        run(&format!("{inside} ip link set eth0 up"))?;
        let mut server = Command::new("nsenter")
            .args(["--target", &pid.to_string(), "--net", "python3", "-c", SERVER])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a server outside")?;
        first_line(&mut server)?;
        outside.server = Some(server);
        Ok(outside)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = run(&format!("ip link delete {}", self.link));
        for child in self.server.iter_mut().chain([&mut self.machine]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn first_line(child: &mut Child) -> Result<()> {
    use std::io::BufRead as _;
    let output = child.stdout.take().context("it has no output")?;
    let mut line = String::new();
    std::io::BufReader::new(output).read_line(&mut line)?;
    ensure!(!line.is_empty(), "a program of the case ended at once");
    Ok(())
}

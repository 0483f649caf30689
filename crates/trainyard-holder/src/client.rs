//! The agent's side: starts a holder, asks it, hears it, and knows when it is gone.
//!
//! Owns the socket, the numbers of calls and the child process. Plain threads; must not know how a
//! holder does what it is asked.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::protocol::{Answer, Call, Event, Message, Refusal, RefusalKind, Request};
use crate::wire;

mod levels;

pub use levels::{Level, Levels, levels};

/// What a call comes to: the answer with the descriptors it carries, or a refusal.
pub type Outcome = Result<(Answer, Vec<OwnedFd>), Refusal>;

type OnAnswer = Box<dyn FnOnce(Outcome) + Send>;

/// Calls that wait for their answer; none any more once the holder is gone.
type Pending = Mutex<Option<HashMap<u64, OnAnswer>>>;

/// A running holder. Clones share it; it is told to end when the last one is dropped, or by
/// [`Holder::end`].
#[derive(Clone)]
pub struct Holder {
    inner: Arc<Inner>,
}

struct Inner {
    socket: UnixStream,
    sending: Mutex<()>,
    pending: Arc<Pending>,
    next: AtomicU64,
    pid: u32,
    reader: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holder").field("pid", &self.inner.pid).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gone() -> Refusal {
    Refusal {
        step: "asking the holder".to_owned(),
        reason: "it has ended".to_owned(),
        kind: RefusalKind::Machine,
    }
}

impl Holder {
    /// Starts `command`, which must come to [`crate::main`]; its standard input is the socket.
    ///
    /// `on_event` and the answers of calls run on one thread of this holder's own, in the order in
    /// which the holder spoke; they must not wait for one another. `on_end` comes last, when the
    /// holder is gone and its child process has been waited for.
    pub fn spawn(
        mut command: Command,
        on_event: impl Fn(Event) + Send + 'static,
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let listening = socket.try_clone()?;
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        let child = command.spawn()?;
        // The command holds the other end of the socket; as long as it does, no end is seen.
        drop(command);
        let pid = child.id();
        let pending: Arc<Pending> = Arc::new(Mutex::new(Some(HashMap::new())));
        let reader = std::thread::Builder::new().name("holder".to_owned()).spawn({
            let pending = Arc::clone(&pending);
            move || {
                listen(&listening, &pending, &on_event);
                finish(&listening, &pending, child);
                on_end();
            }
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                socket,
                sending: Mutex::new(()),
                pending,
                next: AtomicU64::new(1),
                pid,
                reader: Mutex::new(Some(reader)),
            }),
        })
    }

    /// Asks something; the descriptors are closed here once they are sent. `on_answer` runs once, on the holder's thread; at once and here when the
    /// holder is gone already.
    #[expect(clippy::needless_pass_by_value, reason = "closing the descriptors is the point")]
    pub fn call(
        &self,
        request: Request,
        descriptors: Vec<OwnedFd>,
        on_answer: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let inner = &self.inner;
        let id = inner.next.fetch_add(1, Ordering::Relaxed);
        match locked(&inner.pending).as_mut() {
            Some(pending) => drop(pending.insert(id, Box::new(on_answer))),
            None => return on_answer(Err(gone())),
        }
        let call = Call { id, request };
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        let sent = {
            let _one_at_a_time = locked(&inner.sending);
            wire::send(&inner.socket, &call, &borrowed)
        };
        if let Err(error) = sent {
            let waiting = locked(&inner.pending).as_mut().and_then(|pending| pending.remove(&id));
            if let Some(on_answer) = waiting {
                on_answer(Err(Refusal { reason: error.to_string(), ..gone() }));
            }
        }
    }

    /// As [`Holder::call`], waiting for the answer. Not for the holder's own thread.
    pub fn ask(&self, request: Request, descriptors: Vec<OwnedFd>) -> Outcome {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.call(request, descriptors, move |outcome| drop(sender.send(outcome)));
        receiver.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// The holder's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.inner.pid
    }

    /// Tells the holder to end everything, and waits until it has. Not for the holder's own thread.
    pub fn end(&self) {
        self.inner.close();
        if let Some(reader) = locked(&self.inner.reader).take() {
            // A panic on that thread has been reported there.
            drop(reader.join());
        }
    }
}

impl Inner {
    /// What the holder still has to say is heard until it closes its end.
    fn close(&self) {
        drop(self.socket.shutdown(Shutdown::Write));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

fn listen(socket: &UnixStream, pending: &Pending, on_event: &impl Fn(Event)) {
    while let Ok(Some(frame)) = wire::receive(socket) {
        match serde_json::from_slice(&frame.payload) {
            Ok(Message::Answer { id, result }) => {
                let waiting = locked(pending).as_mut().and_then(|pending| pending.remove(&id));
                if let Some(on_answer) = waiting {
                    on_answer(result.map(|answer| (answer, frame.descriptors)));
                }
            }
            Ok(Message::Event(event)) => on_event(event),
            // Both ends are the same program; what cannot be read ends the conversation.
            Err(_) => break,
        }
    }
}

fn finish(socket: &UnixStream, pending: &Pending, mut child: Child) {
    drop(socket.shutdown(Shutdown::Both));
    let waiting = locked(pending).take().unwrap_or_default();
    for on_answer in waiting.into_values() {
        on_answer(Err(gone()));
    }
    drop(child.wait());
}

//! The one who writes to disk: takes what waits, decides it, writes it at once, then shows it.
//!
//! Runs in a thread of its own. A write is visible and answered only when it is on disk, and so is
//! the refusal of one that met another not yet visible. Must not know the format on disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::change::{self, Change, Expect, Key, Write};
use super::disk::{Disk, WriteError};
use super::state::State;
use super::{CommitError, Shared};
use crate::object::Object;

/// How many writes may wait, and how many go to disk at once. More than are ever in flight.
const QUEUE: usize = 1024;
const BATCH: usize = 512;
/// A batch is closed when it has so many bytes.
const BATCH_BYTES: usize = 8 << 20;

type Answer<T> = oneshot::Sender<Result<T, CommitError>>;

enum Request {
    Commit(Wish, Answer<Object>),
    Drop(Arc<str>, Answer<()>),
    Close(Answer<()>),
}

struct Wish {
    key: Key,
    expect: Expect,
    change: Change,
}

/// The way to the writer.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Request>,
}

impl Writer {
    pub(super) fn start(shared: Arc<Shared>, disk: Disk) -> std::io::Result<Self> {
        let (queue, requests) = mpsc::channel(QUEUE);
        let work = Work { shared, disk, requests };
        thread::Builder::new().name("store-writer".to_owned()).spawn(|| work.run())?;
        Ok(Self { queue })
    }

    pub(super) async fn commit(
        &self,
        key: Key,
        expect: Expect,
        change: Change,
    ) -> Result<Object, CommitError> {
        self.ask(|answer| Request::Commit(Wish { key, expect, change }, answer)).await
    }

    pub(super) async fn drop_storage(&self, storage: &str) -> Result<(), CommitError> {
        self.ask(|answer| Request::Drop(storage.into(), answer)).await
    }

    pub(super) async fn close(&self) {
        // Closed already is as good.
        let _ = self.ask(Request::Close).await;
    }

    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, CommitError> {
        let (answer, answered) = oneshot::channel();
        let closed = || CommitError::Closed("its writer has ended".to_owned());
        self.queue.send(request(answer)).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

struct Work {
    shared: Arc<Shared>,
    disk: Disk,
    requests: mpsc::Receiver<Request>,
}

/// What was decided of several wishes, before any of it is done.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    answers: Vec<(Answer<Object>, Result<Object, CommitError>)>,
    /// What is there after the writes before, where it differs from what is visible.
    coming: HashMap<(Arc<str>, Arc<str>), Option<Object>>,
    grown: usize,
    bytes: usize,
}

impl Work {
    fn run(mut self) {
        while let Some(request) = self.requests.blocking_recv() {
            let mut next = Some(request);
            while let Some(request) = next.take() {
                match request {
                    Request::Commit(wish, answer) => next = self.commit(wish, answer),
                    Request::Drop(storage, answer) => {
                        // A caller that does not wait any more does not mind.
                        let _ = answer.send(self.drop_storage(&storage));
                    }
                    Request::Close(answer) => {
                        drop(self);
                        let _ = answer.send(Ok(()));
                        return;
                    }
                }
            }
        }
    }

    /// Commits a wish with all that wait behind it. Answers with the request that ended the batch,
    /// if it was of another sort.
    fn commit(&mut self, wish: Wish, answer: Answer<Object>) -> Option<Request> {
        let mut batch = Batch::default();
        let mut next = None;
        {
            let state = self.shared.read();
            batch.add(&state, wish, answer);
            while batch.writes.len() < BATCH && batch.bytes < BATCH_BYTES {
                match self.requests.try_recv() {
                    Ok(Request::Commit(wish, answer)) => batch.add(&state, wish, answer),
                    Ok(request) => {
                        next = Some(request);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
        let done = self.disk.write(&batch.writes).map_err(told);
        if done.is_ok() {
            self.shared.publish(batch.writes);
        }
        for (answer, result) in batch.answers {
            // A refusal may rest on a write that now did not come about; then all fail alike.
            let _ = answer.send(done.clone().and(result));
        }
        self.condense();
        next
    }

    fn drop_storage(&mut self, storage: &str) -> Result<(), CommitError> {
        let write = self.shared.read().decide_drop(storage);
        let Some(write) = write else { return Ok(()) };
        let writes = vec![write];
        self.disk.write(&writes).map_err(told)?;
        self.shared.publish(writes);
        Ok(())
    }

    /// Has the log shortened when it is time. Between two batches all that is on disk is visible.
    fn condense(&mut self) {
        let state = self.shared.read();
        if self.disk.is_outgrown(state.object_bytes() as u64) {
            let all = state.everything();
            drop(state);
            self.disk.condense(all);
        }
    }
}

impl Batch {
    fn add(&mut self, state: &State, wish: Wish, answer: Answer<Object>) {
        let result = self.decide(state, wish);
        self.answers.push((answer, result));
    }

    fn decide(&mut self, state: &State, wish: Wish) -> Result<Object, CommitError> {
        let Wish { key, expect, change } = wish;
        let section = state.section(&key.storage);
        let path = key.path();
        let path =
            section.and_then(|section| section.shared_path(&path)).unwrap_or_else(|| path.into());
        let place = (Arc::clone(&key.storage), Arc::clone(&path));
        let current = match self.coming.get(&place) {
            Some(coming) => coming.as_ref(),
            None => section.and_then(|section| section.get(&path)),
        };
        change::check(current, expect, &change)?;
        let grown = state.check_room(current, &change, self.grown)?;
        let bytes = change.len();
        let revision = state.revision() + 1 + self.writes.len() as u64;
        let event = change::event(current, path, change, revision);
        self.grown += grown;
        self.bytes += bytes;
        let object = Arc::clone(&event.object);
        self.coming.insert(place, (!event.deleted).then(|| Arc::clone(&object)));
        self.writes.push(Write::event(key.storage, event));
        Ok(object)
    }
}

fn told(error: WriteError) -> CommitError {
    match error {
        WriteError::Full(why) => CommitError::Full(why),
        WriteError::Broken(why) => CommitError::Closed(why),
    }
}

//! How much is let in at once: requests under way, watches, bytes of a body and the time it takes.
//!
//! Must not know what is asked.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;

/// The body of a request, from wherever it comes.
pub(crate) trait Incoming:
    Body<Data = Bytes, Error: std::fmt::Display> + Send + Unpin
{
}

impl<B: Body<Data = Bytes, Error: std::fmt::Display> + Send + Unpin> Incoming for B {}

/// Bounds that hold for all clients together.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Requests that are answered at once.
    pub in_flight: usize,
    /// Watches, logs and sessions open at the same time.
    pub long: usize,
    /// Bytes of a request's body.
    pub body: usize,
    /// How long a client may take to send the head of a request, or to begin it.
    pub head_time: Duration,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// Bytes of all bodies that are still being read or worked on.
    pub bodies: usize,
    /// How long a client may take no byte of what is sent to it.
    pub stall_time: Duration,
    /// Connections at once of those who have shown who they are; a quarter of it more for others.
    pub connections: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            in_flight: 400,
            long: 4_000,
            body: 3 * 1024 * 1024,
            head_time: Duration::from_secs(30),
            body_time: Duration::from_secs(30),
            bodies: 96 * 1024 * 1024,
            stall_time: Duration::from_secs(30),
            connections: 2_000,
        }
    }
}

/// Lets requests in within bounds.
pub(crate) struct Gate {
    bounds: Bounds,
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    /// Of all bodies, in units.
    room: Arc<Semaphore>,
}

/// Bytes for which there is room or not.
const UNIT: usize = 1024;

/// A body, with the room it takes until it is done with.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    pub(crate) _room: Option<OwnedSemaphorePermit>,
}

impl Gate {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            short: Arc::new(Semaphore::new(bounds.in_flight)),
            long: Arc::new(Semaphore::new(bounds.long)),
            room: Arc::new(Semaphore::new(bounds.bodies / UNIT)),
        }
    }

    pub(crate) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// A place for a request; refused at once when there is none.
    pub(crate) fn enter(&self, is_long: bool) -> Result<OwnedSemaphorePermit, Failure> {
        let places = if is_long { &self.long } else { &self.short };
        places.clone().try_acquire_owned().map_err(|_| too_many())
    }

    /// The whole body, within bounds.
    pub(crate) async fn body<B: Incoming>(&self, body: B) -> Result<Read, Failure> {
        let read = tokio::time::timeout(self.bounds.body_time, self.collect(body));
        read.await.unwrap_or_else(|_| {
            Err(Failure::new(408, "Timeout", "the body did not arrive in time: send it at once"))
        })
    }

    async fn collect<B: Incoming>(&self, mut body: B) -> Result<Read, Failure> {
        let most = self.bounds.body;
        let mut whole = BytesMut::new();
        let mut first = None;
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                Failure::bad_request(format!("the body could not be read: {error}"))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let length = whole.len() + first.as_ref().map_or(0, Bytes::len) + data.len();
            if length > most {
                return Err(Failure::new(
                    413,
                    "RequestEntityTooLarge",
                    format!("Request entity too large: limit is {most}"),
                ));
            }
            self.widen(&mut room, length)?;
            // Most bodies come in one piece, which then needs no copying.
            match (first.take(), whole.is_empty()) {
                (None, true) => first = Some(data),
                (Some(piece), _) => {
                    whole.extend_from_slice(&piece);
                    whole.extend_from_slice(&data);
                }
                (None, false) => whole.extend_from_slice(&data),
            }
        }
        Ok(Read { bytes: first.unwrap_or_else(|| whole.freeze()), _room: room })
    }

    /// Takes as much room as a body of this length needs.
    fn widen(&self, room: &mut Option<OwnedSemaphorePermit>, length: usize) -> Result<(), Failure> {
        let has = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = length.div_ceil(UNIT).saturating_sub(has);
        let Ok(more @ 1..) = u32::try_from(more) else { return Ok(()) };
        let permit = Arc::clone(&self.room).try_acquire_many_owned(more);
        let permit = permit.map_err(|_| too_many())?;
        match room {
            Some(room) => room.merge(permit),
            None => *room = Some(permit),
        }
        Ok(())
    }
}

/// There is no place at present.
pub(crate) fn too_many() -> Failure {
    let mut failure =
        Failure::new(429, "TooManyRequests", "too many requests, please try again later");
    failure.retry_after = Some(1);
    failure
}

//! The body of an answer: one text, a text made piece by piece, or a stream that goes on.
//!
//! Must not know what is in it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// The stream of a body that is made while it is sent.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of an answer.
pub(crate) enum Body {
    /// All of it; `None` once it was taken.
    Full(Option<Bytes>),
    /// Piece by piece.
    Pieces(Pieces),
    /// Another body that keeps its place among those under way until it ends.
    Held { body: Box<Self>, _place: OwnedSemaphorePermit },
}

impl Body {
    /// One text.
    pub(crate) fn full(text: impl Into<Bytes>) -> Self {
        Self::Full(Some(text.into()).filter(|text: &Bytes| !text.is_empty()))
    }

    /// Nothing.
    pub(crate) const fn empty() -> Self {
        Self::Full(None)
    }

    /// Whether all of it is there.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Full(_) => true,
            Self::Pieces(_) => false,
            Self::Held { body, .. } => body.is_whole(),
        }
    }

    /// Whether a client that reads slowly keeps much of it in memory.
    pub(crate) fn is_large(&self) -> bool {
        const SMALL: usize = 64 * 1024;
        match self {
            Self::Full(text) => text.as_ref().is_some_and(|text| text.len() > SMALL),
            Self::Pieces(_) => true,
            Self::Held { body, .. } => body.is_large(),
        }
    }

    /// Keeps a place until the body is sent.
    pub(crate) fn holding(self, place: OwnedSemaphorePermit) -> Self {
        Self::Held { body: Box::new(self), _place: place }
    }

    /// What a stream gives.
    pub(crate) fn pieces(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::Pieces(Box::pin(stream))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Full(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Pieces(stream) => {
                let piece = stream.as_mut().poll_next(context);
                piece.map(|piece| piece.map(|text| Ok(Frame::data(text))))
            }
            Self::Held { body, .. } => Pin::new(body.as_mut()).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(text) => text.is_none(),
            Self::Pieces(_) => false,
            Self::Held { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Self::Pieces(_) => SizeHint::default(),
            Self::Held { body, .. } => body.size_hint(),
        }
    }
}

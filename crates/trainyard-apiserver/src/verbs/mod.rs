//! The verbs on objects: one path for every kind.
//!
//! Owns the order of steps in reading and writing. Must not know sockets or any particular kind's
//! rules, except the few subresources that only one kind has, each in its own file.

mod collection;
mod create;
mod definitions;
mod delete;
mod list;
mod namespaces;
mod options;
mod patch;
mod pods;
mod read;
mod scale;
mod selection;
mod target;
mod token;
mod update;
mod watch;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response};

pub(crate) use target::Target;

use crate::answer::{self, Body, View};
use crate::api::Api;
use crate::failure::Failure;
use crate::kind::{Caller, Verbs};
use crate::request::accept::{self, Form};
use crate::request::query::Query;

/// A request for an object or a list.
pub(crate) struct Ask {
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) caller: Caller,
    /// The form of the answer.
    pub(crate) form: Form,
    /// `Content-Type`, without its parameters.
    pub(crate) content_type: String,
}

impl Ask {
    fn view(&self, api: &Api) -> View {
        let mut view = View::new(self.target.kind.clone(), self.target.version, api.clock.now());
        view.form = self.form;
        view.include = selection::include(&self.query);
        view
    }
}

/// Does what a request asks. The body is whole and within bounds.
pub(crate) async fn perform(
    api: &Arc<Api>,
    method: &Method,
    ask: &Ask,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    let mut response = match (ask.target.subresource.as_deref(), method) {
        (None | Some("status"), _) => plain(api, method, ask, body).await?,
        (Some("scale"), _) => scale::perform(api, method, ask, body).await?,
        (Some("binding"), &Method::POST) => pods::bind(api, ask, body).await?,
        (Some("eviction"), &Method::POST) => pods::evict(api, ask, body).await?,
        (Some("token"), &Method::POST) => token::create(api, ask, body)?,
        (Some("finalize"), &Method::PUT) => namespaces::finalize(api, ask, body).await?,
        (Some(_), _) => return Err(not_allowed()),
    };
    if let Some(deprecation) = ask.target.version().and_then(|version| version.deprecation.clone())
    {
        answer::warn(&mut response, &[deprecation]);
    }
    Ok(response)
}

async fn plain(
    api: &Arc<Api>,
    method: &Method,
    ask: &Ask,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    let on_status = ask.target.subresource.is_some();
    let only_created = ask.target.kind.verbs == Verbs::CreateOnly;
    match (method, &ask.target.name) {
        (&Method::POST, None) if only_created => create::answer(ask, body),
        _ if only_created => Err(not_allowed()),
        (&Method::GET, None) if ask.query.flag("watch") => watch::start(api, ask),
        (&Method::GET, None) => list::list(api, ask),
        (&Method::GET, Some(name)) => read::get(api, ask, name),
        (&Method::POST, None) => create::create(api, ask, body).await,
        (&Method::DELETE, None) => collection::delete(api, ask, body).await,
        (&Method::PUT, Some(name)) => update::replace(api, ask, name, body).await,
        (&Method::PATCH, Some(name)) => patch::patch(api, ask, name, body).await,
        (&Method::DELETE, Some(name)) if !on_status => delete::delete(api, ask, name, body).await,
        _ => Err(not_allowed()),
    }
}

fn not_allowed() -> Failure {
    Failure::new(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}

/// The form of answers that this request accepts.
pub(crate) fn form(accept: Option<&str>) -> Result<Form, Failure> {
    accept::form(accept)
}

//! The verbs on objects: one path for every kind.
//!
//! Owns the order of steps in reading and writing. Must not know sockets or any particular kind's
//! rules, except the few subresources that only one kind has, each in its own file.

mod bring;
mod collection;
#[cfg(test)]
mod concurrency_tests;
mod create;
mod definitions;
mod delete;
mod list;
mod namespaces;
mod options;
mod patch;
mod pods;
mod read;
mod reviews;
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

pub(crate) use bring::bring;
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
    /// How the parameters of this request are called together: `CreateOptions`.
    pub(crate) options: &'static str,
}

/// How the parameters of a request are called together.
pub(crate) fn options_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => "ListOptions",
    }
}

impl Ask {
    /// The same request for another part of the same kind.
    fn of(&self, target: Target) -> Self {
        Self {
            target,
            query: self.query.clone(),
            caller: self.caller.clone(),
            form: self.form,
            content_type: self.content_type.clone(),
            options: self.options,
        }
    }

    /// Whether nothing is to be kept of what is done.
    fn dry_run(&self) -> Result<bool, Failure> {
        let asked: Vec<&str> = self.query.all("dryRun").collect();
        let dry = options::dry_run(&asked, self.options)?;
        options::check_manager(self.query.text("fieldManager"), self.options)?;
        Ok(dry)
    }

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
    let name = ask.target.name.as_deref().unwrap_or_default();
    let answered = match (ask.target.subresource.as_deref(), method) {
        _ if !ask.target.serves_subresource() => Err(Failure::not_found(ask.target.about(name))),
        (None | Some("status"), _) => plain(api, method, ask, body).await,
        (Some("scale"), _) => scale::perform(api, method, ask, body).await,
        (Some("binding"), &Method::POST) => pods::bind(api, ask, body).await,
        (Some("eviction"), &Method::POST) => pods::evict(api, ask, body).await,
        (Some("token"), &Method::POST) => token::create(api, ask, body),
        (Some("finalize"), &Method::PUT) => namespaces::finalize(api, ask, body).await,
        (Some(_), _) => return Err(not_allowed()),
    };
    let deprecation = ask.target.version().and_then(|version| version.deprecation.clone());
    let Some(deprecation) = deprecation else { return answered };
    // The warning comes with a refusal, too.
    let mut response = answered.unwrap_or_else(|failure| answer::failure(&failure));
    answer::warn(&mut response, &[deprecation]);
    Ok(response)
}

async fn plain(
    api: &Arc<Api>,
    method: &Method,
    ask: &Ask,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    if matches!(ask.form, Form::Table { .. }) {
        selection::check_include(&ask.query)?;
    }
    let on_status = ask.target.subresource.is_some();
    let only_created = ask.target.kind.verbs == Verbs::CreateOnly;
    match (method, &ask.target.name) {
        (&Method::POST, None) if only_created => create::answer(api, ask, body),
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
    Failure::not_allowed()
}

/// The form of answers that this request accepts.
pub(crate) fn form(accept: Option<&str>) -> Result<Form, Failure> {
    accept::form(accept)
}

//! Lists: of the present, of a revision, page by page.
//!
//! Owns what `resourceVersion`, `resourceVersionMatch`, `limit` and `continue` mean together.

use http::{HeaderValue, Response, header};
use serde_json::{Map, Value, json};
use trainyard_schema::FieldError;
use trainyard_schema::select::cont::Token;

use super::Ask;
use super::selection::Selection;
use crate::answer::{self, Body};
use crate::api::Api;
use crate::failure::{About, Cause, Failure};
use crate::object::Stored;
use crate::request::accept::Form;
use crate::store::{self, ListError, Listing};

/// The largest page; a client that asks for more gets it in pieces.
const MOST: usize = 100_000;

/// Answers with a list.
pub(super) fn list(api: &Api, ask: &Ask) -> Result<Response<Body>, Failure> {
    let selection = Selection::read(&ask.target.kind, &ask.query)?;
    let (listing, next) = select(api, ask, &selection)?;
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".to_owned(), json!(listing.revision.to_string()));
    if let Some(token) = next {
        metadata.insert("continue".to_owned(), json!(token));
        if let Some(remaining) = listing.remaining.filter(|_| selection.is_everything()) {
            metadata.insert("remainingItemCount".to_owned(), json!(remaining));
        }
    }
    let view = ask.view(api);
    if let Form::Table { .. } = view.form {
        let objects: Vec<_> = listing.items.iter().map(AsRef::as_ref).collect();
        return Ok(answer::text(200, view.table(&objects, &Value::Object(metadata))));
    }
    let mut response = Response::new(answer::list::body(view, metadata, listing.items));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// The objects of a page, and the token of the next one.
fn select(
    api: &Api,
    ask: &Ask,
    selection: &Selection,
) -> Result<(Listing, Option<String>), Failure> {
    let query = &ask.query;
    let limit = query.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.filter(|limit| *limit > 0).map_or(MOST, |limit| limit.min(MOST));
    let token = query.text("continue").map(Token::decode).transpose();
    let token = token.map_err(|error| Failure::bad_request(error.to_string()))?;
    let (at, start) = match &token {
        Some(token) => {
            (Some(token.revision).filter(|revision| *revision > 0), Some(token.start.as_str()))
        }
        None => (revision(api, ask)?, None),
    };
    let target = &ask.target;
    let wants =
        |namespace: &str, name: &str, stored: &Stored| selection.wants(namespace, name, stored);
    let page = store::Query {
        namespace: Some(target.namespace.as_str()).filter(|namespace| !namespace.is_empty()),
        at,
        start,
        limit,
        filter: if selection.is_everything() { None } else { Some(&wants) },
    };
    let listing = api.store.list(&target.kind.storage, &page);
    let listing = listing.map_err(|error| refused(&error, token.is_some()))?;
    let next = listing
        .next
        .as_ref()
        .map(|start| Token { revision: listing.revision, start: start.clone() }.encode());
    Ok((listing, next))
}

/// The revision that is asked for, if a particular one is.
fn revision(api: &Api, ask: &Ask) -> Result<Option<u64>, Failure> {
    let matching = ask.query.text("resourceVersionMatch");
    let Some(text) = ask.query.text("resourceVersion") else {
        return match matching {
            None => Ok(None),
            Some(_) => Err(options(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ))),
        };
    };
    let asked: u64 = parse_revision(text)?;
    match matching {
        Some("Exact") if asked == 0 => Err(options(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ))),
        Some("Exact") => Ok(Some(asked)),
        // The present is never older than anything that was ever shown.
        Some("NotOlderThan") | None => not_in_the_future(api, asked).map(|()| None),
        Some(other) => Err(options(FieldError::not_supported(
            "resourceVersionMatch",
            other,
            &["Exact", "NotOlderThan", ""],
        ))),
    }
}

/// A revision as it is written.
pub(super) fn parse_revision(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| {
        let error = FieldError::invalid(
            "resourceVersion",
            text,
            format!("strconv.ParseUint: parsing {text:?}: invalid syntax"),
        );
        Failure::bad_request(format!("invalid resource version: {error}"))
    })
}

/// Refuses revisions that nobody was ever shown.
pub(super) fn not_in_the_future(api: &Api, asked: u64) -> Result<(), Failure> {
    let current = api.store.revision();
    if asked <= current {
        return Ok(());
    }
    let message = format!("Too large resource version: {asked}, current: {current}");
    let mut failure = Failure::new(504, "Timeout", format!("Timeout: {message}"));
    failure.about = Some(Box::new(About::default()));
    failure.retry_after = Some(1);
    failure.causes = vec![Cause {
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version".to_owned(),
        field: String::new(),
    }];
    Err(failure)
}

fn options(error: FieldError) -> Failure {
    Failure::invalid(About::new("meta.k8s.io", "ListOptions", ""), &[error])
}

fn refused(error: &ListError, paging: bool) -> Failure {
    match error {
        ListError::Compacted { .. } if paging => Failure::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        ),
        ListError::Compacted { .. } => {
            Failure::expired("The resourceVersion for the provided list is too old.")
        }
        ListError::Future { .. } => Failure::new(504, "Timeout", format!("Timeout: {error}")),
    }
}

//! Lists: of the present, of a revision, page by page.
//!
//! Owns what `resourceVersion`, `resourceVersionMatch`, `limit` and `continue` mean together.

use http::{HeaderValue, Response, header};
use serde_json::{Map, json};
use trainyard_schema::select::cont::Token;
use trainyard_schema::{FieldError, golang};

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
    no_initial_events(ask)?;
    let (listing, next) = select(api, ask, &selection)?;
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".to_owned(), json!(listing.revision.to_string()));
    let is_table = matches!(ask.form, Form::Table { .. });
    if ask.target.kind.defined && next.is_none() && !is_table {
        metadata.insert("continue".to_owned(), json!(""));
    }
    if let Some(token) = next {
        metadata.insert("continue".to_owned(), json!(token));
        if let Some(remaining) = listing.remaining.filter(|_| selection.is_everything()) {
            metadata.insert("remainingItemCount".to_owned(), json!(remaining));
        }
    }
    let body = answer::list::body(ask.view(api), metadata, listing.items);
    let mut response = Response::new(body);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// What only watches may ask.
fn no_initial_events(ask: &Ask) -> Result<(), Failure> {
    if ask.query.choice("sendInitialEvents").is_none() {
        return Ok(());
    }
    let mut errors = Vec::new();
    if ask.query.text("resourceVersionMatch").is_some()
        && ask.query.text("resourceVersion").is_none()
    {
        errors.push(unprovided());
    }
    let words = "sendInitialEvents is forbidden for list";
    errors.push(FieldError::forbidden("sendInitialEvents", words));
    Err(Failure::invalid(About::new("meta.k8s.io", "ListOptions", ""), &errors))
}

fn unprovided() -> FieldError {
    FieldError::forbidden(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden unless resourceVersion is provided",
    )
}

/// The objects of a page, and the token of the next one.
fn select(
    api: &Api,
    ask: &Ask,
    selection: &Selection,
) -> Result<(Listing, Option<String>), Failure> {
    let query = &ask.query;
    let limit = query.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
    let said = query.text("resourceVersion");
    // Any revision will do for `0`, and then everything comes at once.
    let limit = limit.filter(|limit| *limit > 0 && said != Some("0"));
    let limit = limit.map_or(MOST, |limit| limit.min(MOST));
    let token = query.text("continue").map(Token::decode).transpose();
    let token =
        token.map_err(|error| Failure::bad_request(format!("invalid continue token: {error}")))?;
    if token.is_some() && said.is_some_and(|said| said != "0") {
        return Err(Failure::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
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
            Some(_) => Err(options(unprovided())),
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
fn parse_revision(text: &str) -> Result<u64, Failure> {
    let refuse = |error| Failure::bad_request(format!("invalid resource version: {error}"));
    text.parse().map_err(|_| refuse(malformed(text)))
}

/// What is wrong with a revision that is no number.
pub(super) fn malformed(text: &str) -> FieldError {
    let words = format!("strconv.ParseUint: parsing {}: invalid syntax", golang::quote(text));
    FieldError::invalid("resourceVersion", text, words)
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

//! The older form of the API's description. kubectl asks for it before it takes a list of objects, and
//! older ones before every write; where it names no kind, they leave the checks to the server.

use http::{Response, header};
use serde_json::json;

use crate::answer::{self, Body};

/// A description that names nothing, in the one message that clients ask for: `swagger: "2.0"`.
const ENCODED: &[u8] = b"\x0a\x032.0";
const MEDIA: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The description, as the client can read it.
pub(super) fn description(accept: &str) -> Response<Body> {
    if !accept.contains("proto-openapi") {
        let info = json!({"title": "Kubernetes", "version": "unversioned"});
        let empty = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
        return answer::value(200, &empty);
    }
    let mut response = answer::text(200, ENCODED);
    let media = header::HeaderValue::from_static(MEDIA);
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_in_the_form_that_is_asked_for() {
        let media = |accept: &str| description(accept).headers()[header::CONTENT_TYPE].clone();
        assert_eq!(media("application/com.github.proto-openapi.spec.v2@v1.0+protobuf"), MEDIA);
        assert_eq!(media("*/*"), "application/json");
    }
}

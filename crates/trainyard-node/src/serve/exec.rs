//! The request that runs a program in a container.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::pods::{ExecAsk, Pods};
use super::routes::Node;
use super::session;
use super::upgrade;

/// Bytes of one message from a client at most.
const MESSAGE: usize = 4 << 20;

/// Bytes read from the socket at once.
const READ_AHEAD: usize = 32 << 10;

pub(super) async fn by_name<P: Pods>(
    State(node): State<Arc<Node<P>>>,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    request: Request,
) -> Response {
    exec(node, [namespace, pod, container], None, request)
}

pub(super) async fn by_uid<P: Pods>(
    State(node): State<Arc<Node<P>>>,
    Path((namespace, pod, uid, container)): Path<(String, String, String, String)>,
    request: Request,
) -> Response {
    exec(node, [namespace, pod, container], Some(uid), request)
}

fn exec<P: Pods>(
    node: Arc<Node<P>>,
    names: [String; 3],
    uid: Option<String>,
    mut request: Request,
) -> Response {
    let bad = |problem: String| (StatusCode::BAD_REQUEST, problem).into_response();
    let ask = match ask(names, uid, request.uri().query().unwrap_or_default()) {
        Ok(ask) => ask,
        Err(problem) => return bad(problem),
    };
    let (protocol, answer) = match upgrade::negotiate(request.headers()) {
        Ok(agreed) => agreed,
        Err(problem) => return bad(problem),
    };
    let Ok(slot) = Arc::clone(&node.execs).try_acquire_owned() else {
        let busy = "too many programs run through this node's API at once; try again later";
        return (StatusCode::TOO_MANY_REQUESTS, busy).into_response();
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let (stop, tasks) = (node.stop.clone(), node.tasks.clone());
    tasks.spawn(async move {
        let _slot = slot;
        let serving = async {
            let socket = match upgraded.await {
                Ok(upgraded) => TokioIo::new(upgraded),
                Err(error) => {
                    tracing::debug!(%error, "a client left before its program was started");
                    return;
                }
            };
            let config = WebSocketConfig::default()
                .read_buffer_size(READ_AHEAD)
                .write_buffer_size(0)
                .max_write_buffer_size(1 << 20)
                .max_message_size(Some(MESSAGE))
                .max_frame_size(Some(MESSAGE));
            let socket = WebSocketStream::from_raw_socket(socket, Role::Server, Some(config)).await;
            session::run(socket, protocol, ask, &*node.pods).await;
        };
        tokio::select! {
            () = serving => {}
            () = stop.cancelled() => {}
        }
    });
    answer
}

fn ask(names: [String; 3], uid: Option<String>, query: &str) -> Result<ExecAsk, String> {
    let [namespace, pod, container] = names;
    let mut ask = ExecAsk {
        namespace,
        pod,
        uid,
        container,
        command: Vec::new(),
        stdin: false,
        stdout: false,
        stderr: false,
        tty: false,
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let on = value == "1" || value == "true";
        match &*name {
            "command" => ask.command.push(value.into_owned()),
            "input" => ask.stdin = on,
            "output" => ask.stdout = on,
            "error" => ask.stderr = on,
            "tty" => ask.tty = on,
            _ => {}
        }
    }
    // A terminal has one output.
    ask.stderr &= !ask.tty;
    if !(ask.stdin || ask.stdout || ask.stderr) {
        return Err("you must specify at least 1 of stdin, stdout, stderr".to_owned());
    }
    if ask.command.is_empty() {
        return Err("you must specify at least one command for the container".to_owned());
    }
    Ok(ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<ExecAsk, String> {
        ask(["ns".to_owned(), "pod".to_owned(), "main".to_owned()], None, query)
    }

    #[test]
    fn parameters_are_read_as_a_kubelet_reads_them() {
        let ask =
            parse("command=sh&command=-c&command=echo+%22a%26b%22&input=1&output=1&tty=1&error=1")
                .unwrap();
        assert_eq!(ask.command, ["sh", "-c", "echo \"a&b\""]);
        assert!(ask.stdin && ask.stdout && ask.tty && !ask.stderr);
        let ask = parse("command=ls&error=1&output=0").unwrap();
        assert!(ask.stderr && !ask.stdout && !ask.stdin && !ask.tty);
        assert!(parse("command=ls").unwrap_err().contains("at least 1 of"));
        assert!(parse("command=ls&tty=1&error=1").is_err());
        assert!(parse("output=1").unwrap_err().contains("command"));
    }
}

//! How a program ended, as the `Status` object that ends an exec session.

use serde_json::{Value, json};

use super::pods::Refused;

/// For a program that ran: its exit code, or why there is none.
pub(super) fn of_exit(exit: &Result<i32, String>) -> Value {
    match exit {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => {
            // Clients take one byte.
            let code = u8::try_from(*code).unwrap_or(u8::MAX);
            json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            })
        }
        Err(problem) => failed(&format!("error executing command in container: {problem}")),
    }
}

/// For a program that was not started.
pub(super) fn of_refusal(refused: &Refused) -> Value {
    let (code, reason) = match refused {
        Refused::NotFound(_) => (404, "NotFound"),
        Refused::BadRequest(_) => (400, "BadRequest"),
        Refused::Internal(problem) => {
            return failed(&format!("error executing command in container: {problem}"));
        }
    };
    json!({
        "metadata": {},
        "status": "Failure",
        "message": refused.to_string(),
        "reason": reason,
        "code": code,
    })
}

fn failed(problem: &str) -> Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("Internal error occurred: {problem}"),
        "reason": "InternalError",
        "code": 500,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_as_clients_read_them() {
        assert_eq!(of_exit(&Ok(0))["status"], "Success");
        for (code, told) in [(1, "1"), (137, "137"), (255, "255"), (256, "255"), (-1, "255")] {
            let status = of_exit(&Ok(code));
            assert_eq!(status["reason"], "NonZeroExitCode");
            assert_eq!(status["details"]["causes"][0]["reason"], "ExitCode");
            assert_eq!(status["details"]["causes"][0]["message"], told);
        }
        let status = of_exit(&Err("it was lost".to_owned()));
        assert_eq!(status["code"], 500);
        assert!(status["message"].as_str().unwrap().ends_with("container: it was lost"));
    }

    #[test]
    fn refusals_keep_their_words() {
        let status = of_refusal(&Refused::NotFound("pod does not exist".to_owned()));
        assert_eq!(
            (&status["code"], &status["message"]),
            (&json!(404), &json!("pod does not exist"))
        );
        assert_eq!(of_refusal(&Refused::BadRequest("x".to_owned()))["reason"], "BadRequest");
        assert_eq!(of_refusal(&Refused::Internal("x".to_owned()))["reason"], "InternalError");
    }
}

//! A case: its name, how long it may take, and an async function over the fixture that it needs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::future::LocalBoxFuture;

use super::function::Function;

/// How long a case may take unless it says otherwise.
const TIMEOUT: Duration = Duration::from_mins(2);

type Play<F> = Arc<dyn Fn(F) -> LocalBoxFuture<'static, Result<()>> + Send + Sync>;

/// A case over the fixture `F`.
pub(crate) struct Case<F> {
    /// `file/what_it_shows`.
    pub(crate) name: String,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// It is not tried again, whatever the phase says.
    pub(crate) once: bool,
    play: Play<F>,
}

// Derived, it would ask for a fixture that can be cloned.
impl<F> Clone for Case<F> {
    fn clone(&self) -> Self {
        let Self { name, timeout, once, play } = self;
        Self { name: name.clone(), timeout: *timeout, once: *once, play: Arc::clone(play) }
    }
}

impl<F: 'static> Case<F> {
    /// A case that calls a function.
    pub(crate) fn new<Form>(name: impl Into<String>, function: impl Function<F, Form>) -> Self {
        let play: Play<F> = Arc::new(move |fixture| function.call(fixture));
        Self { name: name.into(), timeout: TIMEOUT, once: false, play }
    }

    /// The same with another time.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The same with no second try, or with as many tries as its phase gives.
    pub(crate) fn once(self, once: bool) -> Self {
        Self { once, ..self }
    }

    /// The same under a longer name.
    pub(crate) fn below(self, group: &str) -> Self {
        Self { name: format!("{group}/{}", self.name), ..self }
    }

    /// The same case over another fixture, from which its own is opened for it alone, by its name.
    pub(crate) fn over<G: 'static>(
        self,
        open: impl AsyncFn(G, &str) -> Result<F> + Clone + Send + Sync + 'static,
    ) -> Case<G> {
        let Self { name, timeout, once, play } = self;
        let title = name.clone();
        let play: Play<G> = Arc::new(move |outer| {
            let (title, open, play) = (title.clone(), open.clone(), Arc::clone(&play));
            Box::pin(async move { play(open(outer, &title).await?).await })
        });
        Case { name, timeout, once, play }
    }

    /// Plays it, for as long as it may take.
    pub(crate) async fn play(&self, fixture: F) -> Result<()> {
        let played = tokio::time::timeout(self.timeout, (self.play)(fixture)).await;
        played.unwrap_or_else(|_| Err(anyhow!("took longer than {:?}", self.timeout)))
    }
}

/// The same cases with another time.
pub(crate) fn within<F: 'static>(timeout: Duration, cases: Vec<Case<F>>) -> Vec<Case<F>> {
    cases.into_iter().map(|case| case.within(timeout)).collect()
}

/// The same cases without a second try: of what must not happen at all, a second try would hide half.
pub(crate) fn tried_once<F: 'static>(cases: Vec<Case<F>>) -> Vec<Case<F>> {
    cases.into_iter().map(|case| case.once(true)).collect()
}

/// Cases named after their functions: `cases!["life": runs_to_success, fails]`; or with what a page tells of
/// them: `cases!["kubectl/pods": logs, "logs -f", "what the container has written"; …]`.
macro_rules! cases {
    ($group:literal: $($function:ident),+ $(,)?) => {
        vec![$($crate::harness::Case::new(
            concat!($group, "/", stringify!($function)), $function,
        )),+]
    };
    ($group:literal: $($function:ident, $command:literal, $gives:literal);+ $(;)?) => {
        vec![$((
            $crate::harness::Case::new(concat!($group, "/", stringify!($function)), $function),
            [$command, $gives],
        )),+]
    };
}
pub(crate) use cases;

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    async fn taken(text: String) -> Result<()> {
        ensure!(text == "a");
        Ok(())
    }

    async fn borrowed(text: &String) -> Result<()> {
        ensure!(text == "a");
        Ok(())
    }

    async fn both(text: &String, number: &usize) -> Result<()> {
        ensure!(text == "a" && *number == 1);
        Ok(())
    }

    #[tokio::test]
    async fn a_function_is_a_case_however_it_takes_its_fixture() {
        let cases: Vec<Case<String>> = cases!["g": taken];
        assert_eq!(cases[0].name, "g/taken");
        cases[0].play("a".to_owned()).await.unwrap();
        let cases: Vec<Case<Arc<String>>> = cases!["g": borrowed];
        cases[0].play(Arc::new("a".to_owned())).await.unwrap();
        let cases: Vec<Case<(Arc<String>, Arc<usize>)>> = cases!["g": both];
        cases[0].play((Arc::new("a".to_owned()), Arc::new(1))).await.unwrap();
    }

    #[tokio::test]
    async fn a_case_over_another_fixture_opens_its_own_by_its_name() {
        let [case]: [Case<String>; 1] = cases!["g": taken].try_into().ok().unwrap();
        let over = case.below("h").over(async |prefix: &'static str, name: &str| {
            ensure!(name == "h/g/taken", "{name}");
            Ok(prefix.to_owned())
        });
        over.play("a").await.unwrap();
        assert!(over.play("b").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_takes_for_ever() {
        let never = Case::new("never", async |(): ()| std::future::pending().await);
        assert!(never.play(()).await.unwrap_err().to_string().contains("took longer"));
    }
}

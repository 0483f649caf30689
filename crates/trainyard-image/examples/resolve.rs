//! Makes an image ready and shows what it means: `resolve IMAGE [REQUIREMENT …]`.

use std::io::Write as _;
use std::process::ExitCode;

use trainyard_image::{Images, PullPolicy, Settings};

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(reference) = words.next() else {
        return say("usage: resolve IMAGE [REQUIREMENT …]", 2);
    };
    let requirements: Vec<String> = words.collect();
    let images = match Images::new(Settings::default()) {
        Ok(images) => images,
        Err(error) => return say(&error.to_string(), 2),
    };
    let begun = std::time::Instant::now();
    let progress = |progress: trainyard_image::Progress| {
        say(&format!("{:6.1} s  {}", begun.elapsed().as_secs_f64(), progress.words), 0);
    };
    match images.resolve(&reference, &requirements, PullPolicy::IfNotPresent, progress).await {
        Ok(image) => say(&format!("{image:#?}"), 0),
        Err(error) => say(&format!("{}: {error}", error.kind()), 1),
    }
}

fn say(words: &str, code: u8) -> ExitCode {
    match writeln!(std::io::stdout(), "{words}") {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}

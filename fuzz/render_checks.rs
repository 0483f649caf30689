//! What must hold for every template and every list of machines.
//!
//! The fuzz targets call these with what the fuzzer makes up, and an ordinary test of
//! `trainyard-render` with the kept corpus. Panics here are findings.

use trainyard_render::crew::{Crew, Wanted};
use trainyard_render::hosts;
use trainyard_render::rendering::{PORT, render};
use trainyard_render::template::Missing;

pub fn template(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let nodes = ["h10", "h100", "h14"].map(str::to_owned);
    let crew = Crew::choose(&nodes, &Wanted::default()).expect("three machines are enough");
    let rendered = |missing| render(text, missing, &crew, PORT);
    let strict = rendered(Missing::Refused);
    match (&strict, rendered(Missing::Allowed)) {
        (Ok(strict), Ok(lax)) => assert_eq!(strict.text, lax.text),
        (Ok(_), Err(error)) => panic!("refused only where more is allowed: {error}"),
        (Err(error), _) => {
            assert!(error.line >= 1 && error.line <= text.split('\n').count(), "{error}");
            assert!(error.column >= 1 && !error.to_string().is_empty());
        }
    }
    if let Ok(rendered) = strict {
        assert_eq!(rendered.parts.len(), 3);
        if let Err(error) = rendered.check() {
            assert!(error.line >= 1, "{error}");
        }
    }
}

pub fn hosts(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(names) = hosts::read(text) else { return };
    assert_eq!(hosts::read(&names.join("\n")).as_ref(), Ok(&names));
    assert_eq!(hosts::read_list(&names.join(",")).as_ref(), Ok(&names));
    assert_eq!(hosts::read_excluded(text).as_ref(), Ok(&names));
}

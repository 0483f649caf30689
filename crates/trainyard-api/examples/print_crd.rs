//! Prints the CRD.
use std::io::Write;
fn main() -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{}", trainyard_api::tfjob_crd())
}

//! What TensorFlow's runtime says of itself at its start: true, long, and of no use to most.
//!
//! Owns which lines these are. Pure.

/// Words of the runtime that come without its own prefix.
const BARE: [&str; 5] = [
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "To enable the following instructions:",
    "SLF4J:",
    "Skipping registering GPU devices...",
    "If you would like to use GPU. Follow the guide",
];

/// Warnings and errors of the runtime that mean only that there is no GPU, or that a step has ended.
const HARMLESS: [&str; 13] = [
    "cuda_driver",
    "cuda_executor",
    "cuda_platform",
    "cuda_dnn",
    "cuda_fft",
    "cuda_blas",
    "cuInit",
    "computation_placer",
    "TensorRT",
    "libcudart",
    "gpu_device.cc",
    "Could not find cuda drivers",
    "Local rendezvous is aborting with status: ABORTED: Cleanup",
];

/// Whether a line is noise.
pub(crate) fn is_noise(line: &str) -> bool {
    let line = line.trim_start();
    if BARE.iter().any(|start| line.starts_with(start)) {
        return true;
    }
    match level(line) {
        Some(b'I') => true,
        Some(b'W' | b'E') => HARMLESS.iter().any(|part| line.contains(part)),
        _ => false,
    }
}

/// The level of a line of the C++ runtime: `2026-01-31 08:00:00.123456: I tensorflow/…` or
/// `I0000 00:00:1738310400.123456   12345 file.cc:1] …`.
fn level(line: &str) -> Option<u8> {
    let bytes = line.as_bytes();
    let date = |at: usize, wanted: &str| {
        bytes.get(at..at + wanted.len()).is_some_and(|part| {
            part.iter().zip(wanted.bytes()).all(|(byte, wanted)| {
                if wanted == b'0' { byte.is_ascii_digit() } else { *byte == wanted }
            })
        })
    };
    if date(0, "0000-00-00 00:00:00.000000: ") && bytes.get(29) == Some(&b' ') {
        return bytes.get(28).copied();
    }
    let is_glog = date(1, "0000 00:00:") && line.contains("] ");
    bytes.first().copied().filter(|_| is_glog)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtimes_own_messages_are_noise() {
        for line in [
            "2026-11-15 08:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
            "I0000 00:00:1763193600.123456   12345 port.cc:153] oneDNN custom operations are on.",
            "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
            "E0000 00:00:1763193600.123456   12345 cuda_dnn.cc:8310] Unable to register cuDNN factory",
            "W0000 00:00:1763193600.123456     138 local_rendezvous.cc:412] Local rendezvous is aborting with status: ABORTED: Cleanup 78153",
            "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow",
        ] {
            assert!(is_noise(line), "{line}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for line in [
            "epoch 0 step 60 loss 1.5392 accuracy 0.8687",
            "2026-11-15 08:00:00.123456: W tensorflow/core/framework/op_kernel.cc:1] OP_REQUIRES failed",
            "2026-11-15 08:00:00.123456: E tensorflow/core/common_runtime/x.cc:1] out of memory",
            "2026-11-15 08:00:00,123 INFO starting",
            "Traceback (most recent call last):",
            "I am a line",
            "",
        ] {
            assert!(!is_noise(line), "{line}");
        }
    }
}

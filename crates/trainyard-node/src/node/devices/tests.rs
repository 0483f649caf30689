//! GPUs given, exhausted and taken back, with a made-up driver.

use serde_json::json;

use super::*;

struct FakeDriver(Result<Vec<Gpu>, DeviceError>);

impl GpuSource for FakeDriver {
    fn gpus(&self) -> Result<Vec<Gpu>, DeviceError> {
        self.0.clone()
    }
}

fn gpus(count: u32) -> Vec<Gpu> {
    let driver = FakeDriver(Ok((0..count)
        .map(|minor| Gpu {
            uuid: format!("GPU-{minor}"),
            minor,
            model: "NVIDIA T4".to_owned(),
            memory: 16 << 30,
        })
        .collect()));
    driver.gpus().unwrap()
}

fn names(allotment: &Allotment) -> Vec<&str> {
    allotment.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect()
}

fn variable(allotment: &Allotment, name: &str) -> Option<String> {
    allotment.environment().into_iter().find(|(one, _)| one == name).map(|(_, value)| value)
}

#[test]
fn given_exhausted_given_back_and_given_again() {
    let mut devices = Devices::new(gpus(2), 2);
    let first = devices.take("pod-a/train", 1).unwrap();
    assert_eq!(names(&first), ["GPU-0"]);
    let second = devices.take("pod-b/train", 1).unwrap();
    assert_eq!(names(&second), ["GPU-1"]);
    let error = devices.take("pod-c/train", 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0"
    );
    assert_eq!(error.kind(), "UnexpectedAdmissionError");
    devices.give_back("pod-a/train");
    devices.give_back("pod-a/train");
    devices.give_back("nobody");
    assert_eq!(names(&devices.take("pod-c/train", 1).unwrap()), ["GPU-0"]);
}

#[test]
fn the_same_container_gets_the_same_again() {
    let mut devices = Devices::new(gpus(3), 3);
    let first = devices.take("a", 2).unwrap();
    assert_eq!(devices.take("a", 2).unwrap(), first);
    assert_eq!(devices.free(), 1);
    assert!(devices.take("a", 3).is_err());
    assert_eq!(devices.free(), 1);
}

#[test]
fn a_request_too_large_takes_nothing() {
    let mut devices = Devices::new(gpus(2), 2);
    assert_eq!(devices.take("a", 3), Err(DeviceError::Exhausted { asked: 3, free: 2 }));
    assert_eq!(devices.take("a", u64::MAX).unwrap_err().kind(), "UnexpectedAdmissionError");
    assert_eq!(devices.free(), 2);
}

#[test]
fn variables_and_device_nodes() {
    let mut devices = Devices::new(gpus(2), 2);
    let both = devices.take("a", 2).unwrap();
    assert_eq!(variable(&both, "CUDA_VISIBLE_DEVICES").unwrap(), "GPU-0,GPU-1");
    assert_eq!(variable(&both, "NVIDIA_VISIBLE_DEVICES").unwrap(), "GPU-0,GPU-1");
    let paths: Vec<_> = both.device_paths().iter().map(|path| path.display().to_string()).collect();
    assert_eq!(
        paths,
        [
            "/dev/nvidia0",
            "/dev/nvidia1",
            "/dev/nvidiactl",
            "/dev/nvidia-uvm",
            "/dev/nvidia-uvm-tools",
            "/dev/nvidia-modeset"
        ]
    );
    let none = devices.take("b", 0).unwrap();
    assert_eq!(variable(&none, "CUDA_VISIBLE_DEVICES").unwrap(), "");
    assert_eq!(variable(&none, "NVIDIA_VISIBLE_DEVICES").unwrap(), "void");
    assert!(none.device_paths().is_empty());
}

#[test]
fn promised_gpus_that_are_not_there() {
    let mut devices = Devices::new(Vec::new(), 2);
    let allotment = devices.take("a", 2).unwrap();
    assert!(allotment.environment().is_empty() && allotment.device_paths().is_empty());
    assert_eq!(devices.take("b", 1), Err(DeviceError::Exhausted { asked: 1, free: 0 }));
    // Real ones go first.
    let mut mixed = Devices::new(gpus(1), 2);
    assert_eq!(names(&mixed.take("a", 1).unwrap()), ["GPU-0"]);
    let stand_in = mixed.take("b", 1).unwrap();
    assert_eq!(variable(&stand_in, "CUDA_VISIBLE_DEVICES").unwrap(), "");
    // Those held back by the command line are not given.
    let mut fewer = Devices::new(gpus(4), 1);
    assert_eq!(fewer.take("a", 2), Err(DeviceError::Exhausted { asked: 2, free: 1 }));
}

#[test]
fn nodes_share_them() {
    let shares = share_gpus(gpus(3), &[2, 0, 2]);
    let minors: Vec<Vec<u32>> =
        shares.iter().map(|share| share.iter().map(|gpu| gpu.minor).collect()).collect();
    assert_eq!(minors, [vec![0, 1], vec![], vec![2]]);
}

#[test]
fn what_a_container_asks_for() {
    for (resources, count) in [
        (json!(null), 0),
        (json!({}), 0),
        (json!({ "limits": { "nvidia.com/gpu": "2" } }), 2),
        (json!({ "requests": { "nvidia.com/gpu": "1" } }), 1),
        (json!({ "limits": { "nvidia.com/gpu": "many" } }), 0),
        (json!({ "limits": { "nvidia.com/gpu": "-1" } }), 0),
        (json!({ "limits": { "cpu": "2" } }), 0),
    ] {
        let container = json!({ "name": "c", "resources": resources });
        assert_eq!(
            gpus_asked(&serde_json::from_value(container.clone()).unwrap()),
            count,
            "{container}"
        );
    }
}

#[test]
fn a_broken_driver_is_told_and_a_missing_one_is_not() {
    let broken = FakeDriver(Err(DeviceError::Driver("lost".to_owned())));
    assert_eq!(broken.gpus().unwrap_err().kind(), "GpuDriver");
    // Whatever this machine has, asking is safe.
    Nvml.gpus().unwrap();
}

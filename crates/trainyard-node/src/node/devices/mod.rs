//! GPUs: which there are, and which container has which. Must not know how a container is given one.

mod nvml;

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Container;
use trainyard_api::quantity;

pub(crate) use nvml::Nvml;

/// The name under which GPUs are asked for.
pub(crate) const GPU_RESOURCE: &str = "nvidia.com/gpu";

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu {
    /// `GPU-…`, as CUDA and the driver know it.
    pub(crate) uuid: String,
    /// N of `/dev/nvidiaN`.
    pub(crate) minor: u32,
    /// What it is sold as.
    pub(crate) model: String,
    /// Bytes of its memory.
    pub(crate) memory: u64,
}

/// Where GPUs are found.
pub(crate) trait GpuSource {
    /// All GPUs of this machine, in a stable order; none where there is no driver.
    fn gpus(&self) -> Result<Vec<Gpu>, DeviceError>;
}

/// Trouble with devices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeviceError {
    /// More were asked for than are free. The words are a kubelet's.
    #[error(
        "requested number of devices unavailable for {GPU_RESOURCE}. Requested: {asked}, Available: {free}"
    )]
    Exhausted { asked: u64, free: u64 },
    /// The driver is there and does not answer well.
    #[error("the GPU driver cannot list its devices: {0}")]
    Driver(String),
}

impl DeviceError {
    /// A short name for logs and metrics; what a pod that cannot get its devices is rejected with.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Exhausted { .. } => "UnexpectedAdmissionError",
            Self::Driver(_) => "GpuDriver",
        }
    }
}

/// What one container has been given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allotment {
    /// Real GPUs. Fewer than asked for where `--resource` promised more than the machine has.
    pub(crate) gpus: Vec<Gpu>,
    /// The node has real GPUs, so that a container without any must be kept off them.
    guarded: bool,
}

impl Allotment {
    /// Variables for the container, to stand before its own. Empty on a machine without GPUs.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let names: Vec<&str> = self.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
        let (cuda, nvidia) = match (names.is_empty(), self.guarded) {
            (true, false) => return Vec::new(),
            // No device at all, to CUDA and to NVIDIA's container runtime.
            (true, true) => (String::new(), "void".to_owned()),
            (false, _) => (names.join(","), names.join(",")),
        };
        vec![
            ("CUDA_VISIBLE_DEVICES".to_owned(), cuda),
            ("NVIDIA_VISIBLE_DEVICES".to_owned(), nvidia),
        ]
    }

    /// Device nodes the container needs; those that do not exist on a machine may be left out.
    pub(crate) fn device_paths(&self) -> Vec<PathBuf> {
        if self.gpus.is_empty() {
            return Vec::new();
        }
        let own = self.gpus.iter().map(|gpu| format!("/dev/nvidia{}", gpu.minor));
        let common = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"]
            .map(|name| format!("/dev/{name}"));
        own.chain(common).map(PathBuf::from).collect()
    }
}

/// Which container of one node has which GPU.
#[derive(Debug)]
pub(crate) struct Devices {
    /// Real GPUs first; then, where more were promised than there are, places without one.
    slots: Vec<Slot>,
    guarded: bool,
}

#[derive(Debug)]
struct Slot {
    gpu: Option<Gpu>,
    holder: Option<String>,
}

impl Devices {
    /// A node that promises `promised` GPUs and has these.
    pub(crate) fn new(gpus: Vec<Gpu>, promised: u64) -> Self {
        let promised = usize::try_from(promised).unwrap_or(usize::MAX).min(1 << 16);
        let guarded = !gpus.is_empty();
        let slots = gpus
            .into_iter()
            .map(Some)
            .chain(std::iter::repeat(None))
            .take(promised)
            .map(|gpu| Slot { gpu, holder: None })
            .collect();
        Self { slots, guarded }
    }

    /// Gives a container `count` GPUs. Asking again for the same container gives what it has.
    pub(crate) fn take(&mut self, container: &str, count: u64) -> Result<Allotment, DeviceError> {
        let held = self.held(container);
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        if held == 0 {
            let mut free: Vec<&mut Slot> =
                self.slots.iter_mut().filter(|slot| slot.holder.is_none()).collect();
            if free.len() < wanted {
                let free = u64::try_from(free.len()).unwrap_or(u64::MAX);
                return Err(DeviceError::Exhausted { asked: count, free });
            }
            for slot in free.iter_mut().take(wanted) {
                slot.holder = Some(container.to_owned());
            }
        } else if held != wanted {
            let free = u64::try_from(held).unwrap_or(u64::MAX);
            return Err(DeviceError::Exhausted { asked: count, free });
        }
        Ok(self.allotment(container))
    }

    /// Takes back what a container has; nothing if it has nothing.
    pub(crate) fn give_back(&mut self, container: &str) {
        for slot in &mut self.slots {
            if slot.holder.as_deref() == Some(container) {
                slot.holder = None;
            }
        }
    }

    /// How many are free.
    #[cfg(test)]
    fn free(&self) -> usize {
        self.slots.iter().filter(|slot| slot.holder.is_none()).count()
    }

    fn held(&self, container: &str) -> usize {
        self.slots.iter().filter(|slot| slot.holder.as_deref() == Some(container)).count()
    }

    fn allotment(&self, container: &str) -> Allotment {
        let own = self.slots.iter().filter(|slot| slot.holder.as_deref() == Some(container));
        Allotment { gpus: own.filter_map(|slot| slot.gpu.clone()).collect(), guarded: self.guarded }
    }
}

/// How many GPUs a container asks for: its limit, which for devices its request must equal.
pub(crate) fn gpus_asked(container: &Container) -> u64 {
    let amounts = |of: Option<&BTreeMap<_, _>>| -> Option<u64> {
        let written: &k8s_openapi::apimachinery::pkg::api::resource::Quantity =
            of?.get(GPU_RESOURCE)?;
        u64::try_from(quantity::parse(&written.0).ok()?.value()).ok()
    };
    let Some(resources) = &container.resources else { return 0 };
    amounts(resources.limits.as_ref()).or_else(|| amounts(resources.requests.as_ref())).unwrap_or(0)
}

/// Deals the machine's GPUs to nodes that promise so many each, in order.
pub(crate) fn share_gpus(gpus: Vec<Gpu>, promised: &[u64]) -> Vec<Vec<Gpu>> {
    let mut rest = gpus.into_iter();
    promised
        .iter()
        .map(|count| rest.by_ref().take(usize::try_from(*count).unwrap_or(usize::MAX)).collect())
        .collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! NVIDIA's GPUs, by the driver's management library. It is loaded when asked for: machines without it
//! have no GPUs, which is no error.

use nvml_wrapper::Nvml as Library;
use nvml_wrapper::error::NvmlError;

use super::{DeviceError, Gpu, GpuSource};

/// The driver of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Nvml;

impl GpuSource for Nvml {
    fn gpus(&self) -> Result<Vec<Gpu>, DeviceError> {
        let library = match Library::init() {
            Ok(library) => library,
            Err(
                NvmlError::LibloadingError(_)
                | NvmlError::LibraryNotFound
                | NvmlError::DriverNotLoaded
                | NvmlError::NotFound,
            ) => return Ok(Vec::new()),
            Err(error) => return Err(DeviceError::Driver(error.to_string())),
        };
        list(&library).map_err(|error| DeviceError::Driver(error.to_string()))
    }
}

fn list(library: &Library) -> Result<Vec<Gpu>, NvmlError> {
    (0..library.device_count()?)
        .map(|index| {
            let device = library.device_by_index(index)?;
            Ok(Gpu {
                uuid: device.uuid()?,
                minor: device.minor_number()?,
                model: device.name()?,
                memory: device.memory_info()?.total,
            })
        })
        .collect()
}

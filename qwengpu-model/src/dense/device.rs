//! Where candle multiplies panels of many tokens.

use std::sync::OnceLock;

use candle_core::Device;

/// The device of the features `cuda` and `metal`, the first of each kind; the CPU without them, or where none can be made.
///
/// The same for the whole process, looked for once.
pub(crate) fn device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(find)
}

fn find() -> Device {
    #[cfg(feature = "cuda")]
    if let Ok(device) = Device::new_cuda(0) {
        return device;
    }
    #[cfg(feature = "metal")]
    if let Ok(device) = Device::new_metal(0) {
        return device;
    }
    Device::Cpu
}

#[cfg(all(test, not(any(feature = "cuda", feature = "metal"))))]
mod tests {
    use super::device;

    #[test]
    fn no_feature_no_device() {
        assert!(device().is_cpu());
    }
}

//! Where candle multiplies panels of many tokens.

use std::env;
use std::sync::OnceLock;

use candle_core::Device;

use crate::error::Error;

/// The variable of the environment that keeps a build with a device from using it.
const CHOICE: &str = "QWENGPU_DEVICE";

/// The kinds of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cpu,
    Cuda,
    Metal,
}

/// The kind of the features that are on: CUDA with `cuda`, else Metal with `metal`.
const BUILT_FOR: Kind = if cfg!(feature = "cuda") {
    Kind::Cuda
} else if cfg!(feature = "metal") {
    Kind::Metal
} else {
    Kind::Cpu
};

/// The first device of the kind that the crate is built for, the CPU if the environment says `QWENGPU_DEVICE=cpu`.
///
/// The same for the whole process, made once.
///
/// # Errors
/// [`Error::Device`] if it can't be made, or the environment asks for something else.
pub(crate) fn device() -> Result<&'static Device, Error> {
    static DEVICE: OnceLock<Result<Device, String>> = OnceLock::new();
    let made = DEVICE.get_or_init(|| choose(BUILT_FOR, env::var(CHOICE).ok().as_deref()).and_then(make));
    made.as_ref().map_err(|reason| Error::Device { reason: reason.clone() })
}

fn choose(built_for: Kind, asked: Option<&str>) -> Result<Kind, String> {
    match asked {
        None | Some("") => Ok(built_for),
        Some("cpu") => Ok(Kind::Cpu),
        Some(other) => Err(format!("{CHOICE} is {other:?}")),
    }
}

fn make(kind: Kind) -> Result<Device, String> {
    let made = match kind {
        Kind::Cpu => Ok(Device::Cpu),
        Kind::Cuda => Device::new_cuda(0),
        Kind::Metal => Device::new_metal(0),
    };
    made.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_the_cpu_or_what_was_built() {
        assert_eq!(choose(Kind::Cuda, Some("cpu")), Ok(Kind::Cpu));
        assert_eq!(choose(Kind::Cuda, None), Ok(Kind::Cuda));
        assert_eq!(choose(Kind::Metal, Some("")), Ok(Kind::Metal));
        assert_eq!(choose(Kind::Cuda, Some("gpu")), Err("QWENGPU_DEVICE is \"gpu\"".to_owned()));
    }

    #[test]
    fn no_feature_no_device() {
        if BUILT_FOR == Kind::Cpu {
            assert!(make(BUILT_FOR).expect("the CPU").is_cpu());
            assert!(make(Kind::Cuda).is_err() && make(Kind::Metal).is_err());
        }
    }

    #[test]
    fn the_error_says_what_to_do() {
        let error = Error::Device { reason: "no driver".to_owned() };
        assert_eq!(
            error.to_string(),
            "no device to multiply on: no driver; QWENGPU_DEVICE=cpu computes on the CPU alone"
        );
    }
}

//! The order of layers in a merged model.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::base_config::Mixer;
use super::error::MergeError;

/// A full-attention layer is every so many layers in the portable layout.
pub(crate) const INTERVAL: usize = 4;

/// How compiled layers stand in front of a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One after another; `layer_types` in the configuration says which layer is what.
    #[default]
    Prefix,
    /// With a full-attention layer of zeros at every fourth place, for engines that go by `full_attention_interval`.
    Portable,
}

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Prefix => "prefix",
            Self::Portable => "portable",
        })
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "prefix" => Ok(Self::Prefix),
            "portable" => Ok(Self::Portable),
            _ => Err(format!("{text:?} is no layout: expected prefix or portable")),
        }
    }
}

/// What a layer of a merged model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergedLayer {
    /// A layer of the machine, by its number there.
    Compiled(usize),
    /// A layer of zeros that does nothing.
    Neutral(Mixer),
    /// A layer of the base, by its number there.
    Base(usize),
}

/// All layers of a merged model.
pub(crate) fn arrange(layout: Layout, compiled: usize, base: &[Mixer]) -> Result<Vec<MergedLayer>, MergeError> {
    let mut layers = Vec::new();
    match layout {
        Layout::Prefix => layers.extend((0..compiled).map(MergedLayer::Compiled)),
        Layout::Portable => {
            let breaks =
                |number: usize, mixer: Mixer| ((number + 1).is_multiple_of(INTERVAL)) != (mixer == Mixer::Full);
            if let Some(layer) = (0..).zip(base).find_map(|(number, &mixer)| breaks(number, mixer).then_some(number)) {
                return Err(MergeError::Interval { layer });
            }
            let slots = compiled.next_multiple_of(INTERVAL - 1);
            for slot in 0..slots {
                layers.push(if slot < compiled {
                    MergedLayer::Compiled(slot)
                } else {
                    MergedLayer::Neutral(Mixer::Linear)
                });
                if (slot + 1).is_multiple_of(INTERVAL - 1) {
                    layers.push(MergedLayer::Neutral(Mixer::Full));
                }
            }
        }
    }
    layers.extend((0..base.len()).map(MergedLayer::Base));
    let has_attention = base.contains(&Mixer::Full) || layers.contains(&MergedLayer::Neutral(Mixer::Full));
    if !has_attention {
        // The cache of transformers counts tokens by such a layer.
        layers.push(MergedLayer::Neutral(Mixer::Full));
    }
    Ok(layers)
}

/// Places of the layers that `which` picks.
pub(crate) fn places(layers: &[MergedLayer], which: impl Fn(MergedLayer) -> bool) -> Vec<usize> {
    let all: Range<usize> = 0..layers.len();
    all.filter(|&place| which(layers[place])).collect()
}

#[cfg(test)]
mod tests {
    use MergedLayer::{Base, Compiled, Neutral};

    use super::*;

    const PATTERN: [Mixer; 4] = [Mixer::Linear, Mixer::Linear, Mixer::Linear, Mixer::Full];

    #[test]
    fn prefix() {
        let layers = arrange(Layout::Prefix, 2, &PATTERN[2..]).expect("an order");
        assert_eq!(layers, [Compiled(0), Compiled(1), Base(0), Base(1)]);
        let layers = arrange(Layout::Prefix, 1, &PATTERN[..1]).expect("an order");
        assert_eq!(layers, [Compiled(0), Base(0), Neutral(Mixer::Full)]);
    }

    #[test]
    fn portable() {
        let layers = arrange(Layout::Portable, 4, &PATTERN).expect("an order");
        let (linear, full) = (Neutral(Mixer::Linear), Neutral(Mixer::Full));
        let front = [Compiled(0), Compiled(1), Compiled(2), full, Compiled(3), linear, linear, full];
        assert_eq!(layers[..8], front);
        assert_eq!(layers[8..], [Base(0), Base(1), Base(2), Base(3)]);
        assert_eq!(places(&layers, |layer| matches!(layer, Compiled(_))), [0, 1, 2, 4]);
        let error = arrange(Layout::Portable, 4, &PATTERN[1..]).expect_err("another pattern");
        assert!(matches!(error, MergeError::Interval { layer: 2 }), "{error}");
    }

    #[test]
    fn texts() {
        for layout in [Layout::Prefix, Layout::Portable] {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        assert!("suffix".parse::<Layout>().is_err());
    }
}

//! The choice of the next token from its logits.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::Deserialize;

/// How tokens are chosen. The default is the most likely one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most likely token and leaves nothing to chance.
    pub temperature: f32,
    /// Only so many of the most likely tokens; 0 for all.
    pub top_k: usize,
    /// Only the most likely tokens that make up this probability; 1 for all.
    pub top_p: f32,
    /// Only tokens with at least this share of the most likely one's probability; 0 for all.
    pub min_p: f32,
    /// Divides positive logits of tokens that have occurred, and multiplies negative ones; 1 for none.
    pub repetition_penalty: f32,
    /// Taken from the logits of tokens that were generated.
    pub presence_penalty: f32,
    /// Taken from the logit of a generated token for each time.
    pub frequency_penalty: f32,
    /// Where chance begins.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            seed: 0,
        }
    }
}

/// The fields of `generation_config.json` that say how a checkpoint wants to be sampled.
#[derive(Debug, Deserialize)]
struct GenerationConfig {
    #[serde(default)]
    do_sample: bool,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
}

impl Sampling {
    /// What a `generation_config.json` asks for; fields that it lacks stay as in the default.
    ///
    /// # Errors
    /// If the text is no such file.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let config: GenerationConfig = serde_json::from_str(text)?;
        let default = Self::default();
        Ok(Self {
            temperature: if config.do_sample { config.temperature.unwrap_or(1.0) } else { 0.0 },
            top_k: config.top_k.unwrap_or(default.top_k),
            top_p: config.top_p.unwrap_or(default.top_p),
            min_p: config.min_p.unwrap_or(default.min_p),
            repetition_penalty: config.repetition_penalty.unwrap_or(default.repetition_penalty),
            ..default
        })
    }

    /// What is wrong with the values, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let share = |value: f32| (0.0..=1.0).contains(&value);
        let checks = [
            ("temperature", self.temperature, self.temperature >= 0.0, "0 or more"),
            ("top-p", self.top_p, share(self.top_p) && self.top_p > 0.0, "above 0 and at most 1"),
            ("min-p", self.min_p, share(self.min_p), "0 to 1"),
            ("repetition penalty", self.repetition_penalty, self.repetition_penalty > 0.0, "above 0"),
            ("presence penalty", self.presence_penalty, true, "a number"),
            ("frequency penalty", self.frequency_penalty, true, "a number"),
        ];
        let wrong = checks.into_iter().find(|(_, value, fits, _)| !value.is_finite() || !fits)?;
        Some(format!("{} is {}, but must be {}", wrong.0, wrong.1, wrong.3))
    }
}

/// Chooses tokens, and remembers how many chances it has taken.
#[derive(Debug, Clone)]
pub struct Sampler {
    sampling: Sampling,
    chance: ChaCha8Rng,
}

impl Sampler {
    /// A sampler at the beginning of its chances.
    #[must_use]
    pub fn new(sampling: Sampling) -> Self {
        let chance = ChaCha8Rng::seed_from_u64(sampling.seed);
        Self { sampling, chance }
    }

    /// The next token. `context` is every token so far, of which those from `generated` on are the model's own.
    ///
    /// Of equal logits the lower id counts as more likely. Returns 0 if there are no logits.
    pub fn choose(&mut self, logits: &[f32], context: &[u32], generated: usize) -> u32 {
        let mut scores: Vec<f32> = logits.to_vec();
        self.penalise(&mut scores, context, generated);
        let Sampling { temperature, top_k, top_p, min_p, .. } = self.sampling;
        if temperature == 0.0 {
            return qwengpu_model::argmax(&scores);
        }
        let mut candidates: Vec<(u32, f32)> = (0..).zip(scores).filter(|(_, score)| !score.is_nan()).collect();
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if top_k > 0 {
            candidates.truncate(top_k);
        }
        let Some(&(most_likely, best)) = candidates.first() else { return 0 };
        // Shares of the most likely token's probability, in descending order.
        let mut shares: Vec<(u32, f64)> = candidates
            .into_iter()
            .map(|(token, score)| (token, (f64::from(score - best) / f64::from(temperature)).exp()))
            .take_while(|&(_, share)| share >= f64::from(min_p))
            .collect();
        let whole: f64 = shares.iter().map(|&(_, share)| share).sum();
        let mut sum = 0.0;
        let kept = shares.iter().take_while(|&&(_, share)| {
            let begun = sum < f64::from(top_p) * whole;
            sum += share;
            begun
        });
        let kept = kept.count().max(1);
        shares.truncate(kept);
        let whole: f64 = shares.iter().map(|&(_, share)| share).sum();
        // 53 bits, as many as a double holds.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
        let mut left = (self.chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * whole;
        for &(token, share) in &shares {
            left -= share;
            if left < 0.0 {
                return token;
            }
        }
        shares.last().map_or(most_likely, |&(token, _)| token)
    }

    fn penalise(&self, scores: &mut [f32], context: &[u32], generated: usize) {
        let Sampling { repetition_penalty, presence_penalty, frequency_penalty, .. } = self.sampling;
        if (repetition_penalty - 1.0).abs() > 0.0 {
            let mut seen: Vec<u32> = context.to_vec();
            seen.sort_unstable();
            seen.dedup();
            for token in seen {
                if let Some(score) = scores.get_mut(token as usize) {
                    *score = if *score > 0.0 { *score / repetition_penalty } else { *score * repetition_penalty };
                }
            }
        }
        if presence_penalty.abs() > 0.0 || frequency_penalty.abs() > 0.0 {
            let mut own: Vec<u32> = context.get(generated..).unwrap_or_default().to_vec();
            own.sort_unstable();
            for times in own.chunk_by(|a, b| a == b) {
                if let Some(score) = scores.get_mut(times[0] as usize) {
                    #[expect(clippy::cast_precision_loss, reason = "a count of tokens in one reply")]
                    let count = times.len() as f32;
                    *score -= presence_penalty + frequency_penalty * count;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 4] = [1.0, 3.0, 2.0, 3.0];

    /// How often each token is chosen in 4000 draws.
    fn counts(sampling: Sampling) -> [usize; 4] {
        let mut sampler = Sampler::new(sampling);
        let mut counts = [0; 4];
        (0..4000).for_each(|_| counts[sampler.choose(&LOGITS, &[], 0) as usize] += 1);
        counts
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        assert_eq!(counts(Sampling::default()), [0, 4000, 0, 0]);
    }

    #[test]
    fn shares_are_those_of_the_softmax() {
        let found = counts(Sampling { temperature: 1.0, ..Sampling::default() });
        // e^-2, 1, e^-1, 1 of their sum.
        let expected = [216, 1597, 588, 1597];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(found.abs_diff(expected) < 120, "{found} instead of {expected}");
        }
        let again = counts(Sampling { temperature: 1.0, ..Sampling::default() });
        assert_eq!(found, again, "the same seed gives the same tokens");
        assert_ne!(found, counts(Sampling { temperature: 1.0, seed: 1, ..Sampling::default() }));
    }

    #[test]
    fn limits_leave_the_most_likely() {
        let hot = Sampling { temperature: 1.0, ..Sampling::default() };
        let silent = |sampling: Sampling| counts(sampling).map(|count| count == 0);
        assert_eq!(silent(Sampling { top_k: 3, ..hot.clone() }), [true, false, false, false]);
        assert_eq!(silent(Sampling { top_k: 1, ..hot.clone() }), [true, false, true, true]);
        assert_eq!(silent(Sampling { min_p: 0.2, ..hot.clone() }), [true, false, false, false]);
        assert_eq!(silent(Sampling { min_p: 0.5, ..hot.clone() }), [true, false, true, false]);
        assert_eq!(silent(Sampling { top_p: 0.5, ..hot.clone() }), [true, false, true, false]);
        assert_eq!(silent(Sampling { top_p: 0.01, ..hot.clone() }), [true, false, true, true]);
        assert_eq!(silent(Sampling { top_p: 0.9, ..hot }), [true, false, false, false]);
    }

    #[test]
    fn penalties_change_the_choice() {
        let choose = |sampling, context: &[u32], generated| Sampler::new(sampling).choose(&LOGITS, context, generated);
        let repetition = Sampling { repetition_penalty: 2.0, ..Sampling::default() };
        assert_eq!(choose(repetition.clone(), &[1], 1), 3);
        assert_eq!(choose(repetition, &[1, 3], 2), 2);
        let presence = Sampling { presence_penalty: 1.5, ..Sampling::default() };
        assert_eq!(choose(presence.clone(), &[1, 3], 2), 1, "the prompt does not count");
        assert_eq!(choose(presence, &[1, 3], 0), 2);
        let frequency = Sampling { frequency_penalty: 0.6, ..Sampling::default() };
        assert_eq!(choose(frequency.clone(), &[1, 1, 3], 0), 3);
        assert_eq!(choose(frequency, &[1, 1, 3, 3], 0), 2);
        assert_eq!(
            Sampler::new(Sampling { repetition_penalty: 2.0, ..Sampling::default() }).choose(&[-1.0, -3.0], &[0], 0),
            0
        );
    }

    #[test]
    fn a_checkpoint_says_how_it_is_sampled() {
        let text = r#"{"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [1]}"#;
        let sampling = Sampling::from_json(text).expect("a configuration");
        assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p), (0.6, 20, 0.95));
        assert_eq!(Sampling::from_json("{}").expect("a configuration"), Sampling::default());
        assert!(Sampling { top_p: 0.0, ..Sampling::default() }.problem().is_some());
        assert!(Sampling { temperature: f32::NAN, ..Sampling::default() }.problem().is_some());
        assert_eq!(Sampling::default().problem(), None);
    }
}

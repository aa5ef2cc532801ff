#!/usr/bin/env python3
"""Write a small random Qwen3.5 checkpoint and what transformers computes with it, for the parity tests.

The directory OUT gets config.json, generation_config.json, the weights (one safetensors file, or shards with
--shard-size) and reference.safetensors. Weights are drawn so that every part of a layer shows in the result:
decays from slow to fast, write strengths around 1/2, norm weights off their neutral value. The same options
give the same files.

reference.safetensors (f32 whatever the checkpoint's dtype; T tokens, D hidden, V vocabulary):

    input_ids               [T] i64
    RUN.hidden.0            [T, D]  behind the embedding; RUN.hidden.N: behind layer N-1
    RUN.normed              [T, D]  behind the final norm
    RUN.logits              [T, V]
    RUN.recurrent.L         [value heads, dk, dv]  final state of linear_attention layer L
    RUN.conv.L              [2*K*dk + V*dv, kernel]  last inputs of its convolution, the newest last
    RUN.key.L, RUN.value.L  [kv heads, T, head dim]  cache of full_attention layer L, keys after rotation

RUN is prefill (one forward of all tokens), decode (one token a forward) or resume (two forwards of half each).
Asks for transformers 5.14 or later.
"""
import argparse
import inspect
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import DynamicCache, GenerationConfig
from transformers.models.qwen3_5 import (Qwen3_5Config, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration,
                                         Qwen3_5TextConfig)

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4, help="every fourth is full_attention; at least 4")
    parser.add_argument("--linear-heads", type=int, nargs=2, default=[2, 4], metavar=("K", "V"))
    parser.add_argument("--linear-head-dims", type=int, nargs=2, default=[128, 128], metavar=("DK", "DV"))
    parser.add_argument("--head-dim", type=int, default=256)
    parser.add_argument("--vocab", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=83, help="over 64 crosses a chunk of the delta rule")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vlm", action="store_true", help="multimodal naming, with a small vision tower")
    parser.add_argument("--untied", action="store_true", help="an lm_head of its own")
    parser.add_argument("--shard-size", help="largest shard, as 500KB; default: one file")
    options = parser.parse_args()
    if options.layers < 4 or options.linear_heads[1] % options.linear_heads[0]:
        parser.error("--layers must be at least 4, and V a multiple of K")
    return options


def make_config(options):
    pairs = options.head_dim // 8  # rotated pairs: a quarter of the head, two dimensions each
    section = pairs // 3
    return Qwen3_5TextConfig(
        vocab_size=options.vocab, hidden_size=options.hidden, intermediate_size=3 * options.hidden,
        num_hidden_layers=options.layers, num_attention_heads=4, num_key_value_heads=2, head_dim=options.head_dim,
        linear_num_key_heads=options.linear_heads[0], linear_num_value_heads=options.linear_heads[1],
        linear_key_head_dim=options.linear_head_dims[0], linear_value_head_dim=options.linear_head_dims[1],
        max_position_embeddings=4096, tie_word_embeddings=not options.untied, eos_token_id=options.vocab - 1,
        rope_parameters={"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25,
                         "mrope_section": [pairs - 2 * section, section, section], "mrope_interleaved": True})


def make_model(options):
    config = make_config(options)
    if options.vlm:
        vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2,
                  "out_hidden_size": options.hidden, "num_position_embeddings": 16}
        model = Qwen3_5ForConditionalGeneration(Qwen3_5Config(
            text_config=config.to_dict(), vision_config=vision, tie_word_embeddings=not options.untied))
    else:
        model = Qwen3_5ForCausalLM(config)
    generator = torch.Generator().manual_seed(options.seed)
    # With tied embeddings of size 1 the logits would be of size sqrt(hidden): the final norm is smaller then.
    final = 1.0 if options.untied else options.hidden ** -0.5

    @torch.no_grad()
    def draw(name, parameter):
        normal = torch.randn(parameter.shape, generator=generator)
        if name in ("model.norm.weight", "model.language_model.norm.weight"):
            return normal * (0.2 * final) + (final - 1)
        if name.endswith("A_log"):
            return torch.log(torch.rand(parameter.shape, generator=generator) * 2 + 0.01)
        if name.endswith("dt_bias"):
            return normal * 1.5 - 1
        if name.endswith("linear_attn.norm.weight"):
            return normal * 0.2 + 1
        if name.endswith("norm.weight"):
            return normal * 0.2
        if name.endswith("embed_tokens.weight"):
            return normal
        return normal * parameter[0].numel() ** -0.5

    for name, parameter in model.named_parameters():
        parameter.data.copy_(draw(name, parameter))
    return model.to(DTYPES[options.dtype]).eval()


@torch.no_grad()
def run(model, ids, length):
    """What one cache and all activations hold after forwards of `length` tokens each."""
    text = getattr(model.model, "language_model", model.model)
    cache = DynamicCache(config=text.config)
    # transformers 5.24 renamed the argument
    argument = "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"
    watched = {"hidden.0": text.embed_tokens, "normed": text.norm, "logits": model.lm_head}
    watched.update((f"hidden.{i + 1}", layer) for i, layer in enumerate(text.layers))
    parts = {name: [] for name in watched}

    def watch(name):
        return lambda _module, _inputs, output: parts[name].append(output[0])

    hooks = [module.register_forward_hook(watch(name)) for name, module in watched.items()]
    for piece in ids.split(length):
        model(input_ids=piece[None], use_cache=True, **{argument: cache})
    for hook in hooks:
        hook.remove()
    seen = {name: torch.cat(pieces) for name, pieces in parts.items()}
    for i, layer in enumerate(cache.layers):
        if text.config.layer_types[i] == "linear_attention":
            seen[f"recurrent.{i}"], seen[f"conv.{i}"] = layer.recurrent_states[0][0], layer.conv_states[0][0]
        else:
            seen[f"key.{i}"], seen[f"value.{i}"] = layer.keys[0], layer.values[0]
    return {name: tensor.float().contiguous().clone() for name, tensor in seen.items()}


def main():
    options = parse_options()
    model = make_model(options)
    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=options.vocab - 1)
    model.save_pretrained(options.out, **({"max_shard_size": options.shard_size} if options.shard_size else {}))
    # Loaded anew: a model cast as a whole would round the rotary frequencies, too.
    model = type(model).from_pretrained(options.out, dtype=DTYPES[options.dtype]).eval()
    generator = torch.Generator().manual_seed(options.seed + 1)
    ids = torch.randint(options.vocab, (options.tokens,), generator=generator)
    reference = {"input_ids": ids}
    for name, length in {"prefill": options.tokens, "decode": 1, "resume": (options.tokens + 1) // 2}.items():
        reference.update((f"{name}.{key}", tensor) for key, tensor in run(model, ids, length).items())
    save_file(reference, options.out / "reference.safetensors")


if __name__ == "__main__":
    main()

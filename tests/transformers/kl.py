#!/usr/bin/env python3
"""How far a merged checkpoint is from its base: KL(base || merged) of the next token, in unmodified transformers.

    kl.py BASE MERGED [--dtype float32|bfloat16] [--text FILE ...] [--positions N] [--max-kl X]

Texts are encoded by the base's tokenizer; the merged model's must give the same ids. Both models see the same windows,
each in one forward. The distributions are over the base's rows for the base, and over all rows for the merged model, so
that a probability which machine tokens take counts as well. Exits 1 if the largest KL is above the limit (1e-8 in
float32, 7e-5 in bfloat16).
"""
import argparse
import gc
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

LIMITS = {"float32": 1e-8, "bfloat16": 7e-5}
ROOT = Path(__file__).resolve().parents[2]
TEXTS = [ROOT / "docs" / name for name in ("numerics.md", "machine.md", "isa.md", "ptx.md", "circuit.md")]


@torch.no_grad()
def log_probabilities(directory, dtype, windows):
    """Log-probabilities [positions, vocabulary] in f64 of every window, one after another."""
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).eval()
    for window in windows:
        logits = model(input_ids=window[None], use_cache=False).logits[0]
        yield torch.log_softmax(logits.double(), dim=-1)


def encode(directory, texts):
    tokenizer = AutoTokenizer.from_pretrained(directory)
    return [tokenizer.encode(text, add_special_tokens=False) for text in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("merged", type=Path)
    parser.add_argument("--dtype", choices=LIMITS, default="float32")
    parser.add_argument("--text", type=Path, nargs="+", default=TEXTS)
    parser.add_argument("--positions", type=int, default=2048, help="at least 2000 say something")
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--max-kl", type=float)
    args = parser.parse_args()
    dtype = getattr(torch, args.dtype)
    limit = LIMITS[args.dtype] if args.max_kl is None else args.max_kl

    texts = [path.read_text() for path in args.text]
    encoded = encode(args.base, texts)
    if encode(args.merged, texts) != encoded:
        sys.exit("FAILED: the merged tokenizer gives other ids for plain text")
    ids = torch.tensor([token for text in encoded for token in text][:args.positions])
    if len(ids) < args.positions:
        sys.exit(f"FAILED: the texts have {len(ids)} tokens, {args.positions} positions are wanted")
    windows = torch.split(ids, args.window)

    # One model at a time: the base's distributions are kept, f32 halves what that takes.
    base = [window.float() for window in log_probabilities(args.base, dtype, windows)]
    gc.collect()
    kls, flips, taken, entropy, rest = [], 0, 0.0, 0.0, 0.0
    for expected, got in zip(base, log_probabilities(args.merged, dtype, windows)):
        # Rounding to f32 has to go before differences of 1e-8 mean anything.
        expected = torch.log_softmax(expected.double(), dim=-1)
        rows = expected.shape[1]
        rest = max(rest, got[:, rows:].exp().sum(dim=-1).max().item())
        kls.append((expected.exp() * (expected - got[:, :rows])).sum(dim=-1))
        flips += (expected.argmax(dim=-1) != got.argmax(dim=-1)).sum().item()
        entropy += -(expected.exp() * expected).sum().item()
        taken = max(taken, (expected - got[:, :rows]).abs().max().item())
    kls = torch.cat(kls)
    print(f"{len(kls)} positions in {args.dtype}: KL max {kls.max().item():.3e}, mean {kls.mean().item():.3e}; "
          f"argmax differs at {flips}; largest difference of a log-probability {taken:.3e}; "
          f"probability of machine tokens at most {rest:.3e}; entropy of the base {entropy / len(kls):.2f} nats")
    if not kls.max().item() <= limit:
        sys.exit(f"FAILED: KL is above {limit:g}")


if __name__ == "__main__":
    main()

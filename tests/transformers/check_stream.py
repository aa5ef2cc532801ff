#!/usr/bin/env python3
"""Does an emitted checkpoint speak launches in unmodified transformers?

A stream is what `qwengpu tokens` writes: {"prompt": [ids], "records": [ids]}. Each check starts from an empty cache:

    decode    the prompt in two forwards, cut at a place that is drawn, then one token at a time
    prefill   prompt and records in one forward
    cut       a part in one forward, then most of the rest in another, then one token at a time; the place is drawn
    generate  the model's own generate(), with the generation_config of the checkpoint

In the first three, the record at a position is right if it has the largest logit behind the tokens before it. The
margin is its logit less the largest other one; a tie is wrong, for another engine may break it the other way.

    check_stream.py CHECKPOINT STREAM... [--dtype float32|bfloat16] [--checks ...]

Exit status: 0 everything is right, 1 something is not, 2 the input cannot be used.
"""

import argparse
import inspect
import json
import pathlib
import random
import sys
import time

import torch
import transformers

CHECKS = ("decode", "prefill", "cut", "generate")
# Positions whose logits are kept at the same time.
ROWS = 128
# Tokens at the end of a stream that `cut` feeds one at a time.
SINGLE = 8


class BadInput(Exception):
    pass


def read_stream(path):
    try:
        stream = json.loads(path.read_text())
        parts = stream["prompt"], stream["records"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: {error}") from error
    for name, part in zip(("prompt", "records"), parts):
        if not part or any(type(token) is not int for token in part):
            raise BadInput(f"{path}: {name} must be a list of token ids, and not empty")
    return parts


def read_model(path, dtype):
    if not (path / "config.json").is_file():
        raise BadInput(f"{path}: there is no config.json")
    try:
        model, notes = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=getattr(torch, dtype), output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{path}: {error}") from error
    complaints = {kind: sorted(map(str, names)) for kind, names in notes.items() if names}
    if complaints:
        raise BadInput(f"{path}: the weights are not those of the model: {complaints}")
    return model.eval()


class Run:
    """One pass over the stream: tokens go in piece by piece, every prediction of a record is compared."""

    def __init__(self, model, prompt, records):
        self.model = model
        self.tokens = torch.tensor([prompt + records])
        self.first = len(prompt)
        # Its name has changed between versions.
        name = "cache" if "cache" in inspect.signature(model.model.forward).parameters else "past_key_values"
        self.cache = {name: transformers.DynamicCache(config=model.config)}
        self.fed = 0
        self.wrong = []
        self.margin = float("inf")

    def feed(self, count):
        """Consumes tokens; the hidden state of each one before a record must predict it."""
        begin, end = self.fed, self.fed + count
        output = self.model.model(self.tokens[:, begin:end], use_cache=True, **self.cache)
        hidden = output.last_hidden_state[0]
        # The token at p predicts the one at p + 1.
        for start in range(max(begin, self.first - 1), min(end, self.tokens.shape[1] - 1), ROWS):
            stop = min(start + ROWS, end, self.tokens.shape[1] - 1)
            self.compare(start, self.model.lm_head(hidden[start - begin:stop - begin]).float())
        self.fed = end

    def compare(self, start, logits):
        expected = self.tokens[0, start + 1:start + 1 + len(logits)]
        own = logits.gather(1, expected[:, None])[:, 0]
        others = logits.scatter(1, expected[:, None], -torch.inf).amax(1)
        margins = torch.where(logits.isfinite().all(1), own - others, torch.tensor(-torch.inf))
        self.margin = min(self.margin, float(margins.min()))
        for row in (margins <= 0).nonzero()[:, 0].tolist():
            record = start + 1 + row - self.first
            self.wrong.append((record, int(expected[row]), int(logits[row].argmax()), float(margins[row])))

    def finish(self, pieces):
        """Feeds pieces of these sizes, then single tokens, up to the last record, which predicts nothing."""
        last = self.tokens.shape[1] - 1
        for size in pieces:
            self.feed(min(size, last - self.fed))
        while self.fed < last:
            self.feed(1)


def check_pieces(name, model, prompt, records, pieces):
    begun = time.monotonic()
    run = Run(model, prompt, records)
    run.finish(pieces)
    seconds = time.monotonic() - begun
    right = len(records) - len(run.wrong)
    print(f"{name}: {right} of {len(records)} records right, smallest margin {run.margin:g}, {seconds:.1f} s")
    if run.wrong:
        record, expected, got, margin = run.wrong[0]
        print(f"  first wrong: record {record} should be token {expected}, is {got} (margin {margin:g})")
    return not run.wrong


def check_generate(model, prompt, records):
    ids = torch.tensor([prompt])
    made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=len(records) + 1)
    made = made[0, len(prompt):].tolist()
    same = next((n for n, pair in enumerate(zip(made, records)) if pair[0] != pair[1]), min(len(made), len(records)))
    print(f"generate: {len(made)} tokens, the first {same} of {len(records)} records right")
    return made == records


def check_stream(model, prompt, records, options):
    total = len(prompt) + len(records)
    dice = random.Random(options.seed)
    results = []
    for check in options.checks:
        if check == "generate":
            results.append(check_generate(model, prompt, records))
            continue
        end = {"decode": len(prompt), "prefill": total, "cut": total - SINGLE}[check]
        name, pieces = check, [end]
        if check != "prefill":
            place = dice.randrange(1, end)
            name, pieces = f"{check}, cut at {place}", [place, end - place]
        results.append(check_pieces(name, model, prompt, records, pieces))
    return all(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("streams", type=pathlib.Path, nargs="+")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--checks", nargs="+", choices=CHECKS, default=CHECKS)
    parser.add_argument("--seed", type=int, default=0, help="for cut")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        streams = [(path, *read_stream(path)) for path in options.streams]
        model = read_model(options.checkpoint, options.dtype)
        size = model.config.get_text_config().vocab_size
        for path, prompt, records in streams:
            if not all(0 <= token < size for token in prompt + records):
                raise BadInput(f"{path}: a token is outside the vocabulary of {size}")
    except BadInput as error:
        print(f"check_stream: {error}", file=sys.stderr)
        return 2
    print(f"{options.checkpoint} in {options.dtype}, transformers {transformers.__version__}")
    right = True
    with torch.no_grad():
        for path, prompt, records in streams:
            print(f"{path.stem}: {len(prompt)} prompt tokens, {len(records)} records")
            right &= check_stream(model, prompt, records, options)
    print("right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

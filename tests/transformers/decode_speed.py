"""Tokens a second of greedy decoding and of a prefill in transformers, for a comparison with the dense engine.

    python3 tests/transformers/decode_speed.py CHECKPOINT --dtype bfloat16 --threads 2
    python3 tests/transformers/decode_speed.py CHECKPOINT --prompt-ids ids.json --json

`qwengpu bench --only transformers --transformers PYTHON` runs it in turns with the dense engine, on the same
checkpoint, threads and tokens. The reference of the delta rule takes a loop in Python through a prefill, so prompts are
short here.
"""

import argparse
import json
import time
from pathlib import Path

import torch
import transformers


def timed(work):
    """What the work gives, and its seconds: on the wall, and of all processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, [time.perf_counter() - wall, time.process_time() - cpu]


def measure(model, prompt, tokens):
    """A prefill and greedy steps behind it; first calls allocate, so a short one comes before each."""

    def forward(ids, cache=None):
        result = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return result.logits[:, -1:].argmax(-1), result.past_key_values

    with torch.inference_mode():
        forward(prompt[:, :2])
        (token, cache), prefill = timed(lambda: forward(prompt))
        spoken, steps = [int(token)], []
        for _ in range(tokens + 1):
            (token, cache), seconds = timed(lambda: forward(token, cache))  # noqa: B023, called at once
            spoken.append(int(token))
            steps.append(seconds)
    return prefill, steps[1:], spoken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=8, help="tokens to decode, besides the one that comes first")
    parser.add_argument("--prompt", type=int, default=64, help="tokens of the prefill, any ones")
    parser.add_argument("--prompt-ids", metavar="FILE", help="the tokens of the prefill: a JSON list of ids")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.tokens < 1 or arguments.prompt < 1 or arguments.threads < 1:
        parser.error("--tokens, --prompt and --threads are at least 1")
    torch.set_num_threads(arguments.threads)
    dtype = getattr(torch, arguments.dtype)
    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=dtype).eval()
    vocabulary = model.config.get_text_config().vocab_size
    if arguments.prompt_ids:
        ids = json.loads(Path(arguments.prompt_ids).read_text())
    else:
        ids = [i * 7919 % vocabulary for i in range(arguments.prompt)]
    prefill, steps, spoken = measure(model, torch.tensor([ids]), arguments.tokens)
    walls = [wall for wall, _ in steps]
    report = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "dtype": arguments.dtype,
        "threads": arguments.threads,
        "prompt": len(ids),
        "prefill_tokens_per_second": len(ids) / prefill[0],
        "decode_tokens_per_second_best": 1 / min(walls),
        "decode_tokens_per_second_mean": len(walls) / sum(walls),
        # Seconds on the wall and of all processors.
        "prefill_seconds": prefill,
        "step_seconds": steps,
        # What the model says behind the prompt and behind each step, the one outside the measurement included.
        "spoken": spoken,
    }
    if arguments.json:
        print(json.dumps(report))
        return
    print(f"transformers {report['transformers']}, torch {report['torch']}, {arguments.dtype}, {arguments.threads} threads:")
    best, mean = report["decode_tokens_per_second_best"], report["decode_tokens_per_second_mean"]
    print(f"  decoding {best:.2f} tokens/s (mean {mean:.2f})")
    print(f"  prefill of {len(ids)}: {report['prefill_tokens_per_second']:.1f} tokens/s")


if __name__ == "__main__":
    main()

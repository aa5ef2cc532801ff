"""Tokens a second of greedy decoding and of a prefill in transformers, for a comparison with the dense engine.

    python3 tests/transformers/decode_speed.py CHECKPOINT --dtype bfloat16 --threads 2
    python3 tests/transformers/decode_speed.py CHECKPOINT --engine target/release/examples/dense --json

The same checkpoint, the same number of threads. With --engine, the program that `qwengpu-model/examples/dense.rs`
becomes is run behind it, and its figures are divided by those of transformers. What is decoded and prefilled are tokens
that both take for the same work: any token meets every weight when it comes alone.
"""

import argparse
import json
import re
import subprocess
import time

import torch
from transformers import AutoModelForCausalLM

NAMES = {"bfloat16": "bf16", "float32": "f32"}


def transformers_speed(arguments):
    torch.set_num_threads(arguments.threads)
    model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=getattr(torch, arguments.dtype)).eval()
    vocabulary = model.config.get_text_config().vocab_size
    prompt = torch.tensor([[i * 7919 % vocabulary for i in range(arguments.prompt)]])
    prefills = []
    with torch.inference_mode():
        model(prompt[:, :64], use_cache=True)  # first calls allocate
        for _ in range(arguments.rounds):
            begun = time.perf_counter()
            result = model(prompt, use_cache=True, logits_to_keep=1)
            prefills.append(time.perf_counter() - begun)
        cache = result.past_key_values
        # One step outside the measurement, then the best of the steps: others may compute meanwhile.
        token = result.logits[:, -1:].argmax(-1)
        steps = []
        for _ in range(arguments.tokens + 1):
            begun = time.perf_counter()
            result = model(token, past_key_values=cache, use_cache=True)
            token = result.logits[:, -1:].argmax(-1)
            steps.append(time.perf_counter() - begun)
    return {"decode": 1 / min(steps[1:]), "prefill": arguments.prompt / min(prefills)}


def engine_speed(arguments):
    """Runs the example, which prints figures for people: the last one of a line is tokens a second."""
    command = [arguments.engine, arguments.checkpoint, NAMES[arguments.dtype], str(arguments.threads)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    def figure(name):
        found = [re.search(r"([0-9.]+) tokens/s", line) for line in lines if line.startswith(name)]
        if not found or found[0] is None:
            raise SystemExit(f"{arguments.engine} printed no figure for {name}: is it the example dense?")
        return float(found[0][1])

    return {"decode": figure("decoding"), "prefill": figure("prefill")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--dtype", default="bfloat16", choices=NAMES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=8, help="tokens to decode")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prefill; the example's are 512")
    parser.add_argument("--rounds", type=int, default=1, help="prefills, of which the best counts")
    parser.add_argument("--engine", metavar="PROGRAM", help="the example dense, to be compared")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    figures = {"transformers": transformers_speed(arguments)}
    if arguments.engine:
        figures["engine"] = engine_speed(arguments)
        figures["engine_to_transformers"] = {
            name: figures["engine"][name] / own for name, own in figures["transformers"].items()
        }
    if arguments.json:
        print(json.dumps({"dtype": NAMES[arguments.dtype], "threads": arguments.threads, **figures}))
        return
    print(f"{NAMES[arguments.dtype]}, {arguments.threads} threads:")
    for name, own in figures["transformers"].items():
        line = f"  {name:8} transformers {own:7.2f} tokens/s"
        if arguments.engine:
            line += f", dense engine {figures['engine'][name]:7.2f}: {figures['engine_to_transformers'][name]:.2f} times"
        print(line)


if __name__ == "__main__":
    main()

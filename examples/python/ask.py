#!/usr/bin/env python3
"""A merged checkpoint in plain transformers: ask a question, run what the model asks its GPU for, let it finish.

    ask.py MERGED QUESTION [--program target/release/qwengpu]

The program only writes the launch as token ids; the model's own forward pass executes it, in a context of its own so
that the text's stays clean, and the result is read from the recurrent states. The request may be an expression with one
64-bit result, such as `12 * 34`.
"""
import argparse
import json
import pathlib
import subprocess

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("merged", type=pathlib.Path)
parser.add_argument("question")
parser.add_argument("--program", default="target/release/qwengpu")
options = parser.parse_args()

tokenizer = AutoTokenizer.from_pretrained(options.merged)
model = AutoModelForCausalLM.from_pretrained(options.merged, dtype=torch.float32).eval()
manifest = json.loads((options.merged / "qwengpu.json").read_text())


def go_on(ids, **how):
    """Greedy decoding behind ids; all tokens so far, and the cache."""
    made = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
                          return_dict_in_generate=True, **how)
    return made.sequences[0].tolist(), made.past_key_values


def word(cache, number):
    """A 32-bit word of the GPU's global memory: 128 in a recurrent state is a bit that is set."""
    value = 0
    for byte in range(4):
        place = next(state for state in manifest["states"] if state["name"] == f"memory/global/byte{byte}")
        state = cache.layers[place["layer"]].recurrent_states
        state = (state[0] if isinstance(state, dict) else state)[0, place["heads"][0][0]]
        value |= sum((state[number, bit].item() > 64) << (8 * byte + bit) for bit in range(8))
    return value


message = [{"role": "user", "content": options.question}]
prompt = tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
ids = tokenizer.encode(prompt, add_special_tokens=False)
ids, _ = go_on(ids, max_new_tokens=128, stop_strings=["</gpu>"], tokenizer=tokenizer)
text = tokenizer.decode(ids)
if text.endswith("</gpu>"):
    request = text.rsplit("<gpu>", 1)[1].removesuffix("</gpu>")
    command = [options.program, "compute", request, "--model", options.merged, "--tokens"]
    launch = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    _, cache = go_on(launch["prompt"], max_new_tokens=100_000, eos_token_id=manifest["halt_token_id"])
    result = int.from_bytes(b"".join(word(cache, n).to_bytes(4, "little") for n in (0, 1)), "little", signed=True)
    ids, _ = go_on(ids + tokenizer.encode(f" = {result}", add_special_tokens=False), max_new_tokens=128)
print(tokenizer.decode(ids, skip_special_tokens=True))

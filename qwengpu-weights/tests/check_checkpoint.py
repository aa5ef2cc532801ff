#!/usr/bin/env python3
"""Loads a checkpoint with unmodified transformers and compares it with an expectation.

    check_checkpoint.py CHECKPOINT EXPECTATION.json

Checked: no tensor is missing or unexpected, the dtype is the file's, every machine token's text is its id, other text
comes back from its ids, and greedy decoding gives the expected tokens: by generate(), token by token, and in one
forward. The exit status is 1 if anything differs.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


torch.set_num_threads(1)  # the models are small


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def check_tokenizer(tokenizer, expected):
    first = expected["first_machine_token"]
    for number, text in enumerate(expected["texts"]):
        check(tokenizer.encode(text) == [first + number], f"{text} is {tokenizer.encode(text)}, not [{first + number}]")
        check(tokenizer.convert_ids_to_tokens(first + number) == text, f"id {first + number} is not {text}")
    check(len(tokenizer) == first + len(expected["texts"]), f"{len(tokenizer)} tokens")
    check(tokenizer.eos_token_id == expected["halt_token_id"], f"eos is {tokenizer.eos_token_id}")
    check(tokenizer.pad_token_id == 256, f"pad is {tokenizer.pad_token_id}")
    for text in ["plain text", " leading  spaces ", "tab\t\nline", "naïve 🦀 你好", "<|no such token|>", "a<|halt|> b"]:
        check(tokenizer.decode(tokenizer.encode(text)) == text, f"{text!r} does not come back")
    check(tokenizer.encode("A b") == [65, 32, 98], f"bytes are not their ids: {tokenizer.encode('A b')}")


@torch.no_grad()
def check_stream(model, first, stream):
    prompt = torch.tensor([[first + number for number in stream["prompt"]]])
    answer = [first + number for number in stream["answer"]]
    generated = model.generate(prompt, attention_mask=torch.ones_like(prompt))[0, prompt.shape[1]:].tolist()
    check(generated == answer, f"generate: {generated}, not {answer}")
    whole = torch.cat([prompt, torch.tensor([answer])], 1)
    last = prompt.shape[1] - 1
    replayed = model(whole, use_cache=True).logits[0].argmax(1)[last:-1].tolist()
    check(replayed == answer, f"one forward: {replayed}, not {answer}")
    cache, decoded = None, []
    for position in range(whole.shape[1] - 1):
        output = model(whole[:, position:position + 1], past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        decoded.append(output.logits[0, -1].argmax().item())
    check(decoded[last:] == answer, f"token by token: {decoded[last:]}, not {answer}")


def main():
    directory, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        expected = json.load(file)
    check_tokenizer(AutoTokenizer.from_pretrained(directory), expected)
    model, info = AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
    problems = {name: found for name, found in info.items() if found}
    check(not problems, f"loading: {problems}")
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[expected["dtype"]]
    check(model.dtype == dtype, f"the model is in {model.dtype}")
    check(model.config.vocab_size % 64 == 0, f"{model.config.vocab_size} rows")
    check(not model.model.embed_tokens.weight[:expected["first_machine_token"]].any(), "language tokens are not zero")
    check(not model.lm_head.weight[:expected["first_machine_token"]].any(), "language tokens have codes")
    for stream in expected["streams"]:
        check_stream(model, expected["first_machine_token"], stream)


if __name__ == "__main__":
    main()

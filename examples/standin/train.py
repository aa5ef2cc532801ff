#!/usr/bin/env python3
"""Trains the stand-in: a Qwen3.5 of 1.8 million parameters that answers questions of tasks.py with GPU spans.

    train.py single --steps 1100
    train.py checkpoint --from single --conversations 0.3 --steps 250 --rate 8e-4

The first command learns single questions, the second goes on with conversations of two or three. Everything is drawn
from the seed; sums depend on the number of threads as well. Needs torch and transformers 5.14 or later. The checkpoint
is written in bf16, with a tokenizer and a chat template.
"""

import argparse
import functools
import json
import math
import pathlib
import random
import time

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.models.qwen3_5 import modeling_qwen3_5, Qwen3_5ForCausalLM, Qwen3_5TextConfig

import tasks

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = 768
TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def prompt(question):
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def make_tokenizer(dice):
    """Byte-level BPE; every digit stands alone, so that numbers are copied digit by digit."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}|</?gpu>|[^\r\n\p{L}\p{N}]?\p{L}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()

    def texts():
        for _ in range(8000):
            question, pieces = tasks.example(dice)
            yield question + "\n" + "".join(text for text, _ in pieces) + "\n"

    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer


def make_model(tokenizer):
    end = tokenizer.token_to_id("<|im_end|>")
    config = Qwen3_5TextConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=192, intermediate_size=384, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, linear_num_key_heads=1, linear_num_value_heads=2,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, full_attention_interval=4,
        max_position_embeddings=8192, tie_word_embeddings=True, eos_token_id=end,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5,
                         "mrope_section": [6, 5, 5], "mrope_interleaved": True})
    return Qwen3_5ForCausalLM(config)


def encode(tokenizer, turns):
    """Token ids of (question, pieces) in turn, and whether each is the model's own, to be learnt."""
    ids, own = [], []
    for number, (question, pieces) in enumerate(turns):
        part = tokenizer.encode(("\n" if number else "") + prompt(question)).ids
        ids += part
        own += [False] * len(part)
        for text, learnt in pieces:
            part = tokenizer.encode(text).ids
            ids += part
            own += [learnt] * len(part)
        ids.append(tokenizer.token_to_id("<|im_end|>"))
        own.append(True)
    return ids, own


def turns(dice, conversations):
    """One question, or in the given share of cases two or three."""
    count = dice.randint(2, 3) if conversations and dice.random() < conversations else 1
    return [tasks.example(dice) for _ in range(count)]


def batches(tokenizer, dice, tokens, conversations):
    """Endless batches of examples of like length, of about `tokens` tokens each, as (ids, labels)."""
    while True:
        pool = sorted((encode(tokenizer, turns(dice, conversations)) for _ in range(512)), key=lambda pair: len(pair[0]))
        groups, group = [], []
        for pair in pool:
            if group and (len(group) + 1) * len(pair[0]) > tokens:
                groups.append(group)
                group = []
            group.append(pair)
        dice.shuffle(groups)
        for group in groups:
            longest = max(len(ids) for ids, _ in group)
            ids = torch.zeros(len(group), longest, dtype=torch.long)
            labels = torch.full((len(group), longest), -100)
            for row, (tokens_of, own) in enumerate(group):
                ids[row, :len(tokens_of)] = torch.tensor(tokens_of)
                labels[row, :len(tokens_of)] = torch.tensor([t if mine else -100 for t, mine in zip(tokens_of, own)])
            yield ids, labels


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal by Newton and Schulz's iteration (Jordan et al., 2024), in f32:
    torch's own works in bf16, which most CPUs are slow at."""

    def __init__(self, matrices, lr, momentum=0.95, weight_decay=0.05):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for matrix in group["params"]:
                average = self.state[matrix].setdefault("average", torch.zeros_like(matrix))
                average.lerp_(matrix.grad, 1 - group["momentum"])
                update = orthogonal(matrix.grad.lerp(average, group["momentum"]))
                # The size of an update of AdamW, so that one rate serves both.
                scale = 0.2 * max(matrix.shape) ** 0.5
                matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * scale)


def orthogonal(matrix):
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def rate(step, steps, peak):
    warm = min(1.0, (step + 1) / 60)
    return peak * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))


def save(model, tokenizer, out):
    out.mkdir(parents=True, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save(str(out / "tokenizer.json"))
    end = "<|im_end|>"
    (out / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "pad_token": "<|endoftext|>",
        "model_max_length": 8192, "chat_template": TEMPLATE}, indent=2) + "\n")
    ids = {"eos_token_id": [tokenizer.token_to_id(end), tokenizer.token_to_id("<|endoftext|>")],
           "pad_token_id": tokenizer.token_to_id("<|endoftext|>"), "do_sample": False}
    (out / "generation_config.json").write_text(json.dumps(ids, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--from", dest="start", type=pathlib.Path, help="a checkpoint of this script to go on from")
    parser.add_argument("--conversations", type=float, default=0.0, help="share of examples with several questions")
    parser.add_argument("--steps", type=int, default=1100)
    parser.add_argument("--tokens", type=int, default=3072, help="of a batch")
    parser.add_argument("--rate", type=float, default=4e-3, help="the peak of the learning rate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # Shorter chunks than by default: examples are short, and are padded to whole chunks.
    modeling_qwen3_5.torch_chunk_gated_delta_rule = functools.partial(
        modeling_qwen3_5.torch_chunk_gated_delta_rule, chunk_size=32)
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokenizer = make_tokenizer(random.Random(f"tokenizer {options.seed}"))
    model = make_model(tokenizer)
    if options.start:
        model = Qwen3_5ForCausalLM.from_pretrained(options.start, dtype=torch.float32)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {tokenizer.get_vocab_size()} tokens", flush=True)
    embedding = model.get_input_embeddings().weight
    matrices = [p for p in model.parameters() if p.ndim == 2 and p is not embedding]
    others = [p for p in model.parameters() if p.ndim != 2 or p is embedding]
    optimisers = [
        Muon(matrices, lr=options.rate),
        torch.optim.AdamW(others, lr=options.rate, betas=(0.9, 0.97), weight_decay=0.0)]
    begun = time.monotonic()
    source = batches(tokenizer, random.Random(f"training {options.seed}"), options.tokens, options.conversations)
    recent = []
    for step, (ids, labels) in zip(range(options.steps), source):
        for group in (group for optimiser in optimisers for group in optimiser.param_groups):
            group["lr"] = rate(step, options.steps, options.rate)
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        wanted = labels[:, 1:]
        learnt = wanted != -100
        loss = torch.nn.functional.cross_entropy(model.lm_head(hidden[learnt]).float(), wanted[learnt])
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
        recent.append(loss.item())
        if (step + 1) % 20 == 0:
            print(f"step {step + 1}: loss {sum(recent[-20:]) / 20:.4f}, {time.monotonic() - begun:.0f} s", flush=True)
        if (step + 1) % 400 == 0:
            torch.save(model.state_dict(), options.out.with_suffix(".partial"))
    save(model, tokenizer, options.out)


if __name__ == "__main__":
    main()

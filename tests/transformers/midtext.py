#!/usr/bin/env python3
"""A transcript of a merged model in unmodified transformers: text, launches in the middle, text behind them.

    midtext.py MERGED TRANSCRIPT [--activations FILE] [--dtype float32|bfloat16]

The transcript is what `qwengpu generate --transcript` writes, greedy. generate() goes on from all tokens before each
piece, those of launches included, and must give the piece token for token: what its GPU spoke, wherever it stands, and
what the model wrote in front of its first launch. The text behind launches is compared but not required, since a stock
engine cannot keep the machine's tokens away from the base's layers; the effect is measured: the distributions behind
the last launch with and without the machine's tokens in the context. With --activations, what each layer gives in
one forward of everything is written for comparison with another engine.

Exit status: 0 every piece is right, 1 one is not.
"""
import argparse
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


def generate(model, before, expected, end):
    """How many of the tokens generate() gives behind those before."""
    ids = torch.tensor([before])
    made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=len(expected),
                          eos_token_id=end)[0, len(before):].tolist()
    pairs = list(zip(made, expected))
    return next((place for place, (got, wanted) in enumerate(pairs) if got != wanted), len(pairs))


def activations(model, ids):
    found = {}

    def watch(name):
        return lambda _module, _inputs, output: found.__setitem__(name, output[0].float().contiguous())

    watched = {"hidden.0": model.model.embed_tokens, "logits": model.lm_head}
    watched.update((f"hidden.{number + 1}", layer) for number, layer in enumerate(model.model.layers))
    hooks = [module.register_forward_hook(watch(name)) for name, module in watched.items()]
    model(torch.tensor([ids]), use_cache=False)
    for hook in hooks:
        hook.remove()
    return {**found, "input_ids": torch.tensor(ids)}


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("merged", type=pathlib.Path)
    parser.add_argument("transcript", type=pathlib.Path)
    parser.add_argument("--activations", type=pathlib.Path)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    options = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(options.merged, dtype=getattr(torch, options.dtype)).eval()
    transcript = json.loads(options.transcript.read_text())
    first = transcript["first_machine_token"]
    halt = json.loads((options.merged / "qwengpu.json").read_text())["halt_token_id"]
    context, text, right = [], [], True
    behind = 0
    for piece in transcript["pieces"]:
        if launch := piece.get("launch"):
            context += [first + number for number in launch["prompt"]]
            records = [first + number for number in launch["records"]]
            same = generate(model, context, records, halt)
            print(f"launch {launch.get('span') or 'of a block'}: {same} of {len(records)} records right")
            right &= same == len(records)
            context += records
            behind = len(text)
        if piece["author"] == "model":
            same = generate(model, context, piece["tokens"], -1)
            print(f"text {piece['text']!r}: {same} of {len(piece['tokens'])} tokens right")
            right &= behind > 0 or same == len(piece["tokens"])
        context += piece["tokens"]
        text += piece["tokens"]
    if options.activations:
        save_file(activations(model, context), options.activations)
    after = len(text) - behind
    with_launch, without = (torch.log_softmax(model(torch.tensor([ids]), use_cache=False).logits[0, -after:, :first].double(), -1)
                            for ids in (context, text))
    divergence = (without.exp() * (without - with_launch)).sum(-1)
    flips = (without.argmax(-1) != with_launch.argmax(-1)).sum().item()
    print(f"behind the last launch, {after} positions: KL(without || with) mean {divergence.mean():.3e}, "
          f"max {divergence.max():.3e}; arg-max differs at {flips}")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()

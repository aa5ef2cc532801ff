"""Tokens a second of greedy decoding and of a prefill in transformers, for a comparison with the dense engine.

    python3 tests/transformers/decode_speed.py CHECKPOINT --dtype bfloat16 --threads 2

The same checkpoint, the same number of threads: `qwengpu-model/examples/dense.rs` prints the engine's figures.
"""

import argparse
import time

import torch
from transformers import AutoModelForCausalLM


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=8, help="tokens to decode")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prefill")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=getattr(torch, arguments.dtype)).eval()
    vocabulary = model.config.get_text_config().vocab_size
    prompt = torch.tensor([[i * 7919 % vocabulary for i in range(arguments.prompt)]])
    with torch.inference_mode():
        model(prompt[:, :64], use_cache=True)  # first calls allocate
        begun = time.perf_counter()
        result = model(prompt, use_cache=True, logits_to_keep=1)
        prefill = time.perf_counter() - begun
        cache = result.past_key_values
        # One step outside the measurement, then the best of the steps: others may compute meanwhile.
        token = result.logits[:, -1:].argmax(-1)
        steps = []
        for _ in range(arguments.tokens + 1):
            begun = time.perf_counter()
            result = model(token, past_key_values=cache, use_cache=True)
            token = result.logits[:, -1:].argmax(-1)
            steps.append(time.perf_counter() - begun)
    print(f"transformers, {arguments.dtype}, {arguments.threads} threads:")
    print(f"  decoding {1 / min(steps[1:]):.2f} tokens/s (mean {arguments.tokens / sum(steps[1:]):.2f})")
    print(f"  prefill of {arguments.prompt}: {arguments.prompt / prefill:.1f} tokens/s")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A module of PyTorch that many threads call at once, as a compiled function.

Run: torch_threads.py [THREADS] [REQUESTS]
The module tags the words of sentences: an embedding, an LSTM in both directions, attention and a linear layer.
Each request is a batch of 1 to 4 sentences of one length. The threads share one function, without a lock. The
results are compared with those of lone calls, bit by bit, and with the module's own.
"""
import argparse
from concurrent.futures import ThreadPoolExecutor

import torch

import streampool.torch

WORDS, TAGS, LENGTH = 1000, 12, 16


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, 32)
        self.lstm = torch.nn.LSTM(32, 32, bidirectional=True, batch_first=True)
        self.attention = torch.nn.MultiheadAttention(64, 4, batch_first=True)
        self.tags = torch.nn.Linear(64, TAGS)

    def forward(self, words):
        states, _ = self.lstm(self.embedding(words))
        mixed, weights = self.attention(states, states, states)
        return {"scores": self.tags(states + mixed).log_softmax(-1), "attention": weights}


def is_same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def is_close(one, other):
    return all(torch.allclose(one[name], other[name], rtol=0, atol=1e-5) for name in one)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("threads", type=int, nargs="?", default=8)
    parser.add_argument("requests", type=int, nargs="?", default=200)
    options = parser.parse_args()
    torch.manual_seed(0)
    module = Tagger().eval()
    requests = [torch.randint(0, WORDS, (1 + i % 4, LENGTH)) for i in range(options.requests)]

    tag = streampool.torch.compile(module, requests[0])
    print(tag)
    alone = [tag(words) for words in requests]
    with ThreadPoolExecutor(options.threads) as pool:
        together = list(pool.map(tag, requests))

    with torch.no_grad():
        own = [module(words) for words in requests]
    same = all(map(is_same, together, alone))
    close = all(map(is_close, together, own))
    print(f"{len(requests)} requests from {options.threads} threads: "
          f"{'equal to lone calls' if same else 'DIFFERENT FROM LONE CALLS'}, "
          f"{'within 1e-5 of the module' if close else 'FURTHER THAN 1e-5 FROM THE MODULE'}")
    raise SystemExit(not (same and close))


if __name__ == "__main__":
    main()

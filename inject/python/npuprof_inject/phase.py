"""Prefill or decode: told from the shape of what the model is called with.

A language model is called with the whole prompt once (prefill), then with one token at a time
(decode). The first tensor among NAMES, else the first one among the arguments, decides:
two dimensions and more are [batch, sequence, …], and a sequence of 1 is decode; one dimension is a
flat list of tokens, and a single one is decode. Servers that put several requests into one flat list
cannot be told apart this way (docs/guide/inject.md).
"""
NAMES = ("input_ids", "inputs_embeds", "hidden_states", "x")


def classify(args, kwargs):
    """"prefill", "decode", or None when no argument is a tensor."""
    for value in [kwargs.get(name) for name in NAMES] + list(args) + list(kwargs.values()):
        try:
            shape = tuple(value.shape)
        except Exception:  # no tensor
            continue
        if shape:
            length = shape[1] if len(shape) > 1 else shape[0]
            return "decode" if length == 1 else "prefill"
    return None

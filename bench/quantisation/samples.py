"""Samples for networks of random weights, the same everywhere: images|texts SEED VOCABULARY OUT.npz. 64 samples; other seeds, other samples."""

import sys

import numpy

kind, seed, vocabulary, out = sys.argv[1:]
count, length = 64, 64
random = numpy.random.default_rng(int(seed))
if kind == "images":
    # Noise over patches of 8x8 pixels, each picture with a contrast of its own.
    noise = random.normal(size=(count, 3, 64, 64))
    patches = random.normal(size=(count, 3, 8, 8)).repeat(8, 2).repeat(8, 3)
    contrast = random.lognormal(0, 0.3, (count, 1, 1, 1))
    numpy.savez(out, input=((0.5 * noise + patches) * contrast).astype(numpy.float32))
else:
    # 16 to 64 words, as frequent as Zipf's law has them; zeros behind.
    words = random.integers(16, length + 1, count)
    ids = (random.zipf(1.3, (count, length)) % int(vocabulary)).astype(numpy.int64)
    mask = (numpy.arange(length)[None] < words[:, None]).astype(numpy.int64)
    numpy.savez(out, input_ids=ids * mask, attention_mask=mask)

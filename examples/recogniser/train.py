"""
Trains the recogniser on the WAV files of `main.js train`:

    python examples/recogniser/train.py --data out/speech-train --output out/recogniser.pt --minutes 60

Noise, gain, silence, speed and masks are drawn anew each time; 300 of the phrases are kept out and transcribed every so often. The file has the mean of
the last weights (decay 0.999), which are also those that are measured.
"""

import argparse
import csv
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from features import MELS, RATE, LogMel, Resampler, read_wav
from model import BLANK, WORDS, Recogniser
from tdt import tdt_loss

KEPT_OUT = 300


def load(folder):
    """[(samples of 16 kHz as int16, token ids)] of the manifest."""
    with open(folder / "manifest.tsv", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    resample, ids, items = None, {word: at for at, word in enumerate(WORDS)}, []
    for row in rows:
        samples, rate = read_wav(folder / row["wav_path"])
        resample = resample or Resampler(rate)
        sound = (resample(samples).clamp(-1, 1) * 32_767).round().short().numpy()
        items.append((sound, [ids["▁" + word] for word in row["ref_text"].split()]))
    return items


def noise_bank(rng, count=96, length=1 << 18):
    """Coloured noises of variance 1, some of a band, some that swell: [count, length]. Phrases take pieces of them, since making noise costs more than a step."""
    hertz = np.fft.rfftfreq(length, 1 / RATE) + 50
    bank = np.empty((count, length), np.float32)
    for row in bank:
        shape = hertz ** -rng.uniform(0, 1.2)
        if rng.random() < 0.3:
            shape *= 0.1 + np.exp(-(((hertz - rng.uniform(0, 6000)) / rng.uniform(200, 2000)) ** 2))
        row[:] = np.fft.irfft(np.fft.rfft(rng.standard_normal(length)) * shape)
        if rng.random() < 0.3:
            row *= 1 + 0.8 * np.sin(2 * np.pi * rng.uniform(0.5, 8) * np.arange(length) / RATE)
        row /= row.std()
    return bank


def varied(sound, bank, hard, rng):
    """
    At another speed (and pitch) half of the time, with silence in front, quieter, and mostly with noise 0 to 20 dB below. `hard` from 0 to 1: how much of
    it, since a model that begins with noise finds no words in it for thousands of steps.
    """
    x = sound.astype(np.float32) / 32_767
    if rng.random() < 0.5 * hard:
        x = np.interp(np.arange(0, len(x) - 1, rng.uniform(0.88, 1.12)), np.arange(len(x)), x).astype(np.float32)
    x = np.concatenate([np.zeros(rng.integers(0, 1 + int(hard * RATE / 2)), np.float32), x])
    if rng.random() < 0.75 * hard:
        begin = rng.integers(0, bank.shape[1] - len(x))
        level = math.sqrt(np.dot(x, x) / len(x)) * 10 ** (-rng.uniform(20 - 20 * hard, 20) / 20)
        x = x + np.float32(level) * bank[rng.integers(len(bank)), begin : begin + len(x)]
    return x * np.float32(10 ** (-rng.uniform(0, 20 * hard) / 20))


def batches(items, size, bank, rng):
    """Batches of phrases of about one length, in random order, without end, and how hard each is: clean for 300 steps, all there is from 1500 on."""
    step = 0
    while True:
        order = rng.permutation(len(items))
        parts = [sorted(part, key=lambda at: len(items[at][0])) for part in np.array_split(order, max(1, len(items) // (16 * size)))]
        groups = [part[at : at + size] for part in parts for at in range(0, len(part), size)]
        for at in rng.permutation(len(groups)):
            chosen = [items[i] for i in groups[at]]
            hard = min(1, max(0, (step - 300) / 1200))
            step += 1
            yield padded([varied(sound, bank, hard, rng) for sound, _ in chosen]), padded([np.array(ids) for _, ids in chosen]), hard


def padded(rows):
    tensors = [torch.as_tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True), torch.tensor([len(row) for row in rows])


def masked(features, middle, hard, rng):
    """Two bands of up to 10 mels and one gap of up to 12 frames of some utterances become the mean of all features."""
    for row in features:
        if rng.random() >= 0.7 * hard:
            continue
        for _ in range(2):
            at, width = rng.integers(0, MELS - 10), rng.integers(0, 11)
            row[at : at + width] = middle
        at, width = rng.integers(0, max(1, features.shape[2] - 12)), rng.integers(0, 13)
        row[:, at : at + width] = middle
    return features


def errors(reference, hypothesis):
    row = list(range(len(hypothesis) + 1))
    for i, word in enumerate(reference, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(hypothesis, 1):
            last, row[j] = row[j], min(last + (word != other), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=60, help="the learning rate falls to nothing at their end")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--every", type=int, default=500, help="steps between measurements")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)

    items = load(args.data)
    random.Random(0).shuffle(items)
    kept_out, items = items[:KEPT_OUT], items[KEPT_OUT:]
    front_end = LogMel().to(args.device)
    features_of = lambda sounds: front_end(*(each.to(args.device) for each in sounds))
    bank = noise_bank(rng)
    measure_rng = np.random.default_rng(1)
    measured = [(features_of(padded([varied(sound, bank, 1, measure_rng)])), ids) for sound, ids in kept_out]

    model = Recogniser(dropout=0.05).to(args.device)
    values = torch.cat([features[0, :, :-1] for (features, _), _ in measured], 1)
    model.encoder.subsampling.mean.copy_(values.mean(1, keepdim=True))
    model.encoder.subsampling.scale.copy_(1 / values.std(1, keepdim=True))
    middle = values.mean()
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999), use_buffers=True)
    parts = {name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()}
    print(f"{len(items)} phrases, parameters {parts}", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), args.rate, betas=(0.9, 0.98), weight_decay=0.01)

    begun, step, sums = time.monotonic(), 0, np.zeros(2)
    for sounds, (targets, lengths), hard in batches(items, args.batch, bank, rng):
        progress = (time.monotonic() - begun) / (60 * args.minutes)
        for group in optimizer.param_groups:
            group["lr"] = args.rate * min(1, (step + 1) / 100) * max(0.01, 0.5 + 0.5 * math.cos(math.pi * min(1, progress)))
        features, frames = features_of(sounds)
        targets, lengths = targets.to(args.device), lengths.to(args.device)
        output, steps = model.encode(masked(features, middle, hard, rng), frames)
        ctc = F.ctc_loss(
            model.ctc(output.permute(2, 0, 1)).log_softmax(-1), targets, steps, lengths, BLANK, "sum", zero_infinity=True
        )
        transducer = tdt_loss(model.joint(output, model.predict(targets)), targets, steps, lengths).sum()
        loss = (transducer + (1.0 if step < 1000 else 0.3) * ctc) / lengths.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        average.update_parameters(model)
        step += 1
        sums += [transducer.item() / int(lengths.sum()), ctc.item() / int(lengths.sum())]
        over = progress >= 1
        if step % 100 == 0:
            print(f"step {step}  transducer {sums[0] / 100:.3f}  ctc {sums[1] / 100:.3f}  {(time.monotonic() - begun) / 60:.1f} min", flush=True)
            sums[:] = 0
        if step % args.every == 0 or over:
            judged = average.module.eval()
            wrong = sum(errors(ids, judged.decode(*judged.encode(*features))) for features, ids in measured)
            rate = wrong / sum(len(ids) for _, ids in measured)
            temporary = args.output.with_suffix(".new")
            torch.save({"weights": judged.state_dict(), "step": step, "wer": rate, "torch": str(torch.__version__)}, temporary)
            temporary.replace(args.output)
            print(f"step {step}  WER {100 * rate:.2f} % of {KEPT_OUT} kept out", flush=True)
            judged.train()
        if over:
            break


if __name__ == "__main__":
    main()

"""Trains the detector on generated scenes: `python examples/detector/train.py -o FOLDER`. Needs PyTorch, NumPy and pycocotools."""

import argparse
import contextlib
import copy
import io
import math
import pathlib
import struct
import subprocess
import time

import numpy as np
import torch

from loss import head_loss
from network import BINS, Detector, anchors, corners, distances

SIDE = 256
CLASSES = 24
GENERATOR = pathlib.Path(__file__).resolve().parents[2] / "build/examples/detector/main.js"


def scenes(split, count):
    """Pixels [count, SIDE, SIDE, 3] and for each scene [objects, 6]: left, top, width, height, class, crowd."""
    pixels = np.empty((count, SIDE, SIDE, 3), np.uint8)
    objects = []
    command = ["node", str(GENERATOR), "scenes", "--raw", "--split", split, "--count", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=1 << 20) as generator:
        for scene in pixels:
            (number,) = struct.unpack("<i", generator.stdout.read(4))
            rows = np.frombuffer(generator.stdout.read(24 * number), "<i4").reshape(number, 6)
            objects.append(rows.astype(np.float32))
            scene[:] = np.frombuffer(generator.stdout.read(scene.size), np.uint8).reshape(scene.shape)
    return pixels, objects


def varied(pixels, rows, random):
    """One scene turned, mirrored, and with its colour channels exchanged and inverted: no class depends on these."""
    rows = rows.copy()
    if random.integers(2):
        pixels, rows[:, 0] = pixels[:, ::-1], SIDE - rows[:, 0] - rows[:, 2]
    if random.integers(2):
        pixels, rows[:, 1] = pixels[::-1], SIDE - rows[:, 1] - rows[:, 3]
    if random.integers(2):
        pixels, rows = pixels.transpose(1, 0, 2), rows[:, [1, 0, 3, 2, 4, 5]]
    pixels = pixels[..., random.permutation(3)]
    return (255 - pixels if random.integers(2) else pixels), rows


def batch_of(pixels, objects, chosen, random, device):
    """Images [B,3,SIDE,SIDE], truth padded to one number of objects, and the crowds' boxes of each image."""
    made = [varied(pixels[i], objects[i], random) for i in chosen]
    images = torch.from_numpy(np.stack([image for image, _ in made])).to(device)
    images = images.permute(0, 3, 1, 2).float().div(255).contiguous(memory_format=torch.channels_last)
    most = max(1, max(int((rows[:, 5] == 0).sum()) for _, rows in made))
    padded = np.zeros((len(made), most, 6), np.float32)
    crowds = np.full((len(made), 2, 4), -1e6, np.float32)
    for i, (_, rows) in enumerate(made):
        rows = rows.copy()
        rows[:, 2:4] += rows[:, :2]
        single, crowd = rows[rows[:, 5] == 0], rows[rows[:, 5] == 1]
        padded[i, : len(single), :5] = single[:, :5]
        padded[i, : len(single), 5] = 1
        crowds[i, : len(crowd)] = crowd[:, :4]
    padded, crowds = torch.from_numpy(padded).to(device), torch.from_numpy(crowds).to(device)
    return images, (padded[..., :4], padded[..., 4].long(), padded[..., 5] > 0), crowds


@torch.no_grad()
def validate(model, pixels, objects, device):
    """mAP, mAP at 0.50 and mAP of small, medium and large objects of the one-to-one head, by pycocotools."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    model.eval()
    centres, strides = (value.to(device) for value in anchors(SIDE, SIDE))
    found = []
    for first in range(0, len(pixels), 16):
        images = torch.from_numpy(pixels[first : first + 16]).to(device).permute(0, 3, 1, 2).float() / 255
        outputs = model(images.contiguous(memory_format=torch.channels_last))[1].transpose(1, 2)
        boxes = corners(distances(outputs[..., : 4 * BINS]), centres, strides)
        best = outputs[..., 4 * BINS :].sigmoid().flatten(1).topk(100)
        for i in range(len(images)):
            for score, at in zip(best.values[i].tolist(), best.indices[i].tolist()):
                left, top, right, bottom = boxes[i, at // CLASSES].clamp(0, SIDE).tolist()
                box = [left, top, right - left, bottom - top]
                found.append({"image_id": first + i, "category_id": at % CLASSES, "bbox": box, "score": score})
    model.train()
    true = [
        # The raw stream has no areas; two thirds of the box is about what the figures cover.
        {"image_id": i, "category_id": int(c), "bbox": [x, y, w, h], "area": w * h * 0.66, "iscrowd": int(crowd)}
        for i, rows in enumerate(objects)
        for x, y, w, h, c, crowd in rows.tolist()
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": i} for i in range(len(objects))],
            "categories": [{"id": c} for c in range(CLASSES)],
            "annotations": [{"id": i + 1, **row} for i, row in enumerate(true)],
        }
        coco.createIndex()
        scored = COCOeval(coco, coco.loadRes(found), "bbox")
        scored.evaluate()
        scored.accumulate()
        scored.summarize()
    return [scored.stats[i] for i in (0, 1, 3, 4, 5)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", default="out/detector")
    parser.add_argument("--scenes", type=int, default=12000)
    parser.add_argument("--validation-scenes", type=int, default=300)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--minutes", type=float, default=1e9, help="the learning rate reaches its end by then at the latest")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=500, help="steps between validations and checkpoints")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    device = torch.device(options.device)

    model = Detector(CLASSES).to(device, memory_format=torch.channels_last)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
    mean = copy.deepcopy(model).requires_grad_(False)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decayed, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.99))
    centres, strides = (value.to(device) for value in anchors(SIDE, SIDE))

    held = scenes("validation", options.validation_scenes)
    pixels, objects = scenes("train", options.scenes)
    print(f"{len(pixels)} scenes drawn", flush=True)

    order = np.empty(0, np.int64)
    started, sums = time.time(), np.zeros(4)
    step, progress = 0, 0.0
    while progress < 1:
        progress = max(step / options.steps, (time.time() - started) / 60 / options.minutes)
        rate = options.rate * (0.01 + 0.99 * (1 + math.cos(math.pi * min(1.0, progress))) / 2) * min(1.0, (step + 1) / 300)
        for group in optimiser.param_groups:
            group["lr"] = rate
        if len(order) < options.batch:
            order = random.permutation(len(pixels))
        chosen, order = order[: options.batch], order[options.batch :]
        images, truth, crowds = batch_of(pixels, objects, chosen, random, device)
        with torch.autocast(device.type, torch.bfloat16):
            many, one = model(images)
        ignored = (
            (centres[None, :, None] > crowds[:, None, :, :2]) & (centres[None, :, None] < crowds[:, None, :, 2:])
        ).all(-1).any(-1)
        loss_many, parts = head_loss(many, centres, strides, truth, ignored, 10)
        loss_one, _ = head_loss(one, centres, strides, truth, ignored, 1)
        optimiser.zero_grad(set_to_none=True)
        (loss_many + loss_one).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimiser.step()
        step += 1
        with torch.no_grad():
            decay = 0.998 * (1 - math.exp(-step / 500))
            for kept, new in zip(mean.state_dict().values(), model.state_dict().values()):
                if kept.is_floating_point():
                    kept.lerp_(new, 1 - decay)
        sums += [float(loss_one.detach()), *parts.tolist()]
        if step % 50 == 0:
            one_to_one, classes, boxes, bins = sums / 50
            print(
                f"step {step}  {step * options.batch / (time.time() - started):.1f} scenes/s  rate {rate:.5f}"
                f"  one-to-one {one_to_one:.3f}  classes {classes:.3f}  boxes {boxes:.3f}  distances {bins:.3f}",
                flush=True,
            )
            sums[:] = 0
        if step % options.every == 0 or progress >= 1:
            torch.save({"model": mean.state_dict(), "step": step}, folder / "detector.pt.part")
            (folder / "detector.pt.part").rename(folder / "detector.pt")
            scores = "  ".join(f"{name} {value:.4f}" for name, value in zip(("mAP", "50", "S", "M", "L"), validate(mean, *held, device)))
            print(f"step {step}  validation  {scores}", flush=True)


if __name__ == "__main__":
    main()

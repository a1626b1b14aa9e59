"""Writes a checkpoint of train.py as one ONNX model with three outputs."""

import argparse
import pathlib

import onnx
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from network import BINS, Conv, Detector, anchors
from train import CLASSES, SIDE

BEST = 300


class Exported(nn.Module):
    """
    `end_to_end` [B,300,6]: left, top, right, bottom in pixels, score, class of the one-to-one head.
    `one_to_many` [B,4+C,N]: centre and size in pixels, one score a class. `raw` [B,64+C,N]: the same head before any decoding.
    """

    def __init__(self, network):
        super().__init__()
        self.network = network
        centres, strides = anchors(SIDE, SIDE)
        self.register_buffer("centres", centres.T[None].contiguous())
        self.register_buffer("strides", strides.T[None].contiguous())
        self.register_buffer("bins", torch.arange(BINS).float()[None, None, :, None])

    def corners(self, outputs):
        share = outputs[:, : 4 * BINS].unflatten(1, (4, BINS)).softmax(2)
        distance = (share * self.bins).sum(2) * self.strides
        return self.centres - distance[:, :2], self.centres + distance[:, 2:]

    def forward(self, images):
        many, one = self.network(images)
        low, high = self.corners(many)
        one_to_many = torch.cat(((low + high) / 2, high - low, many[:, 4 * BINS :].sigmoid()), 1)

        boxes = torch.cat(self.corners(one), 1).transpose(1, 2)
        scores = one[:, 4 * BINS :].sigmoid().transpose(1, 2)
        # First the anchors with the best classes, then the best pairs of anchor and class among them.
        anchor = scores.amax(2).topk(BEST, 1).indices[..., None]
        boxes, scores = boxes.gather(1, anchor.expand(-1, -1, 4)), scores.gather(1, anchor.expand(-1, -1, CLASSES))
        best, place = scores.flatten(1).topk(BEST, 1)
        row = (place // CLASSES)[..., None].expand(-1, -1, 4)
        found = boxes.gather(1, row), best[..., None], (place % CLASSES)[..., None].to(best.dtype)
        return torch.cat(found, 2), one_to_many, many


def folded(network):
    """Batch normalisation as part of the convolution before it."""
    for module in network.modules():
        if isinstance(module, Conv):
            module.conv = fuse_conv_bn_eval(module.conv, module.norm)
            module.norm = nn.Identity()
    return network


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--labels", required=True, help="the generator's labels.txt")
    parser.add_argument("-o", "--output", default="detector.onnx")
    options = parser.parse_args()
    network = Detector(CLASSES)
    network.load_state_dict(torch.load(options.checkpoint, map_location="cpu")["model"])
    torch.onnx.export(
        Exported(folded(network.eval())).eval(),
        (torch.zeros(2, 3, SIDE, SIDE),),
        options.output,
        input_names=["images"],
        output_names=["end_to_end", "one_to_many", "raw"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        opset_version=17,
        external_data=False,
        verbose=False,
    )
    model = onnx.load(options.output)
    # What opset 17 came with: the converter of versions leaves these. And no traces of this machine.
    model.ir_version = 8
    for traced in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph):
        del traced.metadata_props[:]
    model.graph.doc_string = ""
    for node in model.graph.node:
        node.doc_string = ""
        for attribute in [a for a in node.attribute if node.op_type == "Split" and a.name == "num_outputs"]:
            node.attribute.remove(attribute)
    names = pathlib.Path(options.labels).read_text().splitlines()
    assert len(names) == CLASSES, f"{len(names)} labels, {CLASSES} classes"
    entry = model.metadata_props.add()
    entry.key, entry.value = "names", str(dict(enumerate(names)))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, options.output)


if __name__ == "__main__":
    main()

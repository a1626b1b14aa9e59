"""What pycocotools finds for pairs of files: python pycocotools_scores.py INSTANCES RESULTS [INSTANCES RESULTS ...] prints a JSON list."""

import contextlib
import json
import os
import sys

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def scores(instances, results):
    with contextlib.redirect_stdout(open(os.devnull, "w")):
        truth = COCO(instances)
        evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision, recall = evaluation.eval["precision"], evaluation.eval["recall"]

    def mean(cells):
        known = cells[cells > -1]
        return float(np.mean(known)) if known.size else None

    return {
        "stats": [float(value) for value in evaluation.stats],
        "perClass": [
            {
                "id": int(category),
                "AP_50_95": mean(precision[:, :, k, 0, 2]),
                "AP_50": mean(precision[0, :, k, 0, 2]),
                "AP_75": mean(precision[5, :, k, 0, 2]),
                "AP_small": mean(precision[:, :, k, 1, 2]),
                "AP_medium": mean(precision[:, :, k, 2, 2]),
                "AP_large": mean(precision[:, :, k, 3, 2]),
                "AR_100": mean(recall[:, k, 0, 2]),
            }
            for k, category in enumerate(evaluation.params.catIds)
        ],
    }


files = sys.argv[1:]
print(json.dumps([scores(*pair) for pair in zip(files[::2], files[1::2])]))

import { basename, dirname, join } from 'node:path';
import { type ForeignFlag, rowsOf } from '../../cli/foreign-flag.js';

const { bare, valued } = rowsOf('detector script');
const here = { verbs: ['eval detector'] };

/** Where the scripts look for annotations and images of COCO. */
const ofDataRoot = (root: string): readonly string[] => [
  ...['--instances', join(root, 'annotations', 'instances_val2017.json')],
  ...['--images', join(root, 'val2017')],
];

/** Flags of auto-quantize-model's evaluators that `eval detector` has under other names. `--providers` is Polygraphy's too. */
export const scriptFlags: readonly ForeignFlag[] = [
  ...valued('--onnx-path --onnx_path', '{value}', 'the model is an argument', here),
  ...valued('--engine --engine-path', '{value}', 'the engine is an argument', here),
  ...valued('--data-root', '{value}', '--instances and --images of that folder; those of the line win', {
    ...here,
    values: ofDataRoot,
    isDefault: true,
  }),
  ...valued('--images-dir', '--images {value}', 'the same', here),
  ...valued('--coco-yaml', '--labels {value}', 'names of the classes', here),
  ...valued('--image-ids-list', '--image-ids {value}', 'the same', here),
  ...valued('--out', '-o {value}', 'the folder of metrics.json, which has detections.json too', {
    ...here,
    values: (value) =>
      basename(value) === 'metrics.json' ? [dirname(value)] : value.endsWith('.json') ? null : [value],
  }),
  ...valued('--detections-out', null, '-o FOLDER writes detections.json beside metrics.json', here),
  ...bare('--disable-cpu-fallback', '', 'a node that the provider does not take is an error', here),
];

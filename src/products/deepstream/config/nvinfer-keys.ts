export const NETWORK_TYPES: readonly number[] = [0, 1, 2, 3, 100];

/** One key that nvinfer knows. */
export interface NvinferKey {
  readonly group: 'property' | 'class-attrs';
  readonly kind: string;
  /** Bounds of a number, or of the length of a list, both included. */
  readonly low: number;
  readonly high: number;
  /** It no longer decides anything, or a newer key does. */
  readonly isLegacy: boolean;
  /** The YAML form does not know it. */
  readonly isTextOnly: boolean;
}

/**
 * The keys of gst-nvinfer of DeepStream 9.1 (facts of its public sources: names, types, bounds): a line for each way of reading a value, `GROUP KIND BOUNDS:`.
 * `!` is a legacy key, `^` one that only the key file form knows.
 */
const table = `
property path: labelfile-path model-engine-file int8-calib-file mean-file custom-lib-path onnx-file tlt-encoded-model ip-tensor-file !model-file !proto-file !uff-file
property text: parse-bbox-func-name parse-bbox-instance-mask-func-name parse-segmentation-func-name parse-classifier-func-name engine-create-func-name custom-network-config tlt-model-key classifier-type !uff-input-blob-name ^dynamic-properties
property texts: output-blob-names output-io-formats layer-device-precision op-tensor-files
property boolean: enable-dla !force-implicit-batch-dim maintain-aspect-ratio symmetric-padding output-tensor-meta output-instance-mask classifier-async-mode crop-objects-to-roi-boundary input-tensor-from-meta raw-output-file-write strongly-typed warmup-engine !^is-classifier !^enable-dbscan
property integer: gpu-id use-dla-core auto-inc-mem max-gpu-mem-per dump-input-tensor dump-output-tensor overwrite-input-tensor overwrite-output-tensor workspace-size secondary-reinfer-interval operate-on-gie-id disable-output-host-copy stabilize-buffer-count
property integer 0..: interval num-detected-classes input-object-min-width input-object-min-height input-object-max-width input-object-max-height
property integer 0..1: network-input-order segmentation-output-order
property integer 0..2: model-color-format scaling-compute-hw !uff-input-order
property integer 0..3: network-mode
property integer 0..4: cluster-mode
property integer 0..6: scaling-filter
property integer 1..: gie-unique-id
property integer 1..2: process-mode
property integer 1..1024: batch-size
property integer 2..: tensor-meta-pool-size
property type: network-type
property integers: operate-on-class-ids filter-out-class-ids
property integers 3..3: infer-dims
property integers 4..4: !^input-dims !^uff-input-dims
property decimal: net-scale-factor
property decimal 0..: classifier-threshold segmentation-threshold
property decimals 0..4: offsets
class-attrs decimal 0..: pre-cluster-threshold post-cluster-threshold eps dbscan-min-score !^threshold
class-attrs decimal 0..1: nms-iou-threshold
class-attrs integer 0..: group-threshold minBoxes topk roi-top-offset roi-bottom-offset detected-min-w detected-min-h detected-max-w detected-max-h
class-attrs decimals 4..4: border-color bg-color`;

export const nvinferKeys: ReadonlyMap<string, NvinferKey> = new Map(
  [...table.matchAll(/^(\S+) (\w+)(?: (\d+)\.\.(\d*))?: (.+)$/gm)].flatMap(
    ([, group, kind = '', low = '-Infinity', high, names = '']) =>
      names.split(' ').map((name) => {
        const key = { group: group as NvinferKey['group'], kind, low: Number(low) };
        const marks = { isLegacy: name.includes('!'), isTextOnly: name.includes('^') };
        return [name.replace(/^[!^]+/, ''), { ...key, high: Number(high || 'Infinity'), ...marks }] as const;
      }),
  ),
);

/** Legacy keys that nvinfer takes for a newer one where that is absent (gst_nvinfer_parse_props): what they stand for when they are 1. */
export const translatedKeys: Readonly<Record<string, readonly [key: string, value: number]>> = {
  'is-classifier': ['network-type', 1],
  'enable-dbscan': ['cluster-mode', 1],
};

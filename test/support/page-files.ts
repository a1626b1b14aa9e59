import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelFamilies } from '../../examples/models/catalogue.js';
import { buildModel, type Dimension, GraphBuilder } from '../../src/formats/onnx/builder.js';
import { attribute } from '../../src/formats/onnx/index.js';
import { writeModel } from '../../src/formats/onnx/write.js';
import { writeNpy } from '../../src/formats/tensor/npy.js';
import { writeNpz } from '../../src/formats/tensor/npz.js';
import { floats, ids } from '../engines/runtime/onnxruntime/models.js';
import { writeDetector, writePlan } from '../fakes/nvinfer-engine.js';
import { paintCells } from '../products/evaluation/detection/coloured-cells.js';
import { unitMeans } from '../products/evaluation/image-networks.js';
import { writeBundle } from './bundle.js';

const fixtures = join(import.meta.dirname, '../fixtures');

/** A classifier of pictures that build and convert in no time. */
async function writeClassifier(path: string, input: string, scale = 1): Promise<void> {
  const graph = new GraphBuilder('classifier');
  const weights = Array.from({ length: 32 * 32 * 9 }, (_, at) => (scale * ((at % 7) - 3)) / 60);
  const kernel = (name: string, shape: readonly number[]) =>
    graph.initializer(
      name,
      floats(
        'float32',
        shape,
        weights.slice(
          0,
          shape.reduce((a, b) => a * b),
        ),
      ),
    );
  const attributes = { strides: attribute.ints([4, 4]) };
  graph.input(input, 'float32', ['batch', 3, 224, 224]);
  kernel('first', [32, 3, 3, 3]);
  kernel('second', [32, 32, 3, 3]);
  kernel('weight', [32, 3]);
  graph.node('Conv', { name: '/Conv_1', inputs: [input, 'first'], outputs: ['b'], attributes });
  graph.node('Conv', { name: '/Conv_2', inputs: ['b', 'second'], outputs: ['c'], attributes });
  graph.node('Relu', { name: '/Relu', inputs: ['c'], outputs: ['r'] });
  graph.node('GlobalAveragePool', { name: '/Pool', inputs: ['r'], outputs: ['p'] });
  graph.node('Flatten', { name: '/Flatten', inputs: ['p'], outputs: ['f'] });
  graph.node('MatMul', { name: '/MatMul', inputs: ['f', 'weight'], outputs: ['logits'] });
  graph.output('logits', 'float32', ['batch', 3]);
  await writeModel(buildModel(graph), path);
}

/** A detector with the outputs of YOLO, [1,4+3,64], whose convolutions have channels enough to be quantized. */
async function writeYolo(path: string): Promise<void> {
  const graph = new GraphBuilder('yolo');
  const side = 8;
  graph.input('images', 'float32', [1, 3, 64, 64]);
  graph.initializer('cells', ids([3], [1, 3, side ** 2]));
  const boxes = Array.from({ length: 4 * side ** 2 }, (_, at) => (at % 64) + 4);
  graph.initializer('boxes', floats('float32', [1, 4, side ** 2], boxes));
  let from = 'images';
  for (const [at, [inputs, outputs]] of [
    [3, 32],
    [32, 32],
    [32, 3],
  ].entries()) {
    const weights = Array.from({ length: outputs! * inputs! * 4 }, (_, i) => (((i * 13) % 11) - 5) / 30);
    graph.initializer(`kernel${at}`, floats('float32', [outputs!, inputs!, 2, 2], weights));
    graph.node('Conv', {
      name: `/Conv_${at}`,
      inputs: [from, `kernel${at}`],
      outputs: [`c${at}`],
      attributes: { strides: attribute.ints([2, 2]) },
    });
    from = `c${at}`;
  }
  graph.node('Sigmoid', { name: '/Sigmoid', inputs: [from], outputs: ['s'] });
  graph.node('Reshape', { name: '/Reshape', inputs: ['s', 'cells'], outputs: ['scores'] });
  graph.node('Concat', {
    name: '/Concat',
    inputs: ['boxes', 'scores'],
    outputs: ['output0'],
    attributes: { axis: attribute.int(1) },
  });
  graph.output('output0', 'float32', [1, 7, side ** 2]);
  const model = buildModel(graph);
  const value = "{0: 'red', 1: 'green', 2: 'blue'}";
  model.proto.metadataProps.push({ $typeName: 'onnx.StringStringEntryProto', key: 'names', value });
  await writeModel(model, path);
}

/** Features under a mask of ones that is made from the size of the input, as models of the DETR family make theirs. */
async function writeMasked(path: string): Promise<void> {
  const graph = new GraphBuilder('detr');
  graph.input('pixel_values', 'float32', ['batch', 3, 32, 32]);
  graph.initializer('axes', ids([3], [0, 2, 3]));
  graph.initializer('channel', ids([1], [1]));
  graph.initializer('scales', floats('float32', [4], [1, 1, 0.125, 0.125]));
  const kernel = Array.from({ length: 4 * 3 * 64 }, (_, at) => ((at % 9) - 4) / 50);
  graph.initializer('kernel', floats('float32', [4, 3, 8, 8], kernel));
  const cast = (from: string, to: string, type: number) =>
    graph.node('Cast', { inputs: [from], outputs: [to], attributes: { to: attribute.int(type) } });
  graph.node('Shape', { inputs: ['pixel_values'], outputs: ['shape'] });
  graph.node('Gather', { inputs: ['shape', 'axes'], outputs: ['sizes'] });
  graph.node('ConstantOfShape', {
    inputs: ['sizes'],
    outputs: ['ones'],
    attributes: { value: attribute.tensor(floats('float32', [1], [1])) },
  });
  graph.node('Unsqueeze', { inputs: ['ones', 'channel'], outputs: ['mask'] });
  cast('mask', 'mask_bool', 9);
  cast('mask_bool', 'mask_float', 1);
  graph.node('Resize', { inputs: ['mask_float', '', 'scales'], outputs: ['small'] });
  const attributes = { strides: attribute.ints([8, 8]) };
  graph.node('Conv', { inputs: ['pixel_values', 'kernel'], outputs: ['features'], attributes });
  graph.node('Mul', { inputs: ['features', 'small'], outputs: ['masked'] });
  graph.node('Sigmoid', { inputs: ['masked'], outputs: ['pred'] });
  graph.output('pred', 'float32', ['batch', 4, 4, 4]);
  await writeModel(buildModel(graph), path);
}

/** y = x for every input. */
async function writePassing(path: string, inputs: Readonly<Record<string, readonly Dimension[]>>) {
  const graph = new GraphBuilder('passing');
  for (const [name, shape] of Object.entries(inputs)) {
    graph.input(name, 'float32', shape);
    graph.node('Relu', { name: `/${name}`, inputs: [name], outputs: [`${name}_out`] });
    graph.output(`${name}_out`, 'float32', shape);
  }
  await writeModel(buildModel(graph), path);
}

const pictures = (count: number, side = 224) =>
  floats(
    'float32',
    [count, 3, side, side],
    Array.from({ length: count * 3 * side * side }, (_, at) => ((at * 37) % 255) / 255),
  );

/** Lines that make what the lines of the pages take for granted. */
export const preparation = `
trtforge convert model.onnx -o model.fp16.onnx --precision fp16
trtforge convert encoder.onnx -o encoder.fp16.onnx --precision fp16
trtforge convert yolo.onnx -o yolov10m-qdq.onnx --precision int8 --calibration images/ --preprocess yolo
trtforge convert yolo.onnx -o yolo.int8.onnx --precision int8 --calibration images/ --preprocess yolo
trtforge build model.onnx --target tensorrt-rtx:sm_89 --batch 1/8/32 -o model.engine
trtforge build resnet50.onnx --precision fp16 --target tensorrt-rtx:sm_89 --batch 1/8/64 -o resnet50.engine
trtforge build det.onnx --precision fp16 --target tensorrt-rtx:sm_89 --batch 1/8/32 -o det.engine
trtforge build yolo.onnx --target tensorrt-rtx:sm_89 -o yolo.engine
trtforge build yolo.onnx --target tensorrt-rtx:sm_89 -o fp32.engine
trtforge build yolo.onnx --precision fp16 --target tensorrt-rtx:sm_89 -o fp16.engine
trtforge build yolo.int8.onnx --target tensorrt-rtx:sm_89 -o int8.engine
trtforge build old.onnx --target tensorrt-rtx:sm_89 --batch 1/8/64 -o old.engine
trtforge build old.onnx --target tensorrt-rtx:sm_89 --batch 1/8/64 -o A.engine
trtforge build new.onnx --target tensorrt-rtx:sm_89 --batch 1/8/64 -o new.engine
trtforge build new.onnx --target tensorrt-rtx:sm_89 --batch 1/8/64 -o B.engine
trtforge build new.onnx --target tensorrt-rtx:sm_89 --batch 1/8/64 -o arcface_r100-fp16-sm75.plan
trtforge build arcface.onnx --target tensorrt-rtx:sm_89 -o arcface.engine
trtforge build encoder.onnx --target tensorrt-rtx:sm_89 --profile-from encoder.contract.json -o encoder.engine
trtforge stream record encoder.onnx --contract encoder.contract.json --chunks 4 -o reference.jsonl
trtforge stream record encoder.onnx --contract encoder.contract.json --chunks 4 -o pytorch_reference_300.jsonl
trtforge forge model.onnx --precision fp16 --batch 1/8/8 --target tensorrt-rtx:sm_89 --run-root runs/resnet50
trtforge forge model.onnx --precision fp16 --batch 1/8/8 --target tensorrt-rtx:sm_89 --run-root runs/resnet50-fp16
trtforge forge model.onnx --precision fp16 --batch 1/8/8 --target tensorrt-rtx:sm_89 --run-root runs/resnet50-int8
trtforge forge model.onnx --batch 1/8/8 --target tensorrt-rtx:sm_89 --run-root runs/resnet50-fp32
trtforge bundle build out/model_meta.json --outdir engines --target tensorrt-rtx:sm_89
trtforge eval coco --instances instances.json --detections detections.json
trtforge run model.onnx samples.npz -o outputs.npz
trtforge run model.onnx samples.npz -o engine.npz
trtforge run model.onnx samples.npz -o onnxruntime.npz
trtforge run model.onnx samples.npz -o reference.npz
trtforge run model.onnx samples.npz -o outs/
trtforge forge yolo.onnx --precision fp16 --target tensorrt-rtx:sm_89 --name yolo --run-root runs/yolo-fp16
trtforge deepstream config models/yolo/benchmarks/engines/yolo_dynamic_b64.engine -o .
trtforge run model.onnx samples.npz -o golden/
trtforge stream verify encoder.onnx --reference reference.jsonl --json > parity.json
trtforge bench model model.onnx --json > bench.json
trtforge gate policy.yaml bench.json --baseline baseline.json --update-baseline
trtforge bench model model.onnx --json > old.bench.json
trtforge bench model model.onnx --json > new.bench.json
`;

/** Writes the models, pictures, sounds and files that the lines of the pages name, small ones. */
export async function writePageFiles(folder: string): Promise<void> {
  const at = (...names: readonly string[]) => join(folder, ...names);
  await paintCells(folder);
  for (const name of ['val2017', 'val', 'train', 'faces', 'quant100'])
    cpSync(at('images'), at(name), { recursive: true });
  for (const copy of [1, 2, 3, 4]) copyFileSync(at('images/7.png'), at(`train/${copy}.png`));
  copyFileSync(at('instances.json'), at('instances_val2017.json'));
  copyFileSync(at('images/7.png'), at('street.jpg'));
  const detections = [{ image_id: 7, category_id: 11, bbox: [8, 16, 8, 8], score: 0.9 }];
  const texts: Readonly<Record<string, string>> = {
    'detections.json': JSON.stringify(detections),
    'coco.yaml': 'names: [red, green, blue]\n',
    'coco.txt': 'red\ngreen\n',
    'imagenet.txt': 'red\ngreen\nblue\n',
    'val.tsv': '7.png\t0\n9.png\t2\n',
    'first-100.txt': '7\n',
    'quant100.txt': 'images/7.png\nimages/9.png\n',
    'ref.txt': 'one two\n',
    'hyp.txt': 'one too\n',
    'manifest.tsv': 'utt_id\twav_path\tref_text\na\ta.wav\tone two\n',
    'transcripts.tsv': 'a\tone too\n',
    'dev-clean.tsv': 'utt_id\twav_path\tref_text\na\ta.wav\tone two\n',
    'check.sh': '#!/bin/sh\nexit 0\n',
    'policy.yaml': 'schema: trtforge.gate-policy/1\nchecks: []\n',
    'gate.yaml': 'schema: trtforge.gate-policy/1\nextends: streaming-parity\n',
    'inventory.yaml': yamlOf('which.md'),
    'engines.yaml':
      'store: store\ntargets:\n  rtx: { target: "tensorrt-rtx:sm_89" }\nmodels:\n  - { model: model.onnx, batch: 1/8/8 }\n',
    'detector.yaml': 'schema: trtforge.gate-policy/1\nchecks: []\n',
    'comparison.yaml': 'schema: trtforge.gate-policy/1\nchecks: []\n',
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(at(name), text, { mode: 0o755 });
  copyFileSync(join(fixtures, 'audio/pcm16.wav'), at('a.wav'));
  copyFileSync(join(fixtures, 'engine-layers/8.6-resnet50-fp16.json'), at('layers-8.6.json'));
  copyFileSync(join(fixtures, 'engine-layers/10.6-resnet50-fp16.json'), at('layers-10.6.json'));
  copyFileSync(join(fixtures, 'engine-layers/10.6-resnet50-fp16.json'), at('layers.json'));
  copyFileSync(join(fixtures, 'trtexec-logs/8.6-err_unknown_flag.log'), at('build.log'));
  for (const name of ['trt.json', 'onnxrt.json'])
    copyFileSync(join(fixtures, 'polygraphy/results.json'), at(name));
  for (const name of ['model', 'v1', 'v2', 'old']) await writeClassifier(at(`${name}.onnx`), 'x');
  await writeClassifier(at('new.onnx'), 'x', 1.0001);
  for (const name of ['resnet50', 'det'])
    await writeClassifier(at(`${name}.onnx`), name === 'det' ? 'images' : 'input');
  for (const name of ['yolo', 'yolov10m']) await writeYolo(at(`${name}.onnx`));
  await writeMasked(at('detr.onnx'));
  mkdirSync(at('models/yolo/model'), { recursive: true });
  await writeDetector(at('models/yolo/model/yolo.onnx'));
  writePlan(at('models/yolo/benchmarks/engines/yolo_dynamic_b64.engine'), { maxBatch: 64 });
  copyFileSync(await unitMeans(), at('arcface.onnx'));
  await writeDetector(at('detector.onnx'), { input: ['batch', 3, 'height', 'width'] });
  await modelFamilies['transformer-encoder']!.write('tiny', at('decoder.onnx'), { seed: 1, external: false });
  await modelFamilies['streaming-encoder']!.write('tiny', at('models'), { seed: 1, external: false });
  for (const name of ['out', 'bundle']) await writeBundle(at(name));
  for (const ending of ['onnx', 'contract.json'])
    copyFileSync(at(`models/encoder_streaming.${ending}`), at(`encoder.${ending}`));
  writeNpz(at('samples.npz'), new Map([['x', pictures(8)]]));
  writeNpz(at('inputs.npz'), new Map([['x', pictures(8)]]));
  writeNpy(at('cat.npy'), pictures(1));
  writeNpy(at('calib.npy'), pictures(4, 64));
}

/** The first YAML block of a page. */
const yamlOf = (page: string): string =>
  /^```yaml\n(.*?)^```/ms.exec(readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8'))?.[1] ??
  '';

/** Lines whose models have other inputs than those above, or that begin with nothing: what stands in a folder of their own. */
export const ownFiles: readonly (readonly [
  line: RegExp,
  write: (at: (name: string) => string) => Promise<void>,
])[] = [
  [
    /ids:1x16|--profile-from samples/,
    async (at) => {
      await writePassing(at('encoder.onnx'), { ids: ['batch', 'length'], mask: ['batch', 'length'] });
      mkdirSync(at('samples'));
      for (const [name, length] of [
        ['a', 4],
        ['b', 9],
      ] as const)
        writeNpz(
          at(`samples/${name}.npz`),
          new Map(
            ['ids', 'mask'].map((input) => [input, floats('float32', [1, length], Array(length).fill(1))]),
          ),
        );
    },
  ],
  [/x:1x80x1/, (at) => writePassing(at('m.onnx'), { x: ['batch', 80, 'time'] })],
  [/edit fixed\.onnx/, (at) => writePassing(at('fixed.onnx'), { x: [1, 3, 8] })],
  [/x:4x128/, (at) => writePassing(at('model.onnx'), { x: ['batch', 128] })],
  [
    /image=@/,
    async (at) => {
      for (const name of ['old', 'new']) await writeClassifier(at(`${name}.onnx`), 'image');
      writeNpy(at('cat.npy'), pictures(1));
    },
  ],
  [
    /compare out\/ golden\//,
    async (at) => {
      for (const name of ['out', 'golden']) mkdirSync(at(name));
      writeNpy(at('out/logits_0.npy'), pictures(1, 4));
      writeNpy(at('golden/logits.npy'), pictures(1, 4));
    },
  ],
  [
    /model_meta\.json --(?:manifest|engines)/,
    async (at) => {
      await writeBundle(at('.'));
      mkdirSync(at('out/speech-test'), { recursive: true });
      for (const name of ['dev-clean.tsv', 'out/speech-test/manifest.tsv'])
        writeFileSync(at(name), 'utt_id\twav_path\tref_text\na\ta.wav\tone two\n');
      for (const name of ['a.wav', 'out/speech-test/a.wav'])
        copyFileSync(join(fixtures, 'audio/pcm16.wav'), at(name));
    },
  ],
  [
    /other\.plan/,
    async (at) => {
      await writeClassifier(at('model.onnx'), 'x');
      writePlan(at('other.plan'), { passport: false });
    },
  ],
  [
    /gate init/,
    async (at) => {
      for (const name of ['parity', 'bench'])
        copyFileSync(join(fixtures, 'gate/parity-fp32.json'), at(`${name}.json`));
    },
  ],
  [
    /stream draft|--schedule/,
    async (at) => {
      await modelFamilies['streaming-encoder']!.write('tiny', at('.'), { seed: 1, external: false });
      copyFileSync(at('encoder_streaming.onnx'), at('encoder.onnx'));
    },
  ],
  [/triton export resnet50\.engine/, async (at) => void writePlan(at('resnet50.engine'))],
  [/triton check/, async (at) => void mkdirSync(at('models'))],
];

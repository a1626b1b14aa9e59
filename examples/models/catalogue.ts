import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { exportedEncoder, exportedShapes } from './exported-encoder.js';
import { matmulStack, stackShapes } from './matmul-stack.js';
import type { Network } from './network.js';
import { parakeetEncoder } from './parakeet/encoder.js';
import { parakeetJoint } from './parakeet/joint.js';
import { parakeetMeta } from './parakeet/meta.js';
import { parakeetPredictor } from './parakeet/predictor.js';
import { type ParakeetShape, parakeetShapes } from './parakeet/shapes.js';
import { resnet50, resnetShapes } from './resnet50.js';
import { streamingContract } from './streaming-encoder/contract.js';
import { streamingEncoder } from './streaming-encoder/encoder.js';
import { streamingShapes } from './streaming-encoder/shapes.js';
import { transformerEncoder, transformerShapes } from './transformer-encoder.js';
import { type WriteOptions, writeNetwork } from './write-network.js';

/** A kind of model that can be generated. */
export interface ModelFamily {
  readonly describe: string;
  readonly sizes: readonly string[];
  /** What `path` names: the ONNX file, or the folder of a bundle. */
  readonly output: 'file' | 'folder';
  /** Writes the model; returns the files, the ONNX files first. */
  write(size: string, path: string, options: WriteOptions): Promise<string[]>;
}

function singleFile<S>(
  describe: string,
  shapes: Readonly<Record<string, S>>,
  define: (network: Network, shape: S) => void,
): ModelFamily {
  return {
    describe,
    sizes: Object.keys(shapes),
    output: 'file',
    write: (size, path, options) => {
      const shape = shapes[size]!;
      mkdirSync(dirname(path), { recursive: true });
      return writeNetwork(path, (network) => define(network, shape), options);
    },
  };
}

const parakeetComponents = {
  encoder: parakeetEncoder,
  predictor: parakeetPredictor,
  joint: parakeetJoint,
};

async function writeParakeet(size: string, folder: string, options: WriteOptions): Promise<string[]> {
  const shape: ParakeetShape = parakeetShapes[size as keyof typeof parakeetShapes];
  mkdirSync(folder, { recursive: true });
  const files: string[] = [];
  for (const [name, define] of Object.entries(parakeetComponents)) {
    const path = join(folder, `${name}.onnx`);
    files.push(...(await writeNetwork(path, (network) => define(network, shape), options)));
  }
  const meta = join(folder, 'model_meta.json');
  const content = parakeetMeta(`parakeet-shaped-${size}`, shape, options.seed);
  writeFileSync(meta, `${JSON.stringify(content, null, 1)}\n`);
  return [...files, meta];
}

async function writeStreamingEncoder(size: string, folder: string, options: WriteOptions): Promise<string[]> {
  const shape = streamingShapes[size as keyof typeof streamingShapes];
  mkdirSync(folder, { recursive: true });
  const model = join(folder, 'encoder_streaming.onnx');
  const files = await writeNetwork(model, (network) => streamingEncoder(network, shape), options);
  const contract = join(folder, 'encoder_streaming.contract.json');
  writeFileSync(
    contract,
    `${JSON.stringify(streamingContract(`streaming-encoder-${size}`, shape), null, 1)}\n`,
  );
  return [...files, contract];
}

export const modelFamilies: Readonly<Record<string, ModelFamily>> = {
  resnet50: singleFile('ResNet-50, symbolic batch', resnetShapes, resnet50),
  'transformer-encoder': singleFile(
    '12-layer transformer encoder, symbolic batch and sequence',
    transformerShapes,
    transformerEncoder,
  ),
  'exported-encoder': singleFile(
    'transformer encoder as tracing wrote it, constants and sizes as nodes',
    exportedShapes,
    exportedEncoder,
  ),
  parakeet: {
    describe: 'speech bundle: encoder, predictor, joint and model_meta.json',
    sizes: Object.keys(parakeetShapes),
    output: 'folder',
    write: writeParakeet,
  },
  'streaming-encoder': {
    describe: 'speech encoder that runs chunk by chunk, its caches fed back, and its contract',
    sizes: Object.keys(streamingShapes),
    output: 'folder',
    write: writeStreamingEncoder,
  },
  'matmul-stack': singleFile('large plain layers, for benchmarks', stackShapes, matmulStack),
};

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { modelFamilies } from '../../../../examples/models/catalogue.js';
import { openModel } from '../../../../src/formats/onnx/index.js';
import { inferShapes, type ModelShapes } from '../../../../src/formats/onnx/shapes/infer.js';
import { isNumber, type MaybeSize, type Shape, type Size } from '../../../../src/formats/onnx/shapes/size.js';
import { writeMarked } from '../../../../src/products/study/marked-model.js';
import { trtforge } from '../../../support/trtforge.js';
import { scratchFolder } from '../support/models.js';

const folder = scratchFolder();

type Shapes = ReadonlyMap<string, Shape | undefined>;

/** Shapes of what the nodes of the graph give, by name. */
function shapesByName({ nodes }: ModelShapes): Shapes {
  return new Map(
    [...nodes].flatMap(([node, { shapes }]) =>
      node.output.map((name, index) => [name, shapes[index]] as const),
    ),
  );
}

/** An expression at these sizes; undefined where it has others. */
function evaluate(size: MaybeSize, at: ReadonlyMap<string, number>): number | undefined {
  if (size === undefined || isNumber(size)) return size;
  let sum = 0;
  for (const { factor, atoms } of size.terms.values()) {
    let product = factor;
    for (const { kind, text, of } of atoms) {
      const [a, b] = of.map((part: Size) => evaluate(part, at) ?? Number.NaN);
      const value = {
        symbol: at.get(text),
        quotient: Math.floor(a! / b!),
        min: Math.min(a!, b!),
        max: Math.max(a!, b!),
      };
      product *= value[kind] ?? Number.NaN;
    }
    sum += product;
  }
  return Number.isNaN(sum) ? undefined : sum;
}

function inferred(path: string, sizes: Readonly<Record<string, number>>): Shapes {
  const model = openModel(path);
  try {
    return shapesByName(inferShapes(model, new Map(), new Map(Object.entries(sizes))));
  } finally {
    model.close();
  }
}

/** What ONNX Runtime gives for every tensor that a node of the graph makes. */
async function measured(path: string, shapes: string): Promise<ReadonlyMap<string, readonly number[]>> {
  const model = openModel(path);
  const made = model.proto.graph?.node.flatMap(({ output }) => output) ?? [];
  model.close();
  const marked = join(folder, 'marked.onnx');
  await writeMarked(path, marked, made, 'dropped', undefined);
  const { json } = await trtforge(['run', marked, '--inputs', 'random', '--shapes', shapes, '--json']);
  const { outputs } = json() as unknown as { outputs: { name: string; shape: number[] }[] };
  return new Map(outputs.map(({ name, shape }) => [name, shape]));
}

async function generated(family: string, component: string): Promise<string> {
  const files = await modelFamilies[family]!.write('tiny', join(folder, family, 'model.onnx'), {
    seed: 1,
    external: false,
  });
  return files.find((file) => file.endsWith(component))!;
}

interface Case {
  readonly file: () => string | Promise<string>;
  readonly sizes: Readonly<Record<string, number>>;
  readonly shapes: string;
  /** How many tensors have sizes that only numbers determine, as those of a cache that is not full at first. */
  readonly open: number;
}

const recogniser = (name: string) => () => `examples/recogniser/bundle/${name}.onnx`;
const batchOfSpeech = { batch: 2, time: 123 };
const cases: Readonly<Record<string, Case>> = {
  'a CNN': {
    file: () => generated('resnet50', 'model.onnx'),
    sizes: { batch: 3 },
    shapes: 'input:3x3x32x32',
    open: 0,
  },
  'a transformer': {
    file: () => generated('transformer-encoder', 'model.onnx'),
    sizes: { batch: 2, sequence: 11 },
    shapes: 'input_ids:2x11',
    open: 0,
  },
  'a conformer': {
    file: () => generated('parakeet', 'encoder.onnx'),
    sizes: batchOfSpeech,
    shapes: 'audio_signal:2x128x123',
    open: 0,
  },
  'a streaming conformer': {
    file: () => generated('streaming-encoder', 'encoder_streaming.onnx'),
    sizes: batchOfSpeech,
    shapes: 'audio_signal:2x128x123',
    open: 5,
  },
  'a detector that PyTorch exported': {
    file: () => 'examples/detector/detector.onnx',
    sizes: { batch: 2 },
    shapes: 'images:2x3x256x256',
    open: 0,
  },
  'an encoder that PyTorch exported': {
    file: recogniser('encoder'),
    sizes: batchOfSpeech,
    shapes: 'audio_signal:2x80x123',
    open: 0,
  },
  'an LSTM': {
    file: recogniser('predictor'),
    sizes: { batch: 2, token_len: 5 },
    shapes: 'y:2x5',
    open: 0,
  },
};

describe('inferred shapes', () => {
  it.each(Object.entries(cases))(
    'are those that ONNX Runtime computes: %s',
    async (_, { file, sizes, shapes, open }) => {
      const path = await file();
      const actual = await measured(path, shapes);
      expect(actual.size).toBeGreaterThan(2);
      const ofSizes = inferred(path, sizes);
      expect(new Map([...actual.keys()].map((name) => [name, ofSizes.get(name)]))).toEqual(actual);

      const [ofSymbols, at] = [inferred(path, {}), new Map(Object.entries(sizes))];
      const expressions = [...actual].map(([name, shape]) => ({
        name,
        shape,
        found: ofSymbols.get(name)?.map((size) => evaluate(size, at)),
      }));
      const closed = expressions.filter(({ found }) => found?.every((size) => size !== undefined));
      expect(closed.map(({ name, found }) => [name, found])).toEqual(
        closed.map(({ name, shape }) => [name, shape]),
      );
      expect(expressions.length - closed.length).toBe(open);
    },
  );
});

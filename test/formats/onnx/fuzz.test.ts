import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import { ModelProtoSchema, TensorProtoSchema, writeModel } from '../../../src/formats/onnx/index.js';
import { modelFacts } from '../../../src/formats/onnx/inspect.js';
import { lintWeights } from '../../../src/formats/onnx/lint/weights.js';
import { modelOf } from '../../../src/formats/onnx/model.js';
import { runs } from '../../support/runs.js';
import { everywhereModel, scratchFolder } from './support/models.js';

const folder = scratchFolder();
const originals: Buffer[] = [];

beforeAll(async () => {
  for (const externalData of ['never', 'always'] as const) {
    const path = join(folder, `${externalData}.onnx`);
    await writeModel(everywhereModel(), path, { externalData });
    originals.push(readFileSync(path));
  }
  const { proto } = everywhereModel();
  const typed = (name: string, dataType: number, values: object) =>
    create(TensorProtoSchema, { name, dims: [600n], dataType, ...values });
  proto.graph!.initializer = [
    typed('f', 1, { floatData: new Array(600).fill(1) }),
    typed('i', 7, { int64Data: new Array(600).fill(-3n) }),
    typed('h', 10, { int32Data: new Array(600).fill(65000) }),
    typed('s', 8, { stringData: new Array(600).fill(Buffer.from('text')) }),
  ];
  originals.push(Buffer.from(toBinary(ModelProtoSchema, proto)));
});

type Mutation = (bytes: Buffer, other: Buffer) => Buffer;
const position = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  position.map(
    (at): Mutation =>
      (bytes) =>
        bytes.subarray(0, Math.floor(at * bytes.length)),
  ),
  fc.tuple(position, fc.nat(255)).map(
    ([at, value]): Mutation =>
      (bytes) => {
        const copy = Buffer.from(bytes);
        copy[Math.floor(at * copy.length)] = value;
        return copy;
      },
  ),
  // Tags and lengths gather at the start of messages, where flips hurt most.
  fc.tuple(fc.nat(400), fc.nat(255)).map(
    ([at, value]): Mutation =>
      (bytes) => {
        const copy = Buffer.from(bytes);
        if (at < copy.length) copy[at] = value;
        return copy;
      },
  ),
  fc.tuple(position, position, position).map(
    ([from, to, at]): Mutation =>
      (bytes, other) => {
        const part = other.subarray(Math.floor(from * other.length), Math.floor(to * other.length));
        const middle = Math.floor(at * bytes.length);
        return Buffer.concat([bytes.subarray(0, middle), part, bytes.subarray(middle)]);
      },
  ),
  fc.tuple(position, fc.integer({ min: 1, max: 9 })).map(
    ([at, length]): Mutation =>
      (bytes) => {
        const middle = Math.floor(at * bytes.length);
        const huge = Buffer.concat([Buffer.alloc(length, 0xff), Buffer.from([0x7f])]);
        return Buffer.concat([bytes.subarray(0, middle), huge, bytes.subarray(middle + length + 1)]);
      },
  ),
);

describe('any mutation of a real model', () => {
  it('is inspected or rejected with one of our errors, and no byte is read again and again', async () => {
    let mostRead = 0;
    const outcomes = { read: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.nat(2),
        fc.nat(2),
        fc.array(mutation, { minLength: 1, maxLength: 4 }),
        async (first, second, mutations) => {
          const bytes = mutations.reduce(
            (current, mutate) => mutate(current, originals[second]!),
            originals[first]!,
          );
          const source = bytesSource(join(folder, 'mutated.onnx'), bytes);
          let read = 0;
          try {
            const model = modelOf({
              ...source,
              read: (target, position, length) => {
                read += length;
                return source.read(target, position, length);
              },
            });
            modelFacts(model);
            await lintWeights(model);
            model.close();
            outcomes.read++;
          } catch (error) {
            if (!(error instanceof TrtforgeError) || error.code === 'TF_INTERNAL') throw error;
            outcomes.refused++;
          }
          mostRead = Math.max(mostRead, read / (bytes.length + 1));
        },
      ),
      { numRuns: runs(3000) },
    );
    expect(outcomes.read).toBeGreaterThan(runs(100));
    expect(outcomes.refused).toBeGreaterThan(runs(100));
    expect(mostRead).toBeLessThan(4);
  });
});

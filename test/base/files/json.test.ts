import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/base/files/json.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { layersOfFile } from '../../../src/engines/layers/engine-layers.js';
import { parseSignature } from '../../../src/engines/store/trust.js';
import { readContract } from '../../../src/formats/contract/file.js';
import { readMeta } from '../../../src/formats/contract/model-meta.js';
import { readCalibration } from '../../../src/formats/precision/calibrate/cache.js';
import { openReference } from '../../../src/formats/reference/reference.js';
import { openSafetensors } from '../../../src/formats/tensor/safetensors.js';
import { loadedSlot } from '../../../src/formats/tensor/tensor-reader.js';
import { readRepository } from '../../../src/products/triton/check/repository.js';
import { readBaseline } from '../../../src/quality/gate/baseline.js';
import { readResults } from '../../../src/quality/gate/gate-input.js';
import { readAnswer } from '../../../src/quality/known-answer/answer.js';
import { openPolygraphy } from '../../../src/quality/verify/polygraphy.js';
import { refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-json-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const list = (values: number) => `[${Array(values).fill('1').join()}]`;
const parsed = (text: string, largest = 3200) => parseJson(text, largest, (why) => new Error(why));

describe('JSON of others', () => {
  test.each([
    ['levels', nested(100), nested(101)],
    ['values', list(100), list(101)],
    ['bytes', JSON.stringify('x'.repeat(3198)), JSON.stringify('x'.repeat(3199))],
    ['levels of what is open alone', nested(100), '['.repeat(101)],
  ])('is bounded in %s', (_, most, more) => {
    expect(parsed(most)).toEqual(JSON.parse(most));
    expect(() => parsed(more)).toThrow(/^it has more than /);
  });

  test('in strings nothing counts', () => {
    const text = JSON.stringify({ [`\\"${'['.repeat(500)}`]: `${',{'.repeat(500)}"\\` });
    expect(parsed(text)).toEqual(JSON.parse(text));
  });

  test('any other is what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 20 }), fc.nat(), (text, at) => {
        expect(parsed(text, 1 << 20)).toEqual(JSON.parse(text));
        const cut = text.slice(0, at % text.length);
        let isJson = true;
        try {
          JSON.parse(cut);
        } catch {
          isJson = false;
        }
        if (!isJson) expect(() => parsed(cut, 1 << 20)).toThrow('it is not JSON');
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('readers of documents', () => {
  const written = (name: string, text: string) => {
    const path = join(root, name);
    writeFileSync(path, text);
    return path;
  };
  const readers: readonly (readonly [string, string, (text: string) => unknown])[] = [
    [
      'TF_PASSPORT_INVALID',
      'passport',
      (text) => readPassport(written('a.engine.passport.json', text).replace('.passport.json', '')),
    ],
    [
      'TF_PASSPORT_INVALID',
      'known answer',
      (text) =>
        readAnswer(
          written('a.engine.known-answer.json', text).replace('.known-answer.json', ''),
          null,
          '',
          false,
        ),
    ],
    ['TF_SIGNATURE_INVALID', 'signature', (text) => parseSignature(text, 'a.sig')],
    ['TF_CONTRACT_INVALID', 'contract', (text) => readContract(written('contract.json', text))],
    ['TF_BUNDLE_META_INVALID', 'meta file', (text) => readMeta(written('model_meta.json', text))],
    ['TF_GATE_BASELINE_INVALID', 'baseline', (text) => readBaseline(written('baseline.json', text))],
    [
      'TF_CALIBRATION_INVALID',
      'calibration cache',
      (text) => readCalibration(written('ranges.json', `{"a":${text}}`)),
    ],
    ['TF_GATE_RESULT_INVALID', 'gate result', (text) => readResults([written('bench.json', text)])],
    ['TF_LAYERS_INVALID', 'layers', (text) => layersOfFile(written('layers.json', text))],
    [
      'TF_LAYERS_INVALID',
      'layers as engine layers wrote them',
      (text) =>
        layersOfFile(written('own.json', `{"schema": "trtforge.engine-layers/1", "layers": ${text}}`)),
    ],
    [
      'TF_TENSOR_FILE_INVALID',
      'safetensors header',
      (text) => {
        const header = Buffer.from(`{"a":${text}}`);
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(BigInt(header.length));
        writeFileSync(join(root, 'a.safetensors'), Buffer.concat([length, header]));
        return openSafetensors(join(root, 'a.safetensors'));
      },
    ],
    [
      'TF_TENSOR_FILE_INVALID',
      'file of Polygraphy',
      (text) => openPolygraphy(written('outputs.json', text), loadedSlot()),
    ],
    [
      'TF_REFERENCE_INVALID',
      'line of a reference',
      (text) => openReference(written('stream.jsonl', `{"inputs":{"x":${text}},"outputs":{}}`)),
    ],
  ];
  const large = readers.slice(-6);
  const hostile: readonly (readonly [string, string])[] = [
    ['2,000 levels', nested(2000)],
    ['600,000 objects', `[${Array(600_000).fill('{}').join()}]`],
  ];
  test.each(
    readers
      .flatMap((reader) => hostile.map((each) => [...reader, ...each] as const))
      // Tables of two million ranges and results of a million numbers are real ones.
      .filter(
        ([, name, , what]) =>
          what === '2,000 levels' ||
          (name !== 'calibration cache' && large.every(([, other]) => other !== name)),
      ),
  )('%s: a %s of them', async (code, name, read, _, text) => {
    const outcome = Promise.resolve().then(() => read(text));
    await expect(outcome).rejects.toMatchObject({ code });
    if (name !== 'signature') await expect(outcome).rejects.toThrow(/ more than /);
  });

  test.each(large)('%s: a %s of nine million numbers', (code, _, read) => {
    expect(refusal(() => read(list(9_000_000)))).toMatchObject({
      code,
      message: expect.stringContaining(' more than '),
    });
  });

  test('contracts beside a model of Triton: a file that is too large is not read', () => {
    mkdirSync(join(root, 'repository', 'm', '1'), { recursive: true });
    const states = (count: number) =>
      JSON.stringify({
        ...{ schema: 'trtforge.contract/1', name: 'm' },
        inputs: [{ name: 'a' }],
        outputs: [{ name: 'b' }],
        state: Array(count).fill({ input: 'a', output: 'b' }),
      });
    const statesOf = (text: string) => {
      written('repository/m/contract.json', text);
      return readRepository(join(root, 'repository'), () => {})[0]?.states.length;
    };
    expect(statesOf(states(3))).toBe(3);
    expect(statesOf(states(40_000))).toBe(0);
    expect(statesOf(`{"a":${nested(2000)},${states(1).slice(1)}`)).toBe(0);
  });
});

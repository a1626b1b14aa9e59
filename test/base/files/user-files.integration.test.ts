import { linkSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { publishFile } from '../../../src/base/files/publish.js';
import { kindOf, noteInput, protectingInputs } from '../../../src/base/files/user-files.js';
import { convertModel } from '../../../src/formats/precision/convert.js';
import { openReference } from '../../../src/formats/reference/reference.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { runFile } from '../../../src/index.js';
import { samplePlan, writeSampleModel } from '../../support/sample-engine.js';
import { writeReference } from '../../support/write-reference.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-inputs-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});
const at = (name: string) => join(folder, name);
const tensor = { dtype: 'float32', shape: [2], bytes: new Uint8Array(8) } as const;

describe('publishing while inputs are protected', () => {
  test.each<[string, (from: string, to: string) => void]>([
    ['the same path', () => {}],
    ['a symbolic link', (from, to) => symlinkSync(from, to)],
    ['a hard link', (from, to) => linkSync(from, to)],
  ])('rejects %s, from any caller within the call', async (how, link) => {
    writeFileSync(at('in'), 'precious');
    const output = how === 'the same path' ? at('in') : at('out');
    link(at('in'), output);
    const publish = async () => {
      await new Promise(setImmediate);
      publishFile(output, 'new');
    };
    await expect(protectingInputs([at('in')], publish)).rejects.toMatchObject({ code: 'TF_OUTPUT_IS_INPUT' });
    // A call within a call adds to what is protected, for the rest of the outer one.
    const nested = async () => {
      protectingInputs([at('in')], () => {});
      await publish();
    };
    await expect(protectingInputs([], nested)).rejects.toMatchObject({ code: 'TF_OUTPUT_IS_INPUT' });
    expect(readFileSync(at('in'), 'utf8')).toBe('precious');
    await publish();
    expect(readFileSync(output, 'utf8')).toBe('new');
  });

  test('calls side by side do not share their inputs', async () => {
    writeFileSync(at('a'), 'a');
    const waiting = protectingInputs([at('a')], () => new Promise((resolve) => setTimeout(resolve, 20)));
    protectingInputs([at('b')], () => publishFile(at('a'), 'other'));
    expect(readFileSync(at('a'), 'utf8')).toBe('other');
    await waiting;
  });

  test('what the call itself wrote is written again, though it was read in between', () => {
    protectingInputs([], () => {
      publishFile(at('work'), 'first');
      noteInput(at('work'));
      publishFile(at('work'), 'second');
    });
    expect(readFileSync(at('work'), 'utf8')).toBe('second');
  });

  test('the number of an input that is gone protects no new file', () => {
    writeFileSync(at('gone'), 'x');
    protectingInputs([at('gone')], () => {
      linkSync(at('gone'), at('heir'));
      rmSync(at('gone'));
      publishFile(at('heir'), 'new');
    });
    expect(readFileSync(at('heir'), 'utf8')).toBe('new');
  });
});

describe('library calls protect what they read', () => {
  const untouched = async (path: string, attempt: () => Promise<unknown>) => {
    const before = readFileSync(path);
    await expect(attempt()).rejects.toMatchObject({ code: 'TF_OUTPUT_IS_INPUT' });
    expect(readFileSync(path)).toEqual(before);
  };

  test('convertModel: the model, and weights that are in another file', async () => {
    const model = await writeSampleModel(at('m.onnx'), { external: true });
    for (const path of [model, `${model}.data`])
      await untouched(path, () => convertModel(model, path, { precision: 'fp16' }));
    symlinkSync(`${model}.data`, at('typed.onnx.data'));
    await untouched(`${model}.data`, () =>
      convertModel(model, at('typed.onnx'), { precision: 'fp16', externalData: 'always' }),
    );
  });

  test('runFile: the inputs', async () => {
    const file = await writeSampleModel(at('m.onnx'), { batch: 1 });
    writeNpz(
      at('in.npz'),
      new Map([['x', { dtype: 'float32', shape: [1, 64], bytes: new Uint8Array(256) }]]),
    );
    const source = { kind: 'archive', path: at('in.npz') } as const;
    await untouched(at('in.npz'), () => runFile({ file, sources: [source], output: at('in.npz') }));
  });
});

test('kinds are recognised by content, of what trtforge itself writes too', async () => {
  await writeSampleModel(at('m.onnx'), { external: true });
  writeFileSync(at('plan'), samplePlan());
  writeNpy(at('npy'), tensor);
  writeNpz(at('npz'), new Map([['x', tensor]]));
  writeFileSync(at('empty'), '');
  await writeReference(at('reference.jsonl'), [
    { index: 0, inputs: new Map([['x', tensor]]), outputs: new Map(), metadata: {} },
  ]);
  openReference(at('reference.jsonl')).close();
  // The second holds no control character.
  writeFileSync(at('weights'), new Uint8Array(Float32Array.of(0.5, 1, 2).buffer));
  writeFileSync(at('alike'), new Uint8Array(new Float32Array(999).fill(0.01).buffer));
  const texts = {
    page: '<!doctype html>\n<html></html>',
    junit: '<?xml version="1.0"?>\n<testsuites/>',
    result: '{\n  "schema": "trtforge.gate/7",\n  "ok": true }',
    package: '{ "name": "x" }',
    list: '[{"startMs": 1}]',
    yaml: 'schema: x\n',
    long: `é${'ü'.repeat(400)}`,
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(at(name), text);
  const names = 'm.onnx m.onnx.data plan npy npz empty absent reference.jsonl weights alike'.split(' ');
  const kinds = [...names, ...Object.keys(texts)].map((name) => [name, kindOf(at(name))]);
  expect(Object.fromEntries(kinds)).toEqual({
    'm.onnx': 'an ONNX model',
    'm.onnx.data': 'binary data',
    plan: 'a TensorRT plan',
    npy: 'an npy file',
    npz: 'a ZIP archive',
    empty: undefined,
    absent: undefined,
    'reference.jsonl': 'JSON (chunk_idx)',
    weights: 'binary data',
    alike: 'binary data',
    page: 'an HTML page',
    junit: 'an XML file',
    result: 'JSON (trtforge.gate)',
    package: 'JSON (name)',
    list: 'JSON ()',
    yaml: 'a text file',
    long: 'a text file',
  });
});

import { describe, expect, it, test } from 'vitest';
import type { Passport } from '../../../src/engines/identity/passport.js';
import {
  checkLayersMatch,
  type LayersClaim,
  type PlanOfLayers,
} from '../../../src/engines/layers/layers-of-plan.js';
import { readLayers } from '../../../src/engines/layers/read-layers.js';
import { TrtforgeError } from '../../../src/errors.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';

const range = { min: [1, 8], opt: [4, 8], max: [16, 8], values: false };

function passportWith(change: Partial<Passport['plan']> = {}, builder?: 'trtexec'): Passport {
  const document = sampleIdentity();
  const recipe = { ...document.recipe, profiles: [{ x: range }] };
  const passport = samplePassport(samplePlan(), { ...document, recipe });
  const plan = {
    ...passport.plan,
    inputs: [{ name: 'x', dtype: 'float16', shape: [null, 8] }],
    outputs: [{ name: 'y', dtype: 'float32', shape: [null, 4] }],
    ...change,
  };
  return { ...passport, plan, built: { ...passport.built, ...(builder === undefined ? {} : { builder }) } };
}

const planOf = (passport: Passport | string): PlanOfLayers => ({
  path: 'model.engine',
  planBytes: 4096,
  planSha256: 'a'.repeat(64),
  passport,
});

const claim = (text: object, plan: Partial<LayersClaim> = {}): LayersClaim => ({
  path: 'layers.json',
  read: readLayers(JSON.stringify(text)),
  planBytes: null,
  planSha256: null,
  ...plan,
});

/** As TensorRT 11 exports it. */
const modern = (x: object = {}, y: object = {}, more: readonly object[] = []) => ({
  Layers: [{ Name: 'fc' }],
  'I/O Tensors': [
    {
      Name: 'x',
      IOMode: 'Input',
      DataType: 'Half',
      Dimensions: [-1, 8],
      ProfileInfo: [{ MinShape: [1, 8], OptShape: [4, 8], MaxShape: [16, 8] }],
      ...x,
    },
    { Name: 'y', IOMode: 'Output', DataType: 'Float', Dimensions: [-1, 4], ...y },
    ...more,
  ],
});

/** As TensorRT before 11 exports it. */
const older = (x: object = {}, names: readonly string[] = ['x', 'y'], layer = 'fc') => ({
  Layers: [
    {
      Name: layer,
      LayerType: 'Gemm',
      Inputs: [{ Name: 'x', Dimensions: [4, 8], 'Format/Datatype': 'Half', ...x }],
      Outputs: [{ Name: 'y', Dimensions: [4, 4], 'Format/Datatype': 'Float' }],
    },
  ],
  Bindings: names,
});

function misfitOf(given: LayersClaim, passport: Passport | string = passportWith()): string {
  try {
    const findings = checkLayersMatch(given, planOf(passport));
    throw new Error(`nothing was refused, only found: ${JSON.stringify(findings)}`);
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    expect(error).toMatchObject({ code: 'TF_LAYERS_MISMATCH', exitCode: 2 });
    expect(error.message).toMatch(/^layers\.json has the layers of another engine than model\.engine: /);
    return error.message;
  }
}

describe('layers from a file that are those of the engine', () => {
  test.each([
    ['TensorRT 11', modern()],
    ['TensorRT before 11', older()],
    ['TensorRT before 11, with two names for two profiles of it', older({}, ['x', 'y', 'x [profile 1]'])],
    ['TensorRT 11 with words that nobody knows', modern({ DataType: 'Quarter', IOMode: 'Both' })],
  ])('pass without a word: %s', (_, text) => {
    expect(checkLayersMatch(claim(text), planOf(passportWith()))).toEqual([]);
  });

  it('of the same plan by its digest are not looked at further', () => {
    const same = claim(older({}, ['other']), { planBytes: 4096, planSha256: 'a'.repeat(64) });
    expect(checkLayersMatch(same, planOf(passportWith()))).toEqual([]);
  });
});

describe('layers of another engine are rejected by what does not fit', () => {
  test.each<[string, object, RegExp]>([
    ['names, 11', modern({ Name: 'z' }), /they bind z, and this engine does not; they lack its x\.$/],
    ['names, before 11', older({}, ['x']), /they lack its y\.$/],
    ['a direction, 11', modern({ IOMode: 'Output' }), /x is an output there and an input here\.$/],
    ['a type, 11', modern({ DataType: 'Float' }), /x is float32 there and float16 here\.$/],
    [
      'a fixed dimension, 11',
      modern({}, { Dimensions: [-1, 5] }),
      /y is \[\?, 5\] there and \[\?, 4\] here\.$/,
    ],
    ['a rank, 11', modern({}, { Dimensions: [4] }), /y is \[4\] there and \[\?, 4\] here\.$/],
    [
      'a profile, 11',
      modern({ ProfileInfo: [{ MinShape: [1, 8], OptShape: [4, 8], MaxShape: [32, 8] }] }),
      /profile 0 has \[32, 8\] as max of x there and \[16, 8\] here\.$/,
    ],
    ['more profiles', older({}, ['x', 'y'], 'fc [profile 1]'), /of 2 profiles, this engine has 1\.$/],
  ])('%s', (_, text, sentence) => {
    expect(misfitOf(claim(text))).toMatch(sentence);
  });

  it('the size of the plan, without any passport', () => {
    expect(misfitOf(claim(older(), { planBytes: 5000 }), 'model.engine has no passport.')).toMatch(
      /taken from a plan of 5000 bytes, this one has 4096\.$/,
    );
  });

  it('the digest of a plan of the same size', () => {
    const other = claim(older(), { planBytes: 4096, planSha256: 'b'.repeat(64) });
    expect(misfitOf(other)).toMatch(/a plan with the SHA-256 bbbbbbbbbbbb…, this one has aaaaaaaaaaaa…\.$/);
  });

  it('names three differences and counts the rest', () => {
    const text = modern({ IOMode: 'Output', DataType: 'Float', Dimensions: [8] }, { Dimensions: [4] });
    expect(misfitOf(claim(text))).toMatch(/; and 1 more\.$/);
  });
});

describe('what only makes a doubt is a warning', () => {
  test.each([
    [
      'a dimension that a layer reads, before 11',
      older({ Dimensions: [4, 9] }),
      passportWith(),
      /x is \[4, 9\]/,
    ],
    ['a type that a layer reads, before 11', older({ 'Format/Datatype': 'Int32' }), passportWith(), /int32/],
    [
      'a type beside the model’s, of an engine trtexec built',
      modern({ DataType: 'Float' }),
      passportWith({}, 'trtexec'),
      /x is float32 there and float16 here/,
    ],
  ])('%s', (_, text, passport, message) => {
    expect(checkLayersMatch(claim(text), planOf(passport))).toEqual([
      {
        code: 'layers-doubtful',
        severity: 'warning',
        message: expect.stringMatching(message),
        where: 'layers.json',
      },
    ]);
  });
});

describe('where nothing can be compared, that is reported', () => {
  test.each([
    ['no passport', older(), 'model.engine has no passport.', /model\.engine has no passport\.$/],
    ['a passport without tensors', older(), passportWith({ inputs: [], outputs: [] }), /names no inputs and/],
    ['a file without tensors', older({}, []), passportWith(), /It names no inputs and outputs either\.$/],
  ])('%s', (_, text, passport, message) => {
    expect(checkLayersMatch(claim(text), planOf(passport))).toEqual([
      {
        code: 'layers-unchecked',
        severity: 'info',
        message: expect.stringMatching(message),
        where: 'layers.json',
      },
    ]);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { parseMeta } from '../../../src/formats/contract/model-meta.js';
import type { Component } from '../../../src/products/bundle/component.js';
import {
  checkSymbols,
  type ProfileSources,
  profileOf,
} from '../../../src/products/bundle/component-profile.js';
import { parseProfilesFile } from '../../../src/products/bundle/profiles-file.js';
import { refusal } from '../../support/refusal.js';

const nothing = parseMeta('{}', 'meta.json');
type Inputs = Record<string, [string, ...(number | string | null)[]]>;
const component = (name: string, inputs: Inputs): Component => ({
  name,
  onnx: `${name}.onnx`,
  inputs: Object.entries(inputs).map(([input, [dtype, ...shape]]) => ({ name: input, dtype, shape })),
  outputs: [],
  externalFiles: [],
  embeddingRows: null,
});
const encoder = component('encoder', { audio_signal: ['float32', 'B', 128, 'T'], length: ['int64', 'B'] });
const predictor = component('predictor', {
  y: ['int64', 'B', 'U'],
  h: ['float32', 2, 'B', 640],
  c: ['float32', 2, 'B', 640],
});
const joint = component('joint', {
  encoder_output: ['float32', 'B', 1024, 'T'],
  predictor_output: ['float32', 'B', 640, 'U'],
});

const ranges = (one: Component, sources: ProfileSources = {}, meta = nothing) =>
  Object.fromEntries(
    [...profileOf(one, meta, sources)].map(([name, { min, opt, max }]) => [
      name,
      [min, opt, max].map((dims) => dims.join('x')).join('/'),
    ]),
  );

describe('the profile of a component', () => {
  test('has the usual ranges where none are passed', () => {
    expect(ranges(encoder)).toEqual({ audio_signal: '1x128x16/1x128x64/1x128x256', length: '1/1/1' });
    expect(ranges(predictor)).toEqual({
      y: '1x1/1x1/1x8',
      h: '2x1x640/2x1x640/2x1x640',
      c: '2x1x640/2x1x640/2x1x640',
    });
    expect(ranges(joint)).toEqual({
      encoder_output: '1x1024x16/1x1024x64/1x1024x256',
      predictor_output: '1x640x1/1x640x1/1x640x8',
    });
  });

  test('takes every range of options and file, alone or together', () => {
    const file = parseProfilesFile(
      `components:
  encoder: { symbols: { T: 8/57/592 } }
  predictor: { symbols: { U: 1/1/2 } }
  joint: { symbols: { T: 1/1/1, U: 1/1/4 } }`,
      'profiles.yaml',
    );
    const sources: ProfileSources = { batch: { min: 1, opt: 1, max: 4 }, file };
    expect(ranges(encoder, sources)).toEqual({ audio_signal: '1x128x8/1x128x57/4x128x592', length: '1/1/4' });
    expect(ranges(predictor, sources)).toMatchObject({ y: '1x1/1x1/4x2', h: '2x1x640/2x1x640/2x4x640' });
    expect(ranges(joint, sources)).toEqual({
      encoder_output: '1x1024x1/1x1024x1/4x1024x1',
      predictor_output: '1x640x1/1x640x1/4x640x4',
    });
    expect(ranges(encoder, { file }).length).toBe('1/1/1');
  });

  test.each([
    [
      'symbols that exporters invent',
      {
        audio_signal: ['float32', 'audio_signal_dynamic_axes_1', 128, 'audio_signal_dynamic_axes_2'],
        length: ['int64', 'length_dynamic_axes_1'],
      },
    ],
    ['no symbols at all', { audio_signal: ['float32', null, 128, null], length: ['int64', null] }],
    ['a length of rank 2', { audio_signal: ['float32', 'B', 128, 'T'], length: ['int64', 'B', 1] }],
  ] as [string, Inputs][])('knows the usual inputs by name with %s', (_, inputs) => {
    const found = ranges(component('encoder', inputs));
    expect(found.audio_signal).toBe('1x128x16/1x128x64/1x128x256');
    expect(found.length).toMatch(/^1(x1)?\/1(x1)?\/1(x1)?$/);
  });

  test('goes by the contract where a layout is another than usual', () => {
    const meta = parseMeta(
      '{"tensor_layout_contract":{"encoder_input":"audio_signal: [B, T, n_mels]"}}',
      'meta.json',
    );
    const turned = component('encoder', { audio_signal: ['float32', null, null, 128] });
    expect(ranges(turned, {}, meta)).toEqual({ audio_signal: '1x16x128/1x64x128/1x256x128' });
  });

  test('of another component comes from a profiles file, by symbol and by input; --batch overrules it', () => {
    const file = parseProfilesFile(
      `symbols: { time: 41/57/57 }
components:
  encoder_streaming:
    symbols: { batch: 2 }
    inputs: { cache: 2x24x256/2x24x256/2x24x256 }
  encoder: { symbols: { T: 9/9/9 } }`,
      'profiles.yaml',
    );
    const streaming = component('encoder_streaming', {
      audio: ['float32', 'batch', 80, 'time'],
      cache: ['float32', 'batch', 'layers', 256],
    });
    expect(ranges(streaming, { file })).toEqual({
      audio: '2x80x41/2x80x57/2x80x57',
      cache: '2x24x256/2x24x256/2x24x256',
    });
    const batch = { min: 1, opt: 3, max: 3 };
    const own = parseProfilesFile('components: { encoder: { symbols: { B: 2 } } }', 'own.yaml');
    expect([ranges(encoder, { file: own }).length, ranges(encoder, { file: own, batch }).length]).toEqual([
      '2/2/2',
      '1/3/3',
    ]);
    expect(ranges(encoder, { file }).audio_signal).toBe('1x128x9/1x128x9/1x128x9');
  });

  test.each([
    ['symbols: { tiem: 1/2/3 }', 'bundle', 'tiem'],
    ['components: { encoder: { symbols: { B: 1, tim: 1/2/3 } } }', 'encoder', 'tim'],
  ])('a symbol that no dimension has is rejected: %s', (text, what, symbol) => {
    const error = refusal(() => checkSymbols([encoder], parseProfilesFile(text, 'p.yaml')));
    expect(error.code).toBe('TF_PROFILE_INVALID');
    expect(error.message).toBe(`No dimension of the ${what} is called "${symbol}".`);
    expect(error.remedy).toMatch(/^Those with a name are /);
  });

  test('of a component that nothing is known of names its dimensions and what to write', () => {
    const error = refusal(() => ranges(component('vocoder', { mel: ['float32', 'batch', 'bins', null] })));
    expect(error.code).toBe('TF_PROFILE_MISSING');
    expect(error.message).toMatch(
      /vocoder have no range: "mel" axis 1 \(bins\), "mel" axis 2 \(without a name\)/,
    );
    expect(error.remedy).toContain('--profiles');
  });

  test.each([
    [
      'inputs that share a symbol and disagree',
      component('joint', {
        encoder_output: ['float32', 'B', 8, 'N'],
        predictor_output: ['float32', 'B', 8, 'N'],
      }),
      {},
      /joint: Dimension "N" is 16\/64\/256 at "encoder_output" axis 2 but 1\/1\/8/,
    ],
    [
      'ends that do not ascend',
      encoder,
      { file: parseProfilesFile('components: { encoder: { symbols: { T: 100/64/256 } } }', 'p.yaml') },
      /time range of the encoder is 100\/64\/256/,
    ],
  ] as [string, Component, ProfileSources, RegExp][])('rejects %s', (_, one, sources, message) => {
    const error = refusal(() => ranges(one, sources));
    expect(error.code).toBe('TF_PROFILE_INVALID');
    expect(error.message).toMatch(message);
  });

  test('rejects an input that the file knows and the model does not', () => {
    const file = parseProfilesFile('components: { encoder: { inputs: { audio: 1x128x16 } } }', 'p.yaml');
    const error = refusal(() => ranges(encoder, { file }));
    expect([error.code, error.message]).toEqual([
      'TF_PROFILE_INVALID',
      expect.stringContaining('no input "audio"'),
    ]);
  });
});

describe('a profiles file', () => {
  test.each([
    ['no YAML', 'symbols: [', /p\.yaml/],
    ['an unknown key', 'sizes: {}', /sizes/],
    ['a range of two', 'symbols: { T: 1/2 }', /"T: 1\/2" is not MIN\/OPT\/MAX/],
    ['a range of words', 'symbols: { T: long }', /"T: long"/],
    ['a shape of words', 'components: { a: { inputs: { x: wide } } }', /"x: wide"/],
    ['a component with a path for a name', 'components: { "../a": {} }', /component/],
  ])('with %s is rejected', (_, text, message) => {
    const error = refusal(() => parseProfilesFile(text, 'p.yaml'));
    expect(error.code).toBe('TF_BUNDLE_PROFILES_INVALID');
    expect(error.message).toMatch(message);
  });

  test('may be empty', () => {
    expect(parseProfilesFile('', 'p.yaml')).toMatchObject({ components: null, symbols: new Map() });
  });

  test('of any text is read or rejected', () => {
    const word = fc.constantFrom(
      'symbols',
      'components',
      'inputs',
      ':',
      ' ',
      '\n  ',
      '{',
      '}',
      '1/2/3',
      '[',
      ']',
      '&a',
      '*a',
      '- ',
      'x',
      '"',
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), (words) => {
        try {
          parseProfilesFile(words.join(''), 'p.yaml');
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import {
  movedAxes,
  parseLayouts,
  parseMeta,
  readMeta,
  roleOfAxisName,
} from '../../../src/formats/contract/model-meta.js';
import { writeBundle } from '../../support/bundle.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-meta-'));
const path = await writeBundle(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the meta file of a bundle', () => {
  test('states what decides about engines', () => {
    const meta = readMeta(path);
    expect(meta).toMatchObject({
      modelName: 'parakeet-shaped-tiny',
      mels: 128,
      sampleRate: 16_000,
      labels: expect.objectContaining({ length: 32 }),
      vocabulary: 32,
      blankId: 32,
      durations: [0, 1, 2, 3, 4],
      jointWidth: 38,
      warnings: [],
    });
    expect(meta.layouts.get('encoder_input')).toEqual([
      { name: 'audio_signal', dims: ['B', 'n_mels', 'T'] },
      { name: 'length', dims: ['B'] },
    ]);
  });

  test.each([
    ['nothing at all', '{}'],
    [
      'nulls everywhere',
      '{"model_name":null,"labels":null,"blank_id":null,"tokenizer_vocab_size":null,"joint_vocab_size":null,"duration_values":null,"tensor_layout_contract":null,"features":null}',
    ],
    [
      'nulls inside',
      '{"features":{"type":null,"n_mels":null},"tensor_layout_contract":{"encoder_input":null}}',
    ],
  ])('may leave open %s', (_, text) => {
    const { mels, vocabulary, jointWidth, blankId, layouts } = parseMeta(text, 'meta.json');
    expect([mels, vocabulary, jointWidth, blankId, layouts.size]).toEqual([null, null, null, null, 0]);
  });

  test('lets what is there stand in for what is not', () => {
    const meta = parseMeta('{"labels":["a","b","c"],"duration_values":[0,1]}', 'meta.json');
    expect([meta.vocabulary, meta.jointWidth]).toEqual([3, 6]);
  });

  test('keeps unknown fields from being errors and warns of labels that do not count up', () => {
    const meta = parseMeta(
      '{"x_ours":{"a":1},"labels":["<unk>","a"],"tokenizer_vocab_size":8192}',
      'meta.json',
    );
    expect(meta.vocabulary).toBe(8192);
    expect(meta.warnings).toEqual([expect.stringMatching(/2 labels .* 8192/)]);
  });

  test.each([
    ['blankid', '{"blankid":1}', 'blank_id'],
    ['duration_value', '{"duration_value":[0]}', 'duration_values'],
    ['features.n_mel', '{"features":{"n_mel":80}}', 'n_mels'],
  ])('names a field that is misspelt: %s', (field, text, meant) => {
    const { warnings } = parseMeta(text, 'meta.json');
    expect(warnings).toEqual([expect.stringContaining(`"${field}"`)]);
    expect(warnings[0]).toContain(`"${meant}"`);
    expect(parseMeta('{"tokenizer_file":"t.model","exported":"today"}', 'meta.json').warnings).toEqual([]);
  });

  test.each([
    ['text that is no JSON', '{"features":', /not JSON/],
    ['a list', '[]', /`name: value` entries is expected here, not a list/],
    ['labels that are numbers', '{"labels":[1]}', /"labels": is not a list of texts/],
    ['a width that is no number', '{"joint_vocab_size":"8198"}', /"joint_vocab_size"/],
    ['mel bins that are no number', '{"features":{"n_mels":"128"}}', /"features.n_mels"/],
    ['chunks of nothing', '{"streaming":{"chunk_size":[0,48],"shift_size":24}}', /"streaming.chunk_size"/],
    ['chunks without a shift', '{"streaming":{"chunk_size":48}}', /"streaming.shift_size"/],
  ])('rejects %s, naming the field', (_, text, message) => {
    const error = refusal(() => parseMeta(text, 'out/model_meta.json'));
    expect(error.code).toBe('TF_BUNDLE_META_INVALID');
    expect(error.message).toMatch(message);
    expect(error.message).toContain('out/model_meta.json');
  });

  test('that is not there is reported as missing', () => {
    expect(refusal(() => readMeta(join(folder, 'no.json'))).code).toBe('TF_FILE_NOT_FOUND');
    expect(refusal(() => readMeta(folder)).code).toBe('TF_FILE_UNREADABLE');
  });

  test('damaged in any way is read or rejected', () => {
    const streaming = { chunk_size: [41, 48], shift_size: [17, 24], pre_encode_cache_size: 9 };
    const whole = JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), streaming });
    for (const bytes of mutations(Buffer.from(whole), 300, 5)) {
      try {
        parseMeta(Buffer.from(bytes).toString(), 'damaged.json');
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
      }
    }
  });
});

describe('a layout contract in free text', () => {
  test.each([
    [
      'y: [B, U], h: [L, B, H]',
      [
        ['y', 'B', 'U'],
        ['h', 'L', 'B', 'H'],
      ],
    ],
    ['[B, n_mels, T]', [[null, 'B', 'n_mels', 'T']]],
    [
      'joint_output: [B, T, U, vocab + 1 + durations] raw logits',
      [['joint_output', 'B', 'T', 'U', 'vocab + 1 + durations']],
    ],
    ['length = []', [['length']]],
    ['see the paper', []],
  ])('%s', (text, expected) => {
    expect(parseLayouts(text).map(({ name, dims }) => [name, ...dims])).toEqual(expected);
  });

  test.each(['a', ':', '[', ']', ',', '\n', 'a:', 'a: [', '[a', 'a,', ': [b]', 'a: [b] '])(
    'a text of nothing but "%s" is read in one pass: going back at each would take hours',
    (piece) => void parseLayouts(piece.repeat(1_000_000)),
  );

  test('any text at all is read without an error', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '_', ':', '[', ']', ',', ' ', '\n'), maxLength: 20_000 }),
        (text) => void parseLayouts(text),
      ),
      { numRuns: 50 },
    );
  });

  test.each([
    ['B', 'batch'],
    ['batch_size', 'batch'],
    ['T', 'time'],
    ['T_out', 'time'],
    ['time', 'time'],
    ['U', 'tokens'],
    ['token_len', 'tokens'],
    ['n_mels', undefined],
    ['D_enc', undefined],
    ['H', undefined],
  ])('the word %s is %s', (word, role) => expect(roleOfAxisName(word)).toBe(role));

  test.each([
    ['the batch where layers are', ['B', 'L', 'H'], [2, 'B', 24], ['B']],
    ['the batch by another word', ['batch', 'L', 'H'], [2, 'N', 24], ['batch']],
    ['two axes exchanged', ['B', 'T', 'D'], ['B', 'D', 'T'], ['T', 'D']],
    ['every axis where it is', ['L', 'B', 'H'], [2, 'B', 24], []],
    ['a layout all of words against numbers', ['B', 'L', 'H'], [2, 1, 24], []],
    ['names that only one side has', ['B', 'n_mels', 'T'], ['x', 128, null], []],
    ['a name that the model has twice', ['B', 'T', 'D'], ['T', 'T_out', 'D'], []],
  ])('%s: %j against %j', (_, dims, shape, moved) => expect(movedAxes(dims, shape)).toEqual(moved));
});

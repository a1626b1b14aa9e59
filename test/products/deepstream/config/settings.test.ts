import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { nvinferKeys } from '../../../../src/products/deepstream/config/nvinfer-keys.js';
import { parseKeyGroups } from '../../../../src/products/deepstream/config/read-config.js';
import { NvinferSettings } from '../../../../src/products/deepstream/config/settings.js';
import { runs } from '../../../support/runs.js';

const settingsOf = (text: string, path = 'c.txt') => new NvinferSettings(parseKeyGroups(text, path), path);
const found = (text: string, path?: string) =>
  settingsOf(text, path).findings.list.map(({ code, where }) => `${code} ${where}`);

describe('the key file as GLib reads it', () => {
  it.each([
    ['[property]\nnonsense\n', 2],
    ['gpu-id=0\n[property]\n', 1],
    ['[property]x\n', 1],
    ['[pro[perty]\n', 1],
    ['[property]\n=3\n', 2],
    ['[property]\n// a comment\n', 2],
    ['\ufeff[property]\n', 1],
    ['[property]\nk[=1\n', 2],
  ])('rejects %j at line %i', (text, line) => {
    expect(() => parseKeyGroups(text, 'c.txt')).toThrow(
      expect.objectContaining({ code: 'TF_SERVING_CONFIG', details: { path: 'c.txt', line } }),
    );
  });

  test('takes blanks, comments, equal groups and carriage returns', () => {
    const text = '# c\r\n  [property] \r\n gpu-id = 0\r\n\n[class-attrs-all]\n[property]\nbatch-size=2\n';
    const { groups } = parseKeyGroups(text, 'c.txt');
    expect([...groups.keys()]).toEqual(['property', 'class-attrs-all']);
    expect(groups.get('property')).toEqual(
      new Map([
        ['gpu-id', { value: '0', line: 3 }],
        ['batch-size', { value: '2', line: 7 }],
      ]),
    );
  });

  test('returns or throws its error for any text', () => {
    const line = fc.oneof(
      fc.constantFrom(
        '[property]',
        'batch-size=1',
        'infer-dims=3;64;64',
        'offsets=1;2;3',
        '[',
        '=',
        '#',
        'a: b',
      ),
      fc.string({ unit: 'binary', maxLength: 40 }),
    );
    const path = fc.constantFrom('c.txt', 'c.yml');
    fc.assert(
      fc.property(fc.array(line, { maxLength: 20 }), path, (lines, name) => {
        try {
          expect(settingsOf(lines.join('\n'), name).findings.list).toBeInstanceOf(Array);
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
        }
      }),
      { numRuns: runs(2000) },
    );
  });
});

describe('values', () => {
  it.each([
    ['batch-size=3 # three', 3],
    ['batch-size=+3', 3],
    ['net-scale-factor=.5', 0.5],
    ['interval=0', 0],
    ['network-type=100', 100],
  ])('%s is read', (line, value) => {
    const settings = settingsOf(`[property]\n${line}\n`);
    expect(settings.findings.list).toEqual([]);
    expect(settings.number(line.split('=')[0]!, -1)).toBe(value);
  });

  it.each([
    ['batch-size=0', 'value-out-of-range'],
    ['batch-size=1025', 'value-out-of-range'],
    ['network-type=4', 'value-out-of-range'],
    ['network-mode=4', 'value-out-of-range'],
    ['process-mode=3', 'value-out-of-range'],
    ['infer-dims=3;64', 'value-out-of-range'],
    ['offsets=1;2;3;4;5', 'value-out-of-range'],
    ['infer-dims=3,64,64', 'value-unreadable'],
    ['batch-size=3x', 'value-unreadable'],
    ['batch-size=99999999999', 'value-unreadable'],
    ['net-scale-factor=0.5 # half', 'value-unreadable'],
    ['strongly-typed=yes', 'value-unreadable'],
    ['strongly-typed=1 # typed', 'value-unreadable'],
    ['onnx-file=a\\b.onnx', 'value-unreadable'],
    ['onnx-file=a\\;b.onnx', 'value-unreadable'],
    ['onnx-file="a.onnx"', 'value-blanks'],
    ['onnx-file=a.onnx # the model', 'value-blanks'],
    ['onnx-fil=a.onnx', 'key-unknown'],
    ['topk=3', 'key-unknown'],
    ['enable-dbscan=1', 'key-translated'],
    ['force-implicit-batch-dim=1', 'key-legacy'],
  ])('%s is %s', (line, code) => {
    expect(found(`[property]\n${line}\n`)).toEqual([`${code} c.txt:2`]);
  });

  test('a backslash stands twice, and before a semicolon of a list', () => {
    expect(found('[property]\nonnx-file=a\\\\b.onnx\noutput-blob-names=a\\;b\n')).toEqual([]);
  });

  test('lists may end with a semicolon', () => {
    const settings = settingsOf('[property]\ninfer-dims=3; 64;64;\noutput-blob-names=a;b;\n');
    expect(settings.list('infer-dims')).toEqual([3, 64, 64]);
    expect(settings.list('output-blob-names')).toEqual(['a', 'b']);
  });

  test('a typing error gets the key that was meant', () => {
    const [finding] = settingsOf('[property]\nnet-scale-facter=1\n').findings.list;
    expect(finding?.message).toContain('"net-scale-factor"');
  });
});

describe('groups', () => {
  it.each([
    ['[class-attrs-all]\n', ['group-missing c.txt']],
    ['[property]\n[propertys]\n', ['group-unknown c.txt']],
    ['[property]\nnum-detected-classes=2\n[class-attrs-2]\ntopk=1\n', ['class-attrs c.txt']],
    ['[property]\nnum-detected-classes=2\n[class-attrs-1]\ntopk=1\n', []],
    ['[property]\nnetwork-type=1\n[class-attrs-9]\ntopk=1\n', []],
    ['[property]\n[class-attrs-all]\nnms-iou-threshold=1.5\n', ['value-out-of-range c.txt:3']],
    ['[property]\ngpu-id=0\ngpu-id=1\n', ['key-twice c.txt:2']],
  ])('%j', (text, codes) => {
    expect(found(text)).toEqual(codes);
  });
});

describe('the YAML form, chosen by the ending', () => {
  const yaml = 'property:\n  batch-size: 2\n  infer-dims: 3;64;64\nclass-attrs-all:\n  topk: 20\n';

  test('is read to the same values', () => {
    const settings = settingsOf(yaml, 'c.yaml');
    expect(settings.findings.list).toEqual([]);
    expect([settings.number('batch-size', 1), settings.list('infer-dims')]).toEqual([2, [3, 64, 64]]);
    expect(settings.where('batch-size')).toBe('c.yaml:2');
  });

  it.each([
    ['property:\n  strongly-typed: true\n', ['value-unreadable c.yml:2']],
    ['property:\n  enable-dbscan: 1\n', ['key-unknown c.yml:2']],
    ['property:\n  gpu-id: 0\n  gpu-id: 1\n', []],
    ['property:\ntopk: 3\n', ['group-unknown c.yml']],
  ])('%j', (text, codes) => {
    expect(found(text, 'c.yml')).toEqual(codes);
  });

  test('a list where one text is read names the line', () => {
    expect(() => parseKeyGroups('property:\n  infer-dims: [3, 64, 64]\n', 'c.yml')).toThrow(
      expect.objectContaining({ code: 'TF_SERVING_CONFIG', details: { path: 'c.yml', line: 2 } }),
    );
  });
});

test('the keys are those of the two groups, each once', () => {
  const of = (group: string) => [...nvinferKeys.values()].filter((key) => key.group === group).length;
  expect([of('property'), of('class-attrs')]).toEqual([80, 17]);
});

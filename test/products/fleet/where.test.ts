import { expect, test } from 'vitest';
import { z } from 'zod';
import { enginesFileSchema, targetEntrySchema } from '../../../src/products/fleet/engines-file-schema.js';
import { whereSchema } from '../../../src/products/fleet/schedulers/where.js';

test.each([
  [{ slurm: { partitoin: 'gpu' } }],
  [{ slurm: {}, ssh: { host: 'a' } }],
  [{}],
  [{ slurm: { options: ['-p gpu'] } }],
  [{ ssh: { host: '-oProxyCommand=x' } }],
  [{ ssh: { host: 'a b' } }],
  [{ kubernetes: { image: 'i', nodeSelector: { a: 8 } } }],
  ['slurm'],
])('where: %j is rejected', (where) => {
  expect(whereSchema.safeParse(where).success).toBe(false);
});

test('text of a script is one line, in every language', () => {
  const isTaken = (constraint: string) => whereSchema.safeParse({ slurm: { constraint } }).success;
  expect(isTaken('gpu & "é" 日本 😀')).toBe(true);
  for (const end of ['\n', '\r', '\0', '\u007f', '\u0085', '\u2028', '\u2029'])
    expect(isTaken(`a${end}b`), JSON.stringify(end)).toBe(false);
});

test('the JSON Schema of plans has no pattern that Python cannot read', () => {
  expect(JSON.stringify(z.toJSONSchema(targetEntrySchema, { io: 'input' }))).not.toContain('\\\\p{');
});

test.each(['slurm', 'kubernetes', 'ssh'])('an unknown key of %s is named', (kind) => {
  const { error } = whereSchema.safeParse({ [kind]: { host: 'h', odd: 1 } });
  expect(JSON.stringify(error?.issues)).toContain('odd');
});

test.each([
  ['tensorrt@10.15.1.29:sm_90', '26.02-py3'],
  ['tensorrt@10.13.3.9:sm_90', null],
])('Kubernetes needs an image, for %s made from %s', (target, tag) => {
  const { error } = targetEntrySchema.safeParse({ target, where: { kubernetes: {} } });
  expect(error?.issues[0]?.path).toEqual(['where', 'kubernetes', 'image']);
  expect(error?.issues[0]?.message.includes('nvcr.io')).toBe(tag !== null);
  expect(error?.issues[0]?.message).toContain(tag ?? 'trtforge');
});

test.each(['x'.repeat(25), 'l4-', 'L4', '../x', 'a\nb'])('a target cannot be called %j', (name) => {
  const file = { store: 's', targets: { [name]: { target: 'tensorrt' } }, models: [{ model: 'm.onnx' }] };
  expect(enginesFileSchema.safeParse(file).success).toBe(false);
  expect(enginesFileSchema.safeParse({ ...file, targets: { l4: { target: 'tensorrt' } } }).success).toBe(
    true,
  );
});

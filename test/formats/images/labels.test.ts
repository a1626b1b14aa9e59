import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { labelsOfMetadata, readLabels } from '../../../src/formats/images/labels.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-labels-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

it.each([
  ['lines.txt', 'person\ntraffic light\r\ncat\n'],
  ['list.yaml', 'names: [person, traffic light, cat]\n'],
  ['coco.yaml', 'path: x\nnames:\n  0: person\n  1: traffic light\n  2: cat\n'],
  ['map.json', '{"2": "cat", "0": "person", "1": "traffic light"}'],
])('reads %s', (name, text) => {
  expect(readLabels(file(name, text))).toEqual(['person', 'traffic light', 'cat']);
});

it.each([
  ['empty.txt', ''],
  ['gap.txt', 'person\n\ncat\n'],
  ['gap.yaml', 'names:\n  0: person\n  2: cat\n'],
  ['text.yaml', 'person'],
  ['damaged.json', '{"names": ['],
])('rejects %s with TF_EVAL_DATA', (name, text) => {
  expect(() => readLabels(file(name, text))).toThrow(expect.objectContaining({ code: 'TF_EVAL_DATA' }));
});

it("reads Ultralytics' metadata", () => {
  expect(labelsOfMetadata({ names: `{0: 'person', 1: "driver's seat", 2: 'a\\'b'}` })).toEqual([
    'person',
    "driver's seat",
    "a'b",
  ]);
  expect(labelsOfMetadata({ author: 'x' })).toBeUndefined();
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readManifest } from '../../../src/products/evaluation/wer/manifest.js';
import { readTranscripts } from '../../../src/products/evaluation/wer/transcripts.js';
import { refusal } from '../../support/refusal.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-nemo-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

const LINES = [
  '{"audio_filepath": "a.wav", "duration": 1.2, "text": "good day"}',
  '{"audio_filepath": "b.wav", "duration": 0.8, "text": "", "offset": 0.0}',
];

test('a manifest of NeMo is read, and its transcripts are scored by the path', () => {
  const path = file('manifest.json', `${LINES.join('\n')}\n`);
  expect(readManifest(path)).toEqual([
    { id: 'a.wav', reference: 'good day', audio: 'a.wav' },
    { id: 'b.wav', reference: '', audio: 'b.wav' },
  ]);
  const { form, utterances } = readTranscripts(path, file('hyp.tsv', 'a.wav\tgood\n'));
  expect(form).toBe('manifest');
  expect(utterances.map(({ hypothesis }) => hypothesis)).toEqual(['good', null]);
});

test.each([
  ['without text', '{"audio_filepath": "c.wav"}', /"text"/],
  ['a part of a recording', '{"audio_filepath": "c.wav", "text": "x", "offset": 3.5}', /"offset"/],
  ['cut off', '{"audio_filepath": "c.wav"', /Line 3/],
  ['a path twice', LINES[0]!, /a second time/],
])('a line that is no utterance is named: %s', (_, line, message) => {
  const error = refusal(() => readManifest(file('bad.json', [...LINES, line].join('\n'))));
  expect(error).toMatchObject({ code: 'TF_EVAL_DATA', message: expect.stringMatching(message) });
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { parseProtobufText } from '../../../src/formats/serving/protobuf-text.js';
import { checkRepository } from '../../../src/products/triton/check/check.js';
import { outputsOf } from '../../../src/products/triton/try/client.js';
import { mutations } from '../../support/mutations.js';
import { runs } from '../../support/runs.js';
import { goodRepository, writeFiles } from './sample-repository.js';

const files = goodRepository();
const configs = Object.keys(files).filter((path) => path.endsWith('config.pbtxt'));
const folder = writeFiles(mkdtempSync(join(tmpdir(), 'trtforge-triton-fuzz-')), files);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('any mutation of a configuration', () => {
  it.each(configs)('is read or rejected with its line: %s', (path) => {
    for (const bytes of mutations(Buffer.from(files[path]!), runs(5000))) {
      try {
        expect(
          parseProtobufText('inference.ModelConfig', Buffer.from(bytes).toString('utf8'), path),
        ).toBeTypeOf('object');
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
        expect(error).toMatchObject({
          code: 'TF_SERVING_CONFIG',
          message: expect.stringMatching(/line \d+: /),
        });
      }
    }
  });

  it.each(configs)('leaves findings in the repository, and nothing else: %s', async (path) => {
    for (const bytes of mutations(Buffer.from(files[path]!), runs(400), 7)) {
      writeFileSync(join(folder, path), bytes);
      const { findings, outcome } = await checkRepository({ repository: folder });
      expect(outcome).toBe(findings.some(({ severity }) => severity === 'error') ? 'fail' : 'pass');
      for (const { where, message, remedy } of findings) {
        expect(where + message + remedy).not.toMatch(/undefined|\[object|\{\d\}|NaN/);
      }
    }
    writeFileSync(join(folder, path), files[path]!);
  });
});

describe('any mutation of an answer over HTTP', () => {
  it('is read, or the model that states it is named', () => {
    const shape = [1, 3];
    const header = Buffer.from(JSON.stringify({ outputs: [{ name: 'y', datatype: 'FP32', shape }] }));
    const answer = Buffer.concat([header, Buffer.alloc(12, 1)]);
    expect(outputsOf('m', answer, header.length).get('y')?.bytes).toHaveLength(12);
    for (const bytes of mutations(answer, runs(5000)))
      try {
        expect(outputsOf('m', Buffer.from(bytes), header.length)).toBeInstanceOf(Map);
      } catch (error) {
        expect(error).toMatchObject({ code: 'TF_RUN_FAILED', message: expect.stringContaining('m gives') });
      }
  });
});

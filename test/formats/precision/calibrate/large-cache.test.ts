import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readCalibration } from '../../../../src/formats/precision/calibrate/cache.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-large-cache-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each<[string, (name: string, at: number) => string, readonly [string, string]]>([
  ['a table', (name) => `${name}: 3c010a14\n`, ['TRT-8602-EntropyCalibration2\n', '']],
  [
    'a cache',
    (name, at) => `${at === 0 ? '' : ','}"${name}":{}`,
    ['{"schema":"trtforge.calibration/1","ranges":{', '}}'],
  ],
])('%s of more tensors than a model may have is rejected', (_, entry, [head, tail]) => {
  const file = join(folder, 'many');
  writeFileSync(file, head + Array.from({ length: 500_001 }, (_, at) => entry(`t${at}`, at)).join('') + tail);
  expect(() => readCalibration(file)).toThrow(
    expect.objectContaining({ code: 'TF_CALIBRATION_INVALID', details: undefined }),
  );
});

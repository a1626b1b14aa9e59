import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { checkRepository, exportModels, tryRepository } from '../../../src/products/triton/index.js';
import { writeEngine } from './engines.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-library-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const environment = { XDG_CACHE_HOME: join(folder, 'xdg'), PATH: folder };
const output = join(folder, 'models');
const engines = [writeEngine(folder, 'ada.engine')];

test('a repository is written, checked, and needs a server to be tried', async () => {
  const options = { engines, output, store: join(folder, 'store'), name: 'net', delay: 500 };
  const { models, client } = await exportModels(options, { environment });
  expect([models, client]).toMatchObject([[{ name: 'net', version: 1, plans: [{ capability: '8.9' }] }], []]);
  expect(models[0]!.files.every((file) => existsSync(join(output, file)))).toBe(true);
  const again = exportModels({ ...options, version: 1 }, { environment });
  await expect(again).rejects.toMatchObject({ code: 'TF_SERVING_REFUSED' });
  const forced = await exportModels({ ...options, version: 1, force: true }, { environment });
  expect(forced.models[0]?.version).toBe(1);
  await expect(exportModels({ ...options, name: '../net' }, { environment })).rejects.toMatchObject({
    code: 'TF_USAGE',
  });
  const checked = await checkRepository({ repository: output, gpu: 'L4' }, { environment });
  expect(checked).toMatchObject({ outcome: 'pass', models: [{ name: 'net', backend: 'tensorrt' }] });
  const other = await checkRepository({ repository: output, gpu: { capability: 75 } }, { environment });
  expect(other.outcome).toBe('fail');
  await expect(tryRepository({ repository: output }, { environment })).rejects.toMatchObject({
    code: 'TF_TRITON_UNAVAILABLE',
  });
  await expect(
    tryRepository({ repository: output }, { environment, signal: AbortSignal.abort() }),
  ).rejects.toMatchObject({ code: 'TF_CANCELLED' });
});

test('names of classes are those of the config.json beside the engine', async () => {
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({
      id2label: Object.fromEntries(Array.from({ length: 10 }, (_, at) => [at, `class ${at}`])),
    }),
  );
  const { models } = await exportModels(
    { engines, output: join(folder, 'named'), store: join(folder, 'store') },
    { environment },
  );
  expect(models[0]!.files.some((file) => file.endsWith('labels.txt'))).toBe(true);
});

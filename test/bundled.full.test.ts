import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { afterAll, expect, test } from 'vitest';
import { staticModel } from './native/tiny-models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bundled-'));
afterAll(() => rmSync(folder, { recursive: true }));
const library = fileURLToPath(new URL('../dist/index.js', import.meta.url));

const program = (model: string) => `
import { inspectModel, openSession, runFile } from ${JSON.stringify(library)};
const model = ${JSON.stringify(model)};
const code = (work) => work.then(() => 'done', (error) => error.code);
const facts = await inspectModel(model);
console.log(JSON.stringify([
  facts.kind,
  await code(openSession(model)),
  await code(runFile({ file: model, sources: [{ kind: 'random' }] })),
]));
`;

test('a program that trtforge is bundled into gets an error that states it, and nothing beside its folder runs', async () => {
  const app = join(folder, 'a/b/c/app');
  mkdirSync(app, { recursive: true });
  writeFileSync(join(app, 'main.mjs'), program(staticModel(folder)));
  const bundle = await rolldown({
    input: join(app, 'main.mjs'),
    platform: 'node',
    external: /^(?:node:|onnxruntime|sharp$|@aws-sdk|@smithy|@trtforge)/,
    logLevel: 'silent',
  });
  await bundle.write({ file: join(app, 'out.mjs'), format: 'esm', codeSplitting: false });
  await bundle.close();
  // Where the addresses of trtforge's children lead from the bundle.
  const ran = join(folder, 'ran');
  for (const child of ['../../../../dist', '../../../dist']) {
    const path = join(app, child, 'engines/runtime/onnxruntime/ort-child.js');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `require('node:fs').writeFileSync(${JSON.stringify(ran)}, '')`);
  }
  const { stdout } = await promisify(execFile)(process.execPath, [join(app, 'out.mjs')]);
  expect(JSON.parse(stdout)).toEqual(['onnx', 'TF_BUNDLED', 'TF_BUNDLED']);
  expect(existsSync(ran)).toBe(false);
});

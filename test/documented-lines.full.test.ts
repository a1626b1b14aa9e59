import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shellWords } from '../src/cli/migrate/line.js';
import { describeWith } from './support/needs.js';
import { ownFiles, preparation, writePageFiles } from './support/page-files.js';
import { pages } from './support/pages.js';
import { linesOfCode, linesOfPage } from './support/parsed-lines.js';
import { everyVerb, trtforge } from './support/trtforge.js';

const root = join(import.meta.dirname, '..');
const home = mkdtempSync(join(tmpdir(), 'trtforge-lines-'));
const before = process.cwd();
afterAll(() => {
  process.chdir(before);
  rmSync(home, { recursive: true });
});

/** Runs a line where its files are; what the shell would write into a file is there afterwards. */
async function runLine(line: string) {
  const args = shellWords(line).slice(1);
  const { exitCode, out, err } = await trtforge(args, {
    ...process.env,
    TENSORRT_CACHE_DIR: join(home, 'store'),
  });
  const [, to] = />>? ?([\w./-]+)(?:\s+#.*)?$/.exec(line) ?? [];
  if (to !== undefined && exitCode !== 2) writeFileSync(to, out);
  return { exitCode, out, err };
}

const lines = [
  ...new Set(
    [
      ...pages.flatMap((page) =>
        linesOfPage(readFileSync(join(root, page), 'utf8')).filter(({ isMention }) => !isMention),
      ),
      ...(await everyVerb()).flatMap(({ command }) => (command.examples ?? []).flatMap(linesOfCode)),
    ].map(({ line }) => line),
  ),
];

/** Lines that `documented-lines.test.ts` parses, and no machine of a test runs. */
const PARSED_ONLY: readonly (readonly [line: RegExp, why: string])[] = [
  [/toolchain install/, 'it downloads'],
  [/s3:|minio:/, 'a bucket is asked'],
  [/fleet (?:submit|rehearse|work)/, 'a cluster, or a GPU with two versions'],
  [/engine refit|--refit/, 'TensorRT-RTX builds such an engine on a GPU, which refits it'],
  [/triton try/, 'a server of Triton'],
  [/explain -/, 'it reads what another program prints'],
  [/report-bug .* (?:verify|build) /, 'packs a line that fails, and this one passes'],
  [/--from layers\.json|strip-header yolo/, 'needs what an engine of TensorRT or an exporter gave'],
  [/triton export (?!resnet50\.engine)/, "needs engines of TensorRT: Triton's own tests write them"],
  [/recorded\.jsonl|--engines runs/, 'needs recordings or engines of a bundle, which its own tests have'],
  [/model_ctx|engines\/resnet50\//, 'needs the context model that ONNX Runtime writes on a GPU'],
  [/encoder\.engine inputs\.npz/, 'its inputs have other names than those of the line before'],
  [/out\/(?:heads|detector|speech-test)/, "runs in the examples' own tests, which train the model"],
  [/yolo-fp16\/engines\/yolo_\*/, 'a shell expands it'],
  [/=(?:fp16|int8)\.json/, 'judges what engines gave on a GPU'],
  [/repair tmp\/compare/, 'needs a folder that a run on a GPU left'],
];

test('every exception and every folder of its own is of a line', () => {
  const unused = [...PARSED_ONLY, ...ownFiles].filter(
    ([pattern]) => !lines.some((line) => pattern.test(line)),
  );
  expect(unused.map(([pattern]) => pattern.source)).toEqual([]);
});

describeWith('toolchain', 'with TensorRT-RTX', () => {
  beforeAll(async () => {
    await writePageFiles(home);
    process.chdir(home);
    for (const { line } of linesOfCode(preparation)) {
      const { exitCode, err } = await runLine(line);
      expect(exitCode, `${line}\n${err}`).not.toBe(2);
    }
  });
  const own = new Map<RegExp, string>();
  /** Remedies and next steps that were run. */
  const followed = new Set<string>();
  /** The folder of a line: its own where its models have other inputs. */
  async function enterFolderOf(line: string): Promise<void> {
    const [pattern, write] = ownFiles.find(([each]) => each.test(line)) ?? [];
    if (pattern === undefined || write === undefined) return process.chdir(home);
    const folder = own.get(pattern) ?? mkdtempSync(join(home, 'own-'));
    if (!own.has(pattern)) await write((name) => join(folder, name));
    own.set(pattern, folder);
    process.chdir(folder);
  }
  test.each(lines.filter((line) => !PARSED_ONLY.some(([pattern]) => pattern.test(line))))(
    '%s',
    async (line) => {
      await enterFolderOf(line);
      const { exitCode, out, err } = await runLine(line);
      expect(exitCode, err).not.toBe(2);
      for (const [, next = ''] of `${out}\n${err}`.matchAll(/(?:Next|Run): (trtforge .*)/g)) {
        if (followed.has(next) || PARSED_ONLY.some(([pattern]) => pattern.test(next))) continue;
        followed.add(next);
        const answer = await runLine(next);
        expect(answer.exitCode, `${next}\n${answer.err}`).not.toBe(2);
      }
    },
  );
});

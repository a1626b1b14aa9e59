import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { writeSampleModel } from '../support/sample-engine.js';
import { trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), "trtforge it's a line-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The arguments as a shell reads them, without the program's name. */
const argsOf = (line: string): readonly string[] =>
  spawnSync('sh', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' })
    .stdout.split('\0')
    .slice(1, -1);

test('the recorded line of a run repeats it, and its report shows it', async () => {
  const model = join(folder, 'a "model".onnx');
  await writeSampleModel(model);
  const args = ['forge', model, '--precision', 'fp16', '--skip', 'build,verify'];
  const place = ['--run-root', join(folder, 'run'), '--json'];
  const first = await trtforge([...args, ...place]);
  const { repeat, report, conversion, exitCode } = first.json<{
    readonly repeat: string;
    readonly report: string;
    readonly conversion: { readonly nodes: object };
    readonly exitCode: number;
  }>();
  expect(argsOf(repeat)).toEqual([...args, ...place]);
  expect(readFileSync(join(folder, 'run', 'report.md'), 'utf8')).toContain(repeat);
  expect(JSON.parse(readFileSync(join(folder, 'run', 'report.json'), 'utf8'))).toMatchObject({ repeat });
  expect(report).toBe(join(folder, 'run', 'report.html'));
  const second = await trtforge(argsOf(repeat));
  expect(second.json()).toMatchObject({ exitCode, repeat, conversion: { nodes: conversion.nodes } });
});

test('a run that cannot reach its remote store reports no secret of the address', async () => {
  const model = join(folder, 'plain.onnx');
  await writeSampleModel(model);
  const root = join(folder, 'remote');
  const address = 'http://somebody:hush@127.0.0.1:9/bucket';
  const { out, err } = await trtforge(
    ['forge', model, '--remote', address, '--skip', 'verify', '--run-root', root, '--json'],
    { PATH: process.env.PATH, XDG_CACHE_HOME: join(folder, 'cache') },
  );
  expect(`${out}${err}`).not.toContain('hush');
});

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.js';
import { trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-completion-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program in the shell, after the completion script; its lines on stdout. */
async function linesOf(shell: 'bash' | 'zsh' | 'fish', before: string, after: string) {
  const { out, exitCode } = await trtforge(['completion', shell]);
  expect(exitCode).toBe(0);
  const args = shell === 'bash' ? ['--norc'] : shell === 'zsh' ? ['-f'] : ['--no-config'];
  // As a file: the script is longer than one argument may be.
  const file = join(folder, `run.${shell}`);
  writeFileSync(file, `${before}\n${out}\n${after}\n`);
  const { stdout, stderr } = spawnSync(shell, [...args, file], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

/** Each: what is typed up to the Tab key, and one of the words that follow. */
const cases: readonly (readonly [string, string])[] = [
  ['tool', 'toolchain'],
  ['cache w', 'why'],
  ['build --prec', '--precision'],
  ['build m.onnx --precision f', 'fp16'],
  ['cache gc --dry', '--dry-run'],
  ['doctor --log', '--log-file'],
];

describeWith('bash', 'completion in bash', () => {
  test.each(cases)('trtforge %s', async (typed, word) => {
    const words = ['trtforge', ...typed.split(' ')];
    const line = words.map((each) => `'${each}'`).join(' ');
    const asked = `COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _trtforge; printf '%s\\n' "\${COMPREPLY[@]}"`;
    expect(await linesOf('bash', '', asked)).toContain(word);
  });
});

describeWith('zsh', 'completion in zsh', () => {
  // Only its line editor has these; what they are called with is what a user is shown.
  const editor = [
    'compdef() { : }',
    '_files() { : }',
    `compadd() { shift; print -l -- "$@" }`,
    `_describe() { print -l -- "\${list[@]%%:*}" }`,
  ].join('\n');
  test.each(cases)('trtforge %s', async (typed, word) => {
    const words = ['trtforge', ...typed.split(' ')];
    const line = words.map((each) => `'${each}'`).join(' ');
    expect(await linesOf('zsh', editor, `words=(${line}); CURRENT=${words.length}; _trtforge`)).toContain(
      word,
    );
  });
});

describeWith('fish', 'completion in fish', () => {
  test.each(cases)('trtforge %s', async (typed, word) => {
    const lines = await linesOf('fish', '', `complete -C 'trtforge ${typed}'`);
    expect(lines.map((line) => line.split('\t')[0])).toContain(word);
  });
});

test('another shell is TF_USAGE, with the nearest name', async () => {
  const { exitCode, err } = await trtforge(['completion', 'bahs']);
  expect(exitCode).toBe(2);
  expect(err).toContain('Did you mean "bash"?');
});

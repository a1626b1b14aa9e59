import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { untouchedLeaves } from '../scripts/leaves.mjs';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-leaves-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const [origin, clone] = [join(folder, 'origin'), join(folder, 'clone')];

const git = (where: string, ...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', '-C', where, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();

function write(where: string, path: string, text = ''): void {
  mkdirSync(dirname(join(where, path)), { recursive: true });
  writeFileSync(join(where, path), text);
}

/** A repository with two leaves and its clone; each test has copies of them, of which the second knows the first by its path. */
beforeAll(() => {
  for (const path of ['src/products/a/x.ts', 'src/products/b/x.ts', 'src/base/x.ts', 'docs/x.md'])
    write(origin, path);
  git(folder, 'init', '--quiet', '--initial-branch=main', origin);
  git(origin, 'add', '.');
  git(origin, 'commit', '--quiet', '--message=one');
  git(folder, 'clone', '--quiet', origin, clone);
  for (const path of [origin, clone]) cpSync(path, `${path}.new`, { recursive: true });
});
beforeEach(() => {
  for (const path of [origin, clone]) {
    rmSync(path, { recursive: true, force: true });
    cpSync(`${path}.new`, path, { recursive: true });
  }
});

const leaves = (where = clone) => untouchedLeaves(where).leaves;

describe('what is left out of npm test', () => {
  test('is every leaf of a clone in which nothing changed', () => {
    expect(untouchedLeaves(clone)).toEqual({ base: git(origin, 'rev-parse', 'HEAD'), leaves: ['a', 'b'] });
  });

  test.each([
    ['src/products/a/x.ts', ['b']],
    ['src/products/a/new.ts', ['b']],
    ['test/products/b/x.integration.test.ts', ['a']],
    ['test/products/b/samples.ts', []],
    ['src/base/x.ts', []],
    ['test/support/x.ts', []],
    ['native/src/x.cpp', []],
    ['package-lock.json', []],
    ['vitest.config.ts', []],
    ['test/base/x.test.ts', ['a', 'b']],
    ['docs/x.md', ['a', 'b']],
  ])('after a change of %s: %j', (path, left) => {
    write(clone, path, 'changed');
    expect(leaves()).toEqual(left);
  });

  test('is the same for a change that is staged, committed or on a branch', () => {
    write(clone, 'src/products/a/x.ts', 'changed');
    for (const step of [
      ['add', '.'],
      ['commit', '--quiet', '--message=two'],
      ['switch', '--quiet', '--create', 'branch'],
    ]) {
      git(clone, ...step);
      expect(leaves()).toEqual(['b']);
    }
  });

  test('is none after a file that all see went or was renamed', () => {
    git(clone, 'mv', 'src/base/x.ts', 'docs/y.md');
    expect(leaves()).toEqual([]);
  });

  test('is decided by what this branch has of the main one, not by what came there since', () => {
    write(origin, 'src/base/x.ts', 'changed');
    git(origin, 'commit', '--quiet', '--all', '--message=two');
    git(clone, 'fetch', '--quiet');
    expect(leaves()).toEqual(['a', 'b']);
  });

  test('without origin is decided by main on another branch, and is none on main', () => {
    write(origin, 'src/products/a/x.ts', 'changed');
    expect(leaves(origin)).toEqual([]);
    git(origin, 'switch', '--quiet', '--create', 'branch');
    expect(leaves(origin)).toEqual(['b']);
  });

  test('is none where there is no repository', () => {
    rmSync(join(clone, '.git'), { recursive: true });
    expect(untouchedLeaves(clone)).toEqual({ base: null, leaves: [] });
  });
});

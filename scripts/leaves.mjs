// Which leaves (folders of src/products) a change cannot have touched, so that `npm test` leaves their integration tests to the full tier.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of a leaf's tests. */
export const testsOf = (leaf) => `test/products/${leaf}`;

/**
 * Leaves of a clone that no file they can see differs for from a commit of the main branch, which CI ran all tests of, and that commit: the newest of `origin`'s
 * default branch that this branch has, or of `main` without `origin`. None where there is no such commit: no git, no clone, a branch `main` of its own.
 */
export function untouchedLeaves(folder) {
  const base = mainCommit(folder);
  const changed = base === undefined ? undefined : changedSince(folder, base);
  if (changed === undefined) return { base: null, leaves: [] };
  const leaves = readdirSync(join(folder, 'src', 'products'));
  return { base, leaves: leaves.filter((leaf) => !changed.some((path) => sees(leaf, path))) };
}

function mainCommit(folder) {
  const branch = git(folder, 'branch', '--show-current');
  const refs = ['refs/remotes/origin/HEAD', ...(branch === 'main' ? [] : ['refs/heads/main'])];
  const ref = refs.find((name) => git(folder, 'rev-parse', '--verify', '--quiet', name) !== undefined);
  return ref && git(folder, 'merge-base', 'HEAD', ref);
}

/** Commits, what is staged or not, and files that git does not know yet. */
function changedSince(folder, base) {
  const lists = [
    git(folder, 'diff', '--name-only', '--no-renames', '-z', base),
    git(folder, 'ls-files', '--others', '--exclude-standard', '-z'),
  ];
  return lists.includes(undefined) ? undefined : lists.flatMap((list) => list.split('\0').filter(Boolean));
}

/** Whether a file can decide how a leaf's integration tests end. Only the list of products imports a leaf (test/leaves.test.ts), and nothing a test. */
function sees(leaf, path) {
  const [, product] = /^(?:src|test)\/products\/([^/]+)\//.exec(path) ?? [];
  const isOfAnother = product !== undefined && product !== leaf;
  if (path.startsWith('src/')) return !isOfAnother;
  if (path.endsWith('.test.ts')) return product === leaf;
  return !/^(?:docs|bench)\/|\.md$/.test(path);
}

/** What git prints; undefined where it fails or is not there. */
function git(folder, ...args) {
  const { status, stdout } = spawnSync('git', ['-C', folder, ...args], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

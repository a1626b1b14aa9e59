import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

interface Setup {
  checkMachine(options?: {
    nodeVersion?: string;
    engines?: boolean;
    has?: (probe: readonly string[]) => boolean;
  }): void;
  packagesAreStale(folder: string): boolean;
}
const script: string = new URL('../../scripts/setup.mjs', import.meta.url).href;
const { checkMachine, packagesAreStale } = (await import(script)) as Setup;

describe('checkMachine', () => {
  it('names everything that is missing and one command that brings it', () => {
    const lacks = (...programs: string[]) => ({
      nodeVersion: '20.19.0',
      engines: true,
      has: (probe: readonly string[]) => !programs.some((program) => probe.includes(program)),
    });
    expect(() => checkMachine(lacks())).not.toThrow();
    expect(() => checkMachine(lacks('pip'))).toThrow(/lacks pip\. .*apt-get install python3-pip$/);
    expect(() => checkMachine(lacks('npm', 'python3'))).toThrow(
      /npm, python3, pip\. .*npm python3 python3-pip$/,
    );
  });

  it.each([
    ['18.20.4', false],
    ['20.18.3', false],
    ['20.19.0', true],
    ['22.0.0', true],
    ['24.1.0', true],
  ])('Node %s is new enough: %s', (nodeVersion, enough) => {
    const check = () => checkMachine({ nodeVersion, has: () => true });
    if (enough) expect(check).not.toThrow();
    else expect(check).toThrow(new RegExp(`Node ${nodeVersion} is too old`));
  });
});

describe('packagesAreStale', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trtforge-setup-'));
    mkdirSync(join(folder, 'node_modules'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const lock = (packages: object) => JSON.stringify({ lockfileVersion: 3, packages });
  const wanted = {
    '': { name: 'x' },
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/other-platform': { version: '1.0.0', integrity: 'sha512-o', optional: true },
  };
  const installed = { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' } };
  const stale = (record: object | undefined) => {
    writeFileSync(join(folder, 'package-lock.json'), lock(wanted));
    if (record) writeFileSync(join(folder, 'node_modules', '.package-lock.json'), lock(record));
    return packagesAreStale(folder);
  };

  it.each([
    ['nothing was installed', undefined, true],
    ['all is there but an optional package of another platform', installed, false],
    ['a package is missing', {}, true],
    ['a version is another', { 'node_modules/a': { version: '1.0.1', integrity: 'sha512-b' } }, true],
    ['the content is another', { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-z' } }, true],
  ])('%s', (_, record, expected) => {
    expect(stale(record)).toBe(expected);
  });
});

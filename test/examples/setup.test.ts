import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
  installPackages(folder: string, install: () => void): string;
}
const script: string = new URL('../../scripts/setup.mjs', import.meta.url).href;
const { checkMachine, installPackages, packagesAreStale } = (await import(script)) as Setup;

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

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-setup-'));
  mkdirSync(join(folder, 'node_modules'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('packagesAreStale', () => {
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

describe('installPackages', () => {
  /** ONNX Runtime as a package with the text as its program; the record of npm is up to date and leaves it out, as npm 9 does after a failed script. */
  const onnxRuntime = (text: string) => {
    const place = join(folder, 'node_modules', 'onnxruntime-node');
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'index.js'), text);
  };
  const loads = 'module.exports = {};';
  const fails = "throw new Error('libonnxruntime.so.1: file too short\\nRequire stack');";
  beforeEach(() => {
    const packages = JSON.stringify({
      packages: { 'node_modules/onnxruntime-node': { version: '1.0.0', optional: true } },
    });
    writeFileSync(join(folder, 'package-lock.json'), packages);
    writeFileSync(join(folder, 'node_modules', '.package-lock.json'), '{ "packages": {} }');
  });
  const installed = (brings: string | undefined) => {
    let runs = 0;
    const install = () => {
      runs++;
      expect(existsSync(join(folder, 'node_modules', 'onnxruntime-node'))).toBe(false);
      if (brings !== undefined) onnxRuntime(brings);
    };
    return { run: () => installPackages(folder, install), runs: () => runs };
  };

  it('runs nothing where the packages are there and ONNX Runtime loads', () => {
    onnxRuntime(loads);
    const npm = installed(undefined);
    expect([npm.run(), npm.runs()]).toEqual(['up to date', 0]);
  });

  it.each([
    ['was left out', undefined],
    ['is damaged', fails],
  ])('repairs ONNX Runtime that %s', (_, before) => {
    if (before !== undefined) onnxRuntime(before);
    const npm = installed(loads);
    npm.run();
    expect(npm.runs()).toBe(1);
    npm.run();
    expect(npm.runs()).toBe(1);
  });

  it.each([
    ['npm leaves it out again', undefined, /Cannot find module 'onnxruntime-node'\. /],
    ['it does not load here', fails, /libonnxruntime\.so\.1: file too short\. /],
  ])('ends with one line, its reason and the command where %s', (_, brings, reason) => {
    const { run } = installed(brings);
    expect(run).toThrow(reason);
    expect(run).toThrow(/^[^\n]*: cd \S+ && npm install [^\n]*$/);
  });
});

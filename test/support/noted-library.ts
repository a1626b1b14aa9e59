import { expect } from 'vitest';
import * as library from '../../src/index.js';
import { faultsOf, judgingWritten, noteUsed } from './judged-commands.js';

const { TrtforgeError: _, ExitCode: __, tensor: ___, ...functions } = library;

/** The options in an object, those in objects by the objects' names: `mode.streams`. */
const pathsIn = (path: string, passed: unknown): readonly string[] =>
  Object.getPrototypeOf(passed ?? 0) === Object.prototype
    ? Object.entries(Object(passed)).flatMap(([key, value]) =>
        value === undefined ? [] : [`${path}.${key}`, ...pathsIn(`${path}.${key}`, value)],
      )
    : [];

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? 'null');

/** The functions of the library but `tensor`. */
export const libraryFunctions = functions;

/** The same; a call that succeeds notes what it was passed, for scripts/used-options.mjs. What it gives and writes is judged by the published schemas. */
export const noted = Object.fromEntries(
  Object.entries(functions).map(([name, call]) => [
    name,
    async (...args: readonly unknown[]) => {
      const faults: string[] = [];
      const result = await judgingWritten(faults, async () =>
        (call as (...args: readonly unknown[]) => unknown)(...args),
      );
      expect([...faults, ...faultsOf(asJson(result))], name).toEqual([]);
      for (const argument of args) noteUsed('library', pathsIn(name, argument));
      return result;
    },
  ]),
) as unknown as typeof functions;

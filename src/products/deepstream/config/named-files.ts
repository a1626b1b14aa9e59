import { accessSync, constants, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { closing, openFile } from '../../../base/files/byte-source.js';
import { LARGEST_DOCUMENT, readText, statIfThere } from '../../../base/files/files.js';
import { passportPath } from '../../../engines/identity/engine-name.js';
import { type Passport, readPassport } from '../../../engines/identity/passport.js';
import { planDigest, readPlanHeader } from '../../../engines/plan/header.js';
import { axesOf, type NamedAxes } from '../../../engines/profiles/profile.js';
import { TrtforgeError } from '../../../errors.js';
import { readElf } from '../../../tensorrt/toolchain/elf.js';
import type { Findings } from './findings.js';
import type { EngineState } from './predict.js';

/** A file that a configuration names, relative to it, through the links of its folder as nvinfer goes; null for no name. */
export function namedFile(config: string, name: string | undefined): string | null {
  if (!name) return null;
  const path = resolve(realFolder(dirname(config)), name);
  return join(realFolder(dirname(path)), basename(path));
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return resolve(folder);
  }
}

export function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** An engine by its header, and by its passport where it has one of this very plan. Throws TF_PLAN_INVALID, TF_PASSPORT_INVALID. */
export function readEngine(path: string) {
  const header = readPlanHeader(path);
  const beside = statIfThere(passportPath(path)) === undefined ? null : readPassport(path);
  const passport = beside !== null && beside.plan.sha256 === planDigest(header) ? beside : null;
  const [first] = passport?.plan.inputs ?? [];
  const fixed = first?.shape?.every((dim) => dim !== null) ? (first.shape as number[]) : null;
  const recipe = passport?.identity.document.recipe;
  return {
    ...{ header, passport, recipe },
    /** Profile 0 of the first input, with the batch; null where it is not known. */
    profile: recipe?.profiles[0]?.[first?.name ?? ''] ?? (fixed && { min: fixed, opt: fixed, max: fixed }),
  };
}

/** The same for nvinfer's decision; `ports` is null without a passport. */
export function engineFacts(path: string): {
  readonly state: EngineState;
  readonly ports: NamedAxes | null;
  readonly passport: Passport | null;
} {
  const none = { ports: null, passport: null };
  const invalid = (why: string) => ({ ...none, state: { state: 'invalid', why } as const });
  if (statIfThere(path) === undefined) return { ...none, state: { state: 'missing' } };
  try {
    const { header, passport, recipe, profile } = readEngine(path);
    const { product, version, foreignHeader } = header;
    if (foreignHeader !== null)
      return invalid(`${foreignHeader.bytes} bytes stand before the plan, so that TensorRT rejects it.`);
    const capabilities = passport?.identity.document.target.computeCapabilities ?? [];
    const known = recipe === undefined ? null : { ...recipe, capabilities, profile };
    return {
      state: { state: 'plan', product, version, passport: known },
      ports: passport && axesOf(passport),
      passport,
    };
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return invalid(error.message);
  }
}

/** Where DeepStream installs its own libraries, which a machine that only checks need not have. */
const DEEPSTREAM = '/opt/nvidia/deepstream';

/** The symbols that a custom library exports; null where none is named, and where it cannot be read, which is a finding. */
export function exportedSymbols(
  path: string | null,
  where: string,
  findings: Findings,
): ReadonlySet<string> | null {
  if (path === null) return null;
  try {
    return new Set(closing(openFile(path), readElf).symbols.keys());
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    const isElsewhere = path.startsWith(DEEPSTREAM) && statIfThere(DEEPSTREAM) === undefined;
    const absent = isElsewhere ? 'library-elsewhere' : 'library-missing';
    findings.add(error.code === 'TF_FILE_NOT_FOUND' ? absent : 'library-invalid', where, error.message);
    return null;
  }
}

/**
 * Judges a file of labels as DeepStream reads it, empty lines left out: of a detector a class a line, of a classifier a line for each output, with its labels between ";".
 * `classes` is their number, of a classifier one for each output (null: not known), undefined where it is not to be compared.
 */
export function judgeLabels(
  path: string | null,
  where: string,
  classes: number | readonly (number | null)[] | undefined,
  findings: Findings,
): void {
  if (path === null) return;
  if (statIfThere(path)?.isFile() !== true) {
    findings.add('labels-missing', where, `The labels ${path} are missing.`);
    return;
  }
  const lines = readText(path, LARGEST_DOCUMENT, 'TF_SERVING_CONFIG').split('\n').filter(Boolean);
  if (typeof classes === 'object') {
    const counts = lines.map((line) => line.split(';').filter((label) => label.trim() !== '').length);
    const fits = (count: number, at: number) => classes[at] !== undefined && (classes[at] ?? count) === count;
    if (counts.length === classes.length && counts.every(fits)) return;
    const [has, needs] = [counts, classes].map((each) => each.map((count) => count ?? 'any').join(', '));
    findings.add(
      'labels-classifier',
      where,
      `${path} has lines of ${has} labels, and outputs have ${needs}.`,
    );
    return;
  }
  if (classes === undefined || lines.length === classes) return;
  const isUseless = lines.length === 0 || (lines.length === 1 && lines[0]!.includes(';'));
  const message = `${path} has ${lines.length} lines, for ${classes} classes.`;
  findings.add('labels-count', where, message, isUseless ? 'error' : undefined);
}

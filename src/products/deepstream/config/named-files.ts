import { accessSync, constants, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { closing, openFile } from '../../../base/files/byte-source.js';
import { LARGEST_DOCUMENT, readText, statIfThere } from '../../../base/files/files.js';
import { passportPath, readPassport } from '../../../engines/identity/passport.js';
import { planDigest, readPlanHeader } from '../../../engines/plan/header.js';
import { TrtforgeError } from '../../../errors.js';
import { readElf } from '../../../tensorrt/toolchain/elf.js';
import type { Findings } from './findings.js';
import type { Output } from './layout.js';
import type { EngineState } from './predict.js';

/** A file that a configuration names, relative to it, through the links of its folder as nvinfer goes. */
export function namedFile(config: string, name: string): string {
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

/** What is known of an engine file without loading it; `outputs` is null without a passport of this very plan. */
export function engineFacts(path: string): { state: EngineState; outputs: readonly Output[] | null } {
  if (statIfThere(path) === undefined) return { state: { state: 'missing' }, outputs: null };
  const invalid = (why: string) => ({ state: { state: 'invalid', why } as const, outputs: null });
  try {
    const header = readPlanHeader(path);
    const { product, version, foreignHeader } = header;
    if (foreignHeader !== null)
      return invalid(`${foreignHeader.bytes} bytes stand before the plan, so that TensorRT rejects it.`);
    const passport = statIfThere(passportPath(path)) === undefined ? null : readPassport(path);
    if (passport === null || passport.plan.sha256 !== planDigest(header))
      return { state: { state: 'plan', product, version, passport: null }, outputs: null };
    const { recipe, target } = passport.identity.document;
    const [first] = passport.plan.inputs;
    const fixed = first?.shape?.every((dim) => dim !== null) ? (first.shape as number[]) : null;
    const profile =
      recipe.profiles[0]?.[first?.name ?? ''] ?? (fixed === null ? null : { min: fixed, max: fixed });
    const { flags, hardwareCompatibility } = recipe;
    const { computeCapabilities: capabilities } = target;
    const known = { flags, hardwareCompatibility, capabilities, profile };
    return {
      state: { state: 'plan', product, version, passport: known },
      outputs: passport.plan.outputs,
    };
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return invalid(error.message);
  }
}

/** Where DeepStream installs its own libraries, which a machine that only checks need not have. */
const DEEPSTREAM = '/opt/nvidia/deepstream';

/** The symbols that a custom library exports; null where it cannot be read, which is a finding. */
export function exportedSymbols(path: string, where: string, findings: Findings): ReadonlySet<string> | null {
  if (statIfThere(path) === undefined) {
    if (path.startsWith(DEEPSTREAM) && statIfThere(DEEPSTREAM) === undefined)
      findings.add('library-elsewhere', where, `${path} is of DeepStream, which is not installed here.`);
    else findings.add('library-missing', where, `The library ${path} is missing.`);
    return null;
  }
  try {
    return new Set(closing(openFile(path), readElf).symbols.keys());
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    findings.add('library-invalid', where, error.message);
    return null;
  }
}

/** Judges a file of labels as DeepStream reads it, a class a line, empty lines left out; `classes` is null where their number is not to be compared. */
export function judgeLabels(path: string, where: string, classes: number | null, findings: Findings): void {
  if (statIfThere(path)?.isFile() !== true) {
    findings.add('labels-missing', where, `The labels ${path} are missing.`);
    return;
  }
  const lines = readText(path, LARGEST_DOCUMENT, 'TF_SERVING_CONFIG').split('\n').filter(Boolean);
  const isOneLine = lines.length === 0 || (lines.length === 1 && lines[0]!.includes(';'));
  if (classes !== null && lines.length !== classes)
    findings.add(
      'labels-count',
      where,
      `${path} has ${lines.length} lines, for ${classes} classes.`,
      isOneLine ? 'error' : undefined,
    );
}

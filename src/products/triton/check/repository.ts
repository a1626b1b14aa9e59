import { join } from 'node:path';
import { z } from 'zod';
import { listFolder, readJson, readText, statIfThere } from '../../../base/files/files.js';
import { type Passport, readPassport } from '../../../engines/identity/passport.js';
import { isEngineFile, type PlanHeader, readPlanHeader } from '../../../engines/plan/header.js';
import { checkPlan } from '../../../engines/plan/verify-engine.js';
import { TrtforgeError } from '../../../errors.js';
import { type ModelConfig, readModelConfig } from '../model-config.js';
import type { Findings } from './findings.js';

/** A folder of the repository that Triton takes for a model. */
export interface ModelFolder {
  readonly name: string;
  readonly path: string;
  /** null: it has none, or one that cannot be read. */
  readonly config: ModelConfig | null;
  /** Folders with a number that Triton reads, ascending. */
  readonly versions: readonly string[];
  /** Pairs of outputs and inputs that a contract beside the configuration promises. */
  readonly states: readonly StatePair[];
}

export interface StatePair {
  readonly input: string;
  readonly output: string;
  /** Of every element before the first request; undefined where nothing states it. */
  readonly initial?: number | undefined;
}

/** A plan that the configuration names, with what is known of it. */
export interface ServedPlan {
  /** `det/1/model.plan` */
  readonly file: string;
  /** The key of cc_model_filenames; null: for every GPU. */
  readonly capability: string | null;
  /** null: not a plan, or not TensorRT's. */
  readonly header: PlanHeader | null;
  /** null: none, or that of another plan. */
  readonly passport: Passport | null;
}

const CONFIG = 'config.pbtxt';
/** Folders beside the versions that Triton gives a meaning. */
const ownFolders = ['warmup', 'initial_state', 'configs'];
const isFolder = (path: string) => statIfThere(path)?.isDirectory() === true;

/** Throws TF_FILE_NOT_FOUND, TF_USAGE where the folder is not a repository, TF_FILE_UNREADABLE. */
export function readRepository(path: string, findings: Findings): readonly ModelFolder[] {
  if (!isFolder(path))
    throw new TrtforgeError('TF_FILE_NOT_FOUND', `${path} is not a folder.`, {
      remedy: 'Pass the model repository.',
    });
  if (statIfThere(join(path, CONFIG)) !== undefined)
    throw new TrtforgeError('TF_USAGE', `${path} is the folder of one model: it has a ${CONFIG} itself.`, {
      remedy: 'Pass the folder around it.',
    });
  const names = listFolder(path).toSorted();
  for (const name of names) {
    if (!isFolder(join(path, name)) && /\.(engine|plan|trt)$/i.test(name))
      findings.report('stray-plan', name, 'A plan lies in the repository, where Triton does not look.');
  }
  const models = names
    .filter((name) => isFolder(join(path, name)))
    .flatMap((name) => readModel(name, join(path, name), findings) ?? []);
  if (models.length === 0) findings.report('no-models', path, 'The repository has no model folder.');
  return models;
}

function readModel(name: string, path: string, { report }: Findings): ModelFolder | undefined {
  const names = listFolder(path);
  const folders = names.filter((each) => isFolder(join(path, each)));
  const versions = folders.filter((each) => /^\d+$/.test(each));
  for (const each of folders) {
    if (statIfThere(join(path, each, CONFIG)) !== undefined)
      report(
        'nested-model',
        `${name}/${each}`,
        'A model folder lies in another folder, where Triton does not look.',
      );
    else if (/^0\d/.test(each))
      report('version-ignored', `${name}/${each}`, 'Triton ignores a version folder with leading zeros.');
    else if (
      !versions.includes(each) &&
      !ownFolders.includes(each) &&
      listFolder(join(path, each)).some(isPlanName)
    )
      report('version-ignored', `${name}/${each}`, 'Triton ignores the folder: its name is not a number.');
  }
  for (const each of names) {
    if (isPlanName(each)) report('stray-plan', `${name}/${each}`, 'A plan lies beside the version folders.');
  }
  const hasConfig = names.includes(CONFIG);
  if (!hasConfig && versions.length === 0) {
    report('not-a-model', name, `The folder has neither a ${CONFIG} nor a version folder.`);
    return undefined;
  }
  return {
    name,
    path,
    config: hasConfig ? configOf(name, path, report) : null,
    versions: versions.filter((each) => !/^0\d/.test(each)).toSorted((a, b) => Number(a) - Number(b)),
    states: names.filter((each) => each.endsWith('.json')).flatMap((each) => statesOf(join(path, each))),
  };
}

const isPlanName = (name: string) => /\.(engine|plan|trt)$/i.test(name);

function configOf(name: string, path: string, report: Findings['report']): ModelConfig | null {
  const file = join(path, CONFIG);
  try {
    if (readText(file, 1 << 26, 'TF_SERVING_CONFIG').startsWith('\ufeff'))
      report('config-bom', `${name}/${CONFIG}`, 'The file begins with a byte-order mark.');
    return readModelConfig(file);
  } catch (cause) {
    if (!(cause instanceof TrtforgeError)) throw cause;
    const code = /oneof "scheduling_choice"/.test(cause.message) ? 'two-schedulers' : 'config-unreadable';
    report(code, `${name}/${CONFIG}`, cause.message.replace(`${file}, `, ''));
    return null;
  }
}

/** What is read of a contract (`trtforge.contract/1`); a file of another schema is none. */
const contractStates = z.object({
  schema: z.literal('trtforge.contract/1'),
  state: z
    .array(z.object({ input: z.string(), output: z.string(), initial: z.number().optional() }))
    .default([]),
});

function statesOf(path: string): readonly StatePair[] {
  return contractStates.safeParse(readJson(path)).data?.state ?? [];
}

/** The plan of a model, its passport and what is wrong with either. */
export async function readPlan(
  path: string,
  file: string,
  capability: string | null,
  report: Findings['report'],
): Promise<ServedPlan> {
  const none = { file, capability, header: null, passport: null };
  try {
    const header = readPlanHeader(path);
    if (header.product === 'tensorrt-rtx') {
      report('plan-rtx', file, "The plan is TensorRT-RTX's, which Triton's back end cannot run.");
      return none;
    }
    if (header.foreignHeader !== null || header.path !== path)
      report(
        'plan-foreign-header',
        file,
        'An exporter wrote a header before the plan: TensorRT rejects its magic tag.',
      );
    return { file, capability, header, passport: await passportOf(path, file, report) };
  } catch (cause) {
    if (!(cause instanceof TrtforgeError)) throw cause;
    report('plan-unreadable', file, cause.message);
    return none;
  }
}

async function passportOf(path: string, file: string, report: Findings['report']): Promise<Passport | null> {
  try {
    const passport = readPassport(path);
    await checkPlan(path, passport);
    return passport;
  } catch (cause) {
    if (!(cause instanceof TrtforgeError)) throw cause;
    if (cause.code === 'TF_PASSPORT_MISSING')
      report(
        'passport-missing',
        file,
        'Without a passport, inputs, outputs, types, profiles and states were not compared with the engine.',
      );
    else
      report(
        cause.code.startsWith('TF_ENGINE_') ? 'passport-differs' : 'passport-unreadable',
        `${file}.passport.json`,
        cause.message,
      );
    return null;
  }
}

/** Whether a file that the configuration does not name is a plan. */
export const isPlan = (path: string): boolean => {
  try {
    return !path.endsWith('.json') && statIfThere(path)?.isFile() === true && isEngineFile(path);
  } catch {
    return false;
  }
};

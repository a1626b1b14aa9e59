import { cpus } from 'node:os';
import { basename, join } from 'node:path';
import { canonicalJson, sha256 } from '../../../base/files/digest.js';
import { machineFacts } from '../../../engines/identity/machine.js';
import type { BackEnd, OpenOptions } from '../../../engines/runtime/back-end.js';
import type { Variant } from '../run/variant.js';
import { backEndName, openOptionsFor } from './back-end-names.js';
import type { ComparedModel } from './compared-models.js';
import type { ComparedTask } from './task.js';

/** A variant and what it runs. */
export interface Planned {
  readonly variant: Variant;
  readonly model: ComparedModel;
  readonly backEnd: BackEnd;
}

/** `tmp/compare-yolov10m/2026-11-23_09-30-00`, in UTC. */
export function newRunRoot(model: string, now: Date): string {
  const name = basename(model).replace(/\.[a-z]+$/i, '') || 'model';
  const stamp = now.toISOString().slice(0, 19).replace('T', '_').replaceAll(':', '-');
  return join('tmp', `compare-${name}`, stamp);
}

/** Every model on every back end that takes it; an engine runs on those for engines only, which is stated. */
export function plan(
  task: ComparedTask,
  data: string,
  models: readonly ComparedModel[],
  backEnds: readonly BackEnd[],
  open: OpenOptions,
): { readonly planned: readonly Planned[]; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const pairs = models.flatMap((model) => {
    const taken = backEnds.filter(({ takes }) => takes === model.kind || canBuild(task, model, takes));
    const left = backEnds.filter((each) => !taken.includes(each)).map(backEndName);
    if (left.length > 0)
      warnings.push(
        model.kind === 'engine'
          ? `${model.file} is an engine: it does not run on ${left.join(', ')}.`
          : `${model.file} has no engines for ${left.join(', ')}: pass their folder, --candidate NAME=FOLDER.`,
      );
    return taken.map((backEnd) => ({ model, backEnd }));
  });
  const planned = pairs.map(({ model, backEnd }, place): Planned => {
    const backEndId = backEndName(backEnd);
    const options = openOptionsFor(backEnd, open);
    const machine = machineFor(backEnd, options);
    const identity = {
      data,
      model: model.digest,
      precision: model.precision,
      backEnd: backEndId,
      machine,
      options,
    };
    return {
      model,
      backEnd,
      variant: {
        schema: 'trtforge.compared-variant/1',
        name: `${model.label}-${backEndId}`,
        task: task.id,
        place,
        model: model.file,
        label: model.label,
        role: model.role,
        backEnd: backEndId,
        machine,
        identity: sha256(canonicalJson(identity)),
        data,
      },
    };
  });
  return { planned, warnings: [...new Set(warnings)] };
}

/** Models of images are built into engines here, bundles by their own verb. */
const canBuild = (task: ComparedTask, { kind }: ComparedModel, takes: BackEnd['takes']): boolean =>
  takes === 'engine' && kind === 'model' && task.id !== 'wer';

function machineFor({ honours }: BackEnd, { device }: OpenOptions): string {
  const processor = cpus()[0]?.model.trim() ?? 'unknown processor';
  return honours.has('device') ? (machineFacts(device).gpu ?? 'no GPU') : processor;
}

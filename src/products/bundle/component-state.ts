import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { writeFailed } from '../../base/files/publish.js';
import { createPending, sweepPending } from '../../engines/store/pending.js';
import type { TrtforgeError } from '../../errors.js';
import type { ComponentEngine, PreparedComponent } from './build-component.js';
import type { BundleRequest } from './bundle-request.js';
import { ComponentLog } from './component-log.js';
import type { ModelFiles } from './model-files.js';
import type { SmokeRun } from './report-schema.js';
import type { Staged } from './stage.js';

/** What is known of one component so far; the report is made of it, however far the run came. */
export interface ComponentState {
  readonly name: string;
  readonly onnx: string;
  readonly enginePath: string;
  readonly buildLog: ComponentLog;
  readonly smokeLog: ComponentLog;
  part?: Pick<PreparedComponent, 'component' | 'profile'>;
  target?: PreparedComponent;
  staged?: Staged;
  files?: ModelFiles;
  engine?: ComponentEngine;
  typed?: { readonly path: string; readonly ms: number };
  trtexecCommand?: readonly string[];
  smoke?: SmokeRun;
  failure?: TrtforgeError;
  /** Known issues that work on it showed although it went well, each in a sentence or two. */
  readonly told: Set<string>;
}

export function stateOf(name: string, onnx: string, outdir: string): ComponentState {
  const logs = join(outdir, 'build_logs');
  return {
    name,
    onnx,
    enginePath: join(outdir, `${name}.engine`),
    buildLog: new ComponentLog(join(logs, `${name}.log`)),
    smokeLog: new ComponentLog(join(logs, `${name}_smoke.log`)),
    told: new Set(),
  };
}

/** A folder for models while the run lasts; leftovers of killed runs go first. Kept ones have a name of their own and are nobody's leftovers. */
export function temporaryFolder({ outdir, keepTemp }: BundleRequest): string {
  sweepPending(outdir);
  if (keepTemp !== true) return createPending(outdir).folder;
  try {
    makeFolder(outdir);
    return mkdtempSync(join(outdir, 'staging-'));
  } catch (cause) {
    throw writeFailed(outdir, cause);
  }
}

import { join } from 'node:path';
import { cacheFolder } from '../../base/files/folders.js';
import type { PlanBuilder } from './build-engine.js';

/**
 * Who builds plans: `native`, the library through the addon in a child process, or `trtexec`. Both make the same settings from the same recipe, so
 * an identity does not say who built; the passport does.
 */
export const builderNames = ['native', 'trtexec'] as const;
export type BuilderName = (typeof builderNames)[number];

/** The builder of a name, loaded when it builds. `logFolder` is for logs of trtexec; default: `build_logs` in trtforge's cache folder. */
export function planBuilder(name: BuilderName, logFolder?: string): PlanBuilder {
  if (name === 'native')
    return async (request, options) => (await import('./build-plan.js')).buildPlan(request, options);
  return async (request, options) => {
    const { buildWithTrtexec } = await import('./trtexec-build.js');
    return buildWithTrtexec(request, options, logFolder ?? join(cacheFolder(options.env), 'build_logs'));
  };
}

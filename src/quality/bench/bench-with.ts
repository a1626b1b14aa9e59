import { benchEngine } from './bench-engine.js';
import { type BenchContext, type BenchRequest, benchContext } from './request.js';
import type { BenchResult } from './result.js';

/** A way to measure an engine: the same request, the same result. */
export type Bencher = (request: BenchRequest, context: BenchContext) => Promise<BenchResult>;

/** Every way there is, by the word `--with` takes; each loads when it is used. */
export const benchers = {
  trtforge: (request, context) => benchEngine(request, context),
  trtexec: async (request, context) =>
    (await import('./trtexec/trtexec-bench.js')).benchTrtexec(request, context),
} as const satisfies Record<string, Bencher>;

export type BenchTool = keyof typeof benchers;
export const benchTools = ['trtforge', 'trtexec'] as const satisfies readonly BenchTool[];

/** Measures an engine with trtforge's own meter (as `benchEngine`) or with the toolchain's trtexec; one result for both, with their errors. */
export const benchWith = (
  tool: BenchTool,
  request: BenchRequest,
  context?: Partial<BenchContext>,
): Promise<BenchResult> => benchers[tool](request, benchContext(context));

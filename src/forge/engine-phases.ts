import { formatMs } from '../base/text/quantity.js';
import { whyNotRun } from '../engines/identity/machine.js';
import { benchEngine } from '../quality/bench/bench-engine.js';
import { defaultMode, defaultRequest } from '../quality/bench/request.js';
import { verifyModel } from '../quality/verify/verify.js';
import type { SkippablePhase } from './options.js';
import { writeJson } from './run-root.js';
import type { Forged, ForgePhase, Run } from './run-state.js';
import { builtShapes, outcomeText } from './verify-phase.js';

/** Long enough for steady clocks, short beside a build. */
const BENCH_MS = 3000;
const WARM_UP_MS = 1000;

/** Holds the engine itself, on its GPU, against the original model. An output outside tolerance ends no phase: it is a finding. */
export const verifyEnginePhase = (run: Run): ForgePhase => ({
  name: 'verify engine',
  skip: (soFar) => whyNotHere(run, soFar) ?? whyLeftOut(run, 'verify'),
  run: async ({ prepared, obtained, conversion }, { emit, signal }) => {
    if (obtained === undefined) throw new Error('The engine is verified only after the build phase.');
    const engineVerification = await verifyModel(
      {
        shapes: builtShapes(prepared),
        ...run.options.verify,
        reference: run.options.model,
        candidate: obtained.engine,
        device: run.options.device,
        ...loadingOf(run, prepared),
        ...(conversion === undefined ? {} : { precision: conversion.precision }),
      },
      { emit, environment: run.environment, ...(signal === undefined ? {} : { signal }) },
    );
    writeJson(run.root.stepResult('verify-engine'), engineVerification);
    return { found: { engineVerification }, detail: outcomeText(engineVerification) };
  },
});

/** Measures the engine at the optimum of its first profile, GPU time only, as a CUDA graph: what the hardware gives. */
export const benchPhase = (run: Run): ForgePhase => ({
  name: 'bench',
  skip: (soFar) => whyNotHere(run, soFar) ?? whyLeftOut(run, 'bench'),
  run: async ({ prepared, obtained }, { emit, signal = new AbortController().signal }) => {
    if (obtained === undefined) throw new Error('The engine is measured only after the build phase.');
    const bench = await benchEngine(
      {
        ...defaultRequest(obtained.engine),
        device: run.options.device ?? 0,
        ...loadingOf(run, prepared),
        wait: true,
        mode: {
          ...defaultMode,
          transfers: false,
          graph: true,
          spinWait: true,
          warmUpMs: WARM_UP_MS,
          durationMs: BENCH_MS,
        },
      },
      { emit, signal, environment: run.environment },
    );
    writeJson(run.root.stepResult('bench'), bench);
    const { gpuMs, itemsPerSecond } = bench;
    return {
      found: { bench },
      detail: `${gpuMs === null ? '' : `${formatMs(gpuMs.median)} on the GPU, `}${Math.round(itemsPerSecond)} items a second`,
    };
  },
});

/** An engine is loaded with what it was built with. A toolchain that was named is named to whoever repeats the phase. */
const loadingOf = ({ options }: Run, prepared: Forged['prepared'] | undefined) => ({
  toolchain: options.toolchain ?? prepared?.toolchain,
  plugins: options.plugins ?? [],
  allowHostCode: options.allowHostCode ?? false,
  weightBudget: options.weightBudget,
});

const whyLeftOut = ({ options }: Run, phase: SkippablePhase): string | null =>
  options.skip?.includes(phase) ? 'it was to be left out' : null;

function whyNotHere({ machine }: Run, { prepared, obtained }: Partial<Forged>): string | null {
  if (prepared === undefined || obtained === undefined) return 'there is no engine';
  return whyNotRun(machine.gpus, prepared.identity.target.computeCapabilities);
}

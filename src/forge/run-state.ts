import type { GpuList } from '../addon/addon.js';
import type { ResolvedBuild } from '../engines/builder/build.js';
import type { ModelFacts } from '../formats/onnx/model-facts.js';
import type { ConversionResult } from '../formats/precision/conversion.js';
import type { BenchResult } from '../quality/bench/result.js';
import type { VerifyResult } from '../quality/verify/result.js';
import type { ForgedEngine } from '../report/result.js';
import type { Machine } from './environment.js';
import type { ForgeOptions, ForgeSeams } from './options.js';
import type { Phase } from './phase.js';
import type { RunRoot } from './run-root.js';

/** The findings of the phases, each its own part. */
export interface Forged {
  readonly inspection: ModelFacts;
  /** Everything the engine depends on, decided. */
  readonly prepared: ResolvedBuild;
  readonly conversion: ConversionResult;
  readonly obtained: ForgedEngine;
  readonly verification: VerifyResult;
  readonly engineVerification: VerifyResult;
  readonly bench: BenchResult;
}

/** The values that every phase may read; the same for the whole run. */
export interface Run {
  readonly options: ForgeOptions;
  readonly root: RunRoot;
  readonly commandLine: string | null;
  readonly profileFrom?: ForgeSeams['profileFrom'];
  /** With no other GPU than that of the run; `visible` are all. */
  readonly machine: Machine;
  readonly visible: GpuList;
  readonly environment: NodeJS.ProcessEnv;
  readonly build: ForgeSeams['build'];
  readonly afterFailure?: ForgeSeams['afterFailure'];
  /** Where the engine goes, and stays while its identity is the same; default: under its readable name into the run root's `engines`. */
  readonly engine?: string;
  /** Whether more than the build uses the typed model; default: yes, it is verified. */
  readonly needsTypedModel?: (prepared: ResolvedBuild) => boolean;
}

export type ForgePhase = Phase<Forged>;

import type { TensorParity } from '../../../src/products/streaming/compare/tensor-parity.js';
import type { ChunkOutcome, StreamOutcome } from '../../../src/products/streaming/verify/outcome.js';
import type { Evidence } from '../../../src/products/streaming/verify/signs.js';

/** An output `y` that was compared and passed. */
export const parityOf = (more: Partial<TensorParity> = {}): TensorParity => ({
  tensor: 'y',
  kind: 'float',
  region: null,
  compared: 10,
  tolerance: { absolute: 1e-3, relative: 1e-3, why: '' },
  maxAbs: 0,
  meanAbs: 0,
  maxRel: 0,
  cosine: 1,
  relativeRms: 0,
  tensorRule: true,
  allclose: true,
  outside: 0,
  nonFinite: { candidate: 0, reference: 0 },
  zerosPass: false,
  pass: true,
  failure: null,
  worstAt: null,
  reason: null,
  ...more,
});

export const outcomeOf = (more: Partial<ChunkOutcome> = {}): ChunkOutcome => ({
  chunk: 0,
  pass: true,
  copyMs: 0,
  runMs: 0,
  stateMs: 0,
  totalMs: 0,
  recordedMs: null,
  isFirstOfSize: false,
  tensors: [],
  error: null,
  lengths: { recorded: null, got: null },
  ...more,
});

/** A stream in closed loop of which nothing is known but what is passed. */
export const evidenceOf = ({
  chunks = [],
  diagnoses = [],
  nonFinite = null,
  ...more
}: Partial<Evidence & StreamOutcome>): Evidence => ({
  mode: 'closed-loop',
  stream: { chunks, diagnoses, nonFinite },
  main: null,
  drifts: [],
  cacheLengthRule: null,
  isFullFloat32: false,
  referenceTf32: null,
  ...more,
});

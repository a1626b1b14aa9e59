import type { SizeRange } from '../../engines/identity/sizes.js';
import type { AxisRole } from './layout-contract.js';

/** Inputs whose axes are known by their names, and the exporter that names them so. */
interface KnownInput {
  readonly input: string;
  /** What each axis runs along; null for a width. */
  readonly axes: readonly (AxisRole | null)[];
  readonly source: string;
}

const PARAKEET =
  "Parakeet TDT as three models with a model_meta.json, built by their exporter's trtexec tool";
const NEMO = 'NeMo, EncDecRNNTModel.export()';

const knownInputs: readonly KnownInput[] = [
  { input: 'audio_signal', axes: ['batch', null, 'time'], source: `${NEMO}; ${PARAKEET}` },
  { input: 'length', axes: ['batch'], source: `${NEMO}; ${PARAKEET}` },
  { input: 'y', axes: ['batch', 'tokens'], source: PARAKEET },
  { input: 'h', axes: [null, 'batch', null], source: PARAKEET },
  { input: 'c', axes: [null, 'batch', null], source: PARAKEET },
  { input: 'encoder_output', axes: ['batch', null, 'time'], source: PARAKEET },
  { input: 'predictor_output', axes: ['batch', null, 'tokens'], source: PARAKEET },
  { input: 'targets', axes: ['batch', 'tokens'], source: NEMO },
  { input: 'encoder_outputs', axes: ['batch', null, 'time'], source: NEMO },
  { input: 'decoder_outputs', axes: ['batch', null, 'tokens'], source: NEMO },
];

/** What the axes of an input run along, by its name alone; undefined for other names. */
export const axesOfInput = (name: string): readonly (AxisRole | null)[] | undefined =>
  knownInputs.find(({ input }) => input === name)?.axes;

const ONE: SizeRange = { min: 1, opt: 1, max: 1 };
/** Frames: features for the encoder, encoder output for the joint network. */
const TIME: SizeRange = { min: 16, opt: 64, max: 256 };
const TOKENS: SizeRange = { min: 1, opt: 1, max: 8 };

/** Ranges where neither the options nor the profiles file set one: the defaults of the same build tool. */
const defaultRanges: Readonly<Record<string, Partial<Record<AxisRole, SizeRange>>>> = {
  encoder: { time: TIME },
  predictor: { tokens: TOKENS },
  joint: { time: TIME, tokens: TOKENS },
};

/** The default range of an axis; in components of other names only the batch has one. */
export const defaultRange = (component: string, role: AxisRole): SizeRange | undefined =>
  role === 'batch' ? ONE : defaultRanges[component]?.[role];

import type { OptionTable } from '../base/options/option.js';
import { removal } from '../behaviour/facts.js';
import { quantizedFormats } from '../formats/precision/formats/index.js';

/** Whose flags have rows: other tools, and scripts that a product replaces. */
export const tools = [
  'trtexec',
  'polygraphy',
  'modelopt',
  'yolo',
  'onnxsim',
  'onnxslim',
  'polygraphy surgeon',
  'bundle script',
  'streaming script',
  'detector script',
] as const;
export type Tool = (typeof tools)[number];

/** Tools that change graphs. */
export const editors: ReadonlySet<Tool> = new Set<Tool>(['onnxsim', 'onnxslim', 'polygraphy surgeon']);

/** A flag of another tool, and what trtforge has for it. */
export interface ForeignFlag {
  /** `--saveEngine` */
  readonly flag: string;
  readonly of: Tool;
  /** `many`: every argument up to the next flag, as argparse reads them. `ranked`: likewise, and the first one counts. `rest`: every argument to the end. */
  readonly takesValue?: true | 'many' | 'ranked' | 'rest';
  /**
   * Templates of our arguments; the first whose option the verb has is taken. `{value}` stands for the value: alone it is a positional argument. An empty
   * template is what trtforge does by default. No template: nothing is equivalent.
   */
  readonly ours: readonly string[];
  /** The values that the template is repeated for; null for a value without an equivalent. Absent: the value as it is. */
  readonly values?: (value: string) => readonly string[] | null;
  /** The verbs that the row is for: needed where the template is a positional argument. Absent: every verb with the option. */
  readonly verbs?: readonly string[];
  /** The only value that makes this flag a foreign one: `--mode closed_loop`. */
  readonly only?: string;
  /** Options of the line count rather than the template's. */
  readonly isDefault?: true;
  /** The line with the option is printed, not run: the name has another meaning elsewhere. */
  readonly isExplained?: true;
  /** TensorRT removed it: a conversion of the model replaces it. */
  readonly removed?: true;
  /** Without an equivalent: the line to run instead, by all such flags and their values, the rest of the line and the verb's options; undefined without one. */
  readonly instead?: (
    passed: ReadonlyMap<string, string>,
    line: string,
    options: OptionTable,
  ) => string | undefined | Promise<string>;
  readonly why: string;
}

/** A flag that TensorRT removed: a conversion of the model replaces it. */
export const REMOVED = { removed: true } as const;

/** A flag of codes, which were TensorRT's to choose: the last of two types counts, and what samples it needs stands for the user's. */
export const QUANTIZES: Pick<ForeignFlag, 'removed' | 'instead'> = {
  removed: true,
  instead: (passed, line, { precision }) => {
    const format = quantizedFormats.find(({ id }) => passed.has(`--${id}`));
    if (format === undefined || precision === undefined) return undefined;
    const isSampled = !format.activations || line.includes(' --calibration');
    return `${line} --precision ${format.id}${isSampled ? '' : ' --calibration SAMPLES'}`;
  },
};

/** Why nothing of a DLA core is translated. */
export const DLA = 'trtforge does not build for DLA';

/** Why types of 8 and 4 bits are no flag of a build. */
export const QUANTIZED =
  'INT8, FP8 and INT4 arrive as Q/DQ nodes in the graph: --precision int8 --calibration SAMPLES quantizes the model with samples of its inputs; a model that has Q/DQ nodes is built as it is';

/** Why a table of TensorRT's calibrators is read by `convert`. */
export const CALIBRATION_TABLE = `${removal('calibrators')}: \`convert\` reads the ranges from the table, \`build\` by calibration-cache of the configuration file`;

export const CALIBRATED = `${removal('calibrators')}: ranges are Q/DQ nodes in the graph`;
export const KEPT_TYPES = `${removal('layer-types')}: the graph has them; \`trtforge convert --keep-nodes REGEX\` keeps nodes FP32`;

export const BUILDER_FLAG = 'the builder flag, by its name';

type Facts = Pick<
  ForeignFlag,
  'values' | 'verbs' | 'only' | 'removed' | 'isDefault' | 'isExplained' | 'instead'
> &
  Partial<Pick<ForeignFlag, 'why'>>;

/** Returns the writer of one tool's rows. */
export function rowsOf(of: Tool) {
  const row =
    (takesValue?: ForeignFlag['takesValue']) =>
    (flags: string, ours: string | readonly string[] | null, why: string, facts: Facts = {}) =>
      flags.split(' ').map(
        (flag): ForeignFlag => ({
          flag,
          of,
          takesValue,
          ours: ours === null ? [] : [ours].flat(),
          why,
          ...facts,
        }),
      );
  const rows = {
    bare: row(),
    valued: row(true),
    listed: row('many'),
    ranked: row('ranked'),
    rest: row('rest'),
  };
  return {
    ...rows,
    builderFlag: (flags: string, flag: string, facts?: Facts) =>
      rows.bare(flags, `--builder-config flags=${flag}`, BUILDER_FLAG, facts),
    setting: (flags: string, key: string, facts?: Facts) =>
      rows.valued(flags, `--builder-config ${key}={value}`, 'a builder setting', facts),
    /** A flag that let the builder choose a type; the same name selects the conversion. */
    permitted: (flag: string) => {
      const id = flag.slice('--'.length);
      const why = `the graph is converted to ${id.toUpperCase()}, since ${removal('weak-typing')}`;
      return rows.bare(flag, `--precision ${id}`, why, REMOVED);
    },
    /** Flags for one end of a profile, by their own names. */
    shapeFlags: (nameOf: (end: string) => string, takes: 'valued' | 'listed', facts?: Facts) =>
      ['min', 'opt', 'max'].flatMap((end) =>
        rows[takes](nameOf(end), '--profile {value}', 'one profile of all three: NAME:MIN/OPT/MAX', facts),
      ),
  };
}

/** A reader of values that have another spelling here. */
export const spelled =
  (known: Readonly<Record<string, string>>): NonNullable<ForeignFlag['values']> =>
  (value) => {
    const ours = Object.hasOwn(known, value) ? known[value] : undefined;
    return ours === undefined ? null : [ours];
  };

const pools: Readonly<Record<string, string>> = {
  workspace: 'workspace',
  tacticsharedmem: 'tactic-shared-memory',
  tacticsharedmemory: 'tactic-shared-memory',
  dlasram: 'dla-managed-sram',
  dlamanagedsram: 'dla-managed-sram',
  dlalocaldram: 'dla-local-dram',
  dlaglobaldram: 'dla-global-dram',
};

/** Reads `workspace:4096,tacticSharedMem:64`; sizes without a unit are `unit`. */
export const poolSettings =
  (unit: '' | 'B'): NonNullable<ForeignFlag['values']> =>
  (value) => {
    const settings = value.split(',').map((part) => {
      const [name = '', size = ''] = part.split(':');
      const pool = pools[name.toLowerCase().replace(/[_-]/g, '')];
      return pool === undefined || size === '' ? null : `${pool}=${/\d$/.test(size) ? size + unit : size}`;
    });
    return settings.every((setting) => setting !== null) ? settings : null;
  };

/** Reads a budget of streamed weights: -2 is none, -1 the automatic one, else a size of this form. */
export const weightBudget =
  (size: RegExp): NonNullable<ForeignFlag['values']> =>
  (value) => {
    if (value === '-2') return [];
    if (value === '-1') return ['automatic'];
    return size.test(value) ? [value] : null;
  };

/** The words of a template: an option and its text. */
export function templateWords(template: string, value: string): readonly string[] {
  if (template === '') return [];
  const [first = '', rest] = splitOnce(template);
  return [first, ...(rest === undefined ? [] : [rest])].map((word) => word.replaceAll('{value}', value));
}

/** The option that a template writes; undefined for a positional argument. */
export const templateOption = (template: string): string | undefined =>
  template.startsWith('-') ? splitOnce(template)[0] : undefined;

function splitOnce(text: string): readonly [string, string?] {
  const space = text.indexOf(' ');
  return space < 0 ? [text] : [text.slice(0, space), text.slice(space + 1)];
}
